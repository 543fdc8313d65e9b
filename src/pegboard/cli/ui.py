"""`pegboard ui`: the page of a catalogue or configuration, on this machine, for whoever started it.

A machine may have other users, and they can reach its ports. So the address that is printed holds a
token made for this run, and without it nothing is answered: neither the page nor `/mcp`, to which
clients send it as a bearer token.
"""

from __future__ import annotations

import secrets
import sys
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.audit_log import os_user
from pegboard.cli.boards import CatalogOption, ConfigOption, JsonOption, open_board
from pegboard.cli.output import out, print_json

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.applications import Starlette

    from pegboard.board import Pegboard
    from pegboard.dashboard.interface import Identify
    from pegboard.server.auth import Auth

_HOST = "127.0.0.1"


def ui(
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open a browser as well.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Look at tools in a browser: search them, see what they cost, watch calls."""
    from pegboard.server.auth import Auth, OwnerToken
    from pegboard.server.http_server import HttpServer
    from pegboard.sockets import bind_sockets

    board = open_board(catalog, config)
    token = secrets.token_urlsafe(24)
    with bind_sockets(_HOST, port)[0] as listening:
        listening.listen()  # before the address is known to a browser
        address = f"http://{_HOST}:{listening.getsockname()[1]}"
        opened = f"{address}/ui/enter?token={token}"
        _say(opened, f"{address}/mcp", token, as_json=as_json)
        if browser:
            webbrowser.open(opened)
        owner = Auth(verifier=OwnerToken(token))
        app = board.asgi(auth=owner, identify=holder_of(owner))
        if config is not None:
            _follow_others(app, board, config)
        HttpServer(app).run(sockets=[listening])


def _say(page: str, mcp: str, token: str, *, as_json: bool) -> None:
    """Both addresses, at once: whoever reads them from a pipe is waiting."""
    if as_json:
        print_json({"page": page, "mcp": mcp, "token": token})
    else:
        out.print(f"The page:    {page}", soft_wrap=True)
        out.print(f"For clients: {mcp}", soft_wrap=True)
        out.print(f"with header: Authorization: Bearer {token}", soft_wrap=True)
    sys.stdout.flush()


def _follow_others(app: Starlette, board: Pegboard, config: Path) -> None:
    """Show the calls of gateways on stdio too, which clients start with the same configuration."""
    from pegboard.gateway.config_source import ConfigSource
    from pegboard.observe.event_journal import follow_journals

    opening = ConfigSource.of(config)
    follow_journals(app, board.parts.live, opening.folder(opening.read()), config)


def holder_of(owner: Auth) -> Identify:
    """Whoever has the token operates the page; nobody else sees it."""
    from pegboard.dashboard.interface import Viewer

    user = os_user()

    async def identify(given: str | None) -> Viewer | None:
        return Viewer(is_operator=True, name=user) if await owner.identify(given) else None

    return identify
