"""`pegboard serve`: a board for clients, on stdio or HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from pegboard.cli.boards import CatalogOption, FaceOption, open_board


def serve(
    catalog: CatalogOption = None,
    face: FaceOption = "auto",
    http: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve streamable HTTP instead of stdio."),
    ] = None,
) -> None:
    """Serve tools to MCP clients."""
    open_board(catalog, face=face).run(http=http)
