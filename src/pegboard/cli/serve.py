"""`pegboard serve`: a board for clients, on stdio or HTTP."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from pegboard.cli.boards import CatalogOption, ConfigOption, FaceOption, open_board
from pegboard.cli.quick import serve_config


def serve(
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    face: FaceOption = None,
    http: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve streamable HTTP instead of stdio."),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Shared state, such as redis://host:6379/0."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that serve (HTTP only).")] = 1,
) -> None:
    """Serve tools to MCP clients."""
    if workers > 1 and (http is None or config is None):
        raise typer.BadParameter("--workers needs --http and --config")
    if config is not None and catalog is None:
        serve_config(config, face=face, http=http, store=store, workers=workers)
    else:
        from pegboard.server.environment import with_face
        from pegboard.server.serve import run

        run(open_board(catalog, config), http=http, environ=with_face(os.environ, face))
