"""`pegboard serve`: serve tools to MCP clients, on stdio or over HTTP."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from pegboard.cli.config_discovery import find_source
from pegboard.cli.serve_fast_path import override_source, serve_config
from pegboard.cli.targets import CatalogOption, ConfigOption, ModeOption, open_board


def serve(
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    mode: ModeOption = None,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Serve streamable HTTP on this address instead of stdio."
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="The store for shared state, such as redis://host:6379/0."
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Show only the tools of this profile."),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, metavar="N", help="The number of processes (HTTP only).")
    ] = 1,
) -> None:
    """Serve tools to MCP clients."""
    if workers > 1 and (http is None or catalog is not None):
        raise typer.BadParameter("--workers needs --http and a configuration")
    if catalog is not None:
        from pegboard.server.environment import with_mode
        from pegboard.server.serving import run_board

        run_board(open_board(catalog, config), http=http, environ=with_mode(os.environ, mode))
    elif config is not None:
        serve_config(config, mode=mode, http=http, store=store, workers=workers, profile=profile)
    else:
        from pegboard.gateway.runner import serve_gateway

        chosen = {} if profile is None else {"profile": profile}
        source = override_source(find_source(None, **chosen), mode=mode, store=store)
        serve_gateway(source, http=http, workers=workers)
