"""`pegboard serve`: a board for clients, on stdio or HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from pegboard.cli.boards import CatalogOption, ConfigOption, FaceOption, open_board
from pegboard.cli.quick import serve_config


def serve(
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    face: FaceOption = "auto",
    http: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve streamable HTTP instead of stdio."),
    ] = None,
) -> None:
    """Serve tools to MCP clients."""
    if config is not None and catalog is None:
        serve_config(config, face=face, http=http)
    else:
        open_board(catalog, config, face=face).run(http=http)
