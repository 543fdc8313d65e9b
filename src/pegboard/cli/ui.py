"""`pegboard ui`: the dashboard of a catalog or configuration, on this machine, for one user.

A machine may have other users, and they can reach its ports. So every run has a token of its own,
which the printed address contains, and nothing is answered without it: neither the dashboard nor
`/mcp`, to which clients send it as a bearer token.

The browser does not get that address on its command line, where every user could read it with `ps`.
It opens a file that only the owner can read, and that file leads to the address.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import webbrowser
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.cli.audit_log import os_user
from pegboard.cli.config_discovery import find_source
from pegboard.cli.output import JsonOption, out, print_json
from pegboard.cli.targets import CatalogOption, ConfigOption, open_board, open_config_board

if TYPE_CHECKING:
    from pegboard.dashboard.interface import Identify
    from pegboard.server.auth import Auth

_HOST = "127.0.0.1"


def ui(
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="The port. 0 uses any free one.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the dashboard in a browser.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Open the dashboard: search the tools, see their token cost, watch calls."""
    from pegboard.server.auth import Auth, OwnerToken
    from pegboard.server.http_server import HttpServer
    from pegboard.sockets import bind_sockets

    source = None if catalog is not None else find_source(config)
    board = open_board(catalog, config) if source is None else open_config_board(source)
    token = secrets.token_urlsafe(24)
    with bind_sockets(_HOST, port)[0] as listening, ExitStack() as cleanup:
        listening.listen()  # a browser may connect as soon as it has the address
        address = f"http://{_HOST}:{listening.getsockname()[1]}"
        dashboard = f"{address}/ui/enter?token={token}"
        if as_json:
            print_json({"page": dashboard, "mcp": f"{address}/mcp", "token": token})
        else:
            out.print(f"Dashboard:   {dashboard}", soft_wrap=True)
            out.print(f"For clients: {address}/mcp", soft_wrap=True)
            out.print(f"with header: Authorization: Bearer {token}", soft_wrap=True)
        sys.stdout.flush()  # a program that reads from a pipe is waiting for this
        if browser:
            with suppress(OSError):  # no folder to write to: the printed address still works
                folder = cleanup.enter_context(redirect_folder())
                webbrowser.open(write_redirect(folder, dashboard).as_uri())
        owner = Auth(verifier=OwnerToken(token))
        # No page for what a single user does not need; the owner may add commands, though.
        own: dict[str, Any] = {"sections": ()} if source is None else {"is_owner_only": True}
        app = board.asgi(auth=owner, identify=identify_owner(owner), accepts_links=True, **own)
        if source is not None:
            from pegboard.observe.event_journal import follow_journals

            # Clients start gateways on stdio with the same configuration: show their calls too.
            follow_journals(app, board.parts.live, source.folder(source.read()), source.path)
        HttpServer(app).run(sockets=[listening])


@contextmanager
def redirect_folder() -> Generator[Path]:
    """A folder that only the owner can read, removed at the end."""
    from pegboard.private_files import home_folder, make_private_folder

    parent = home_folder(os.environ) / "ui"
    make_private_folder(parent)
    # A folder per run: several dashboards may be open at once.
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        yield Path(folder)


def write_redirect(folder: Path, address: str) -> Path:
    """Write a page that leads a browser to the address; only the owner can read it."""
    from pegboard.private_files import open_private

    path = folder / "dashboard.html"
    with open(open_private(path), "w", encoding="utf-8") as file:
        file.write(
            '<!doctype html><meta charset="utf-8"><title>Pegboard</title>'
            f'<meta http-equiv="refresh" content="0;url={escape(address)}">'
            f'<a href="{escape(address)}">Open the dashboard</a>\n'
        )
    return path


def identify_owner(owner: Auth) -> Identify:
    """Identifies the holder of the token as operator; nobody else sees anything."""
    from pegboard.dashboard.interface import Viewer

    user = os_user()

    async def identify(given: str | None) -> Viewer | None:
        return Viewer(is_operator=True, name=user) if await owner.identify(given) else None

    return identify
