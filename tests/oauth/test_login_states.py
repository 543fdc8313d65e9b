"""The state of each login where people look: `clients`, `measure`, and the dashboard's servers."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from tests.cli.terminal import pegboard
from tests.conformance.clients import served
from tests.e2e.test_serving import free_port
from tests.oauth.authorization_server import (
    AuthorizationServer,
    authorization_server,
    protected_server,
)
from tests.oauth.browser import visit
from tests.oauth.support import LOCAL, log_in, tokens_for

from pegboard.cli.ui import identify_owner
from pegboard.config.loader import Configuration
from pegboard.config.settings import LoginSettings, Settings
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.http_app import build_gateway_app
from pegboard.server.auth import Auth, OwnerToken
from pegboard.upstream.spec import UpstreamSpec


@pytest.fixture
def issuer() -> Generator[AuthorizationServer]:
    with authorization_server() as server:
        yield server


def test_commands_show_who_is_signed_in(issuer: AuthorizationServer, tmp_path: Path) -> None:
    with protected_server(issuer) as server:
        names = ("fine", "ended", "left")
        path = tmp_path / ".cursor/mcp.json"
        path.parent.mkdir()
        path.write_text(json.dumps({"mcpServers": {name: {"url": server.url} for name in names}}))
        for name in names:
            tokens = tokens_for(server.url, tmp_path / "cache", server=name)
            anyio.run(log_in, tokens)
        moved = pegboard("install", "cursor", "--yes", home=tmp_path)
        assert moved.code == 0, moved.err

        def show(*words: str) -> dict[str, str]:
            return pegboard(*words, "--json", home=tmp_path).json

        [installed] = tmp_path.rglob("cursor/pegboard.toml")
        config = ("--config", str(installed))
        assert show("measure", *config)["logins"] == dict.fromkeys(names, "signed in")
        grants = tokens_for(server.url, tmp_path / "cache", server="ended")
        grant = anyio.run(grants.storage.load, grants.key(LOCAL))
        assert grant is not None
        anyio.run(grants.storage.save, grants.key(LOCAL), grant.end("invalid_grant"))
        assert pegboard("logout", "left", *config, home=tmp_path).code == 0
        states = {"fine": "signed in", "ended": "sign in again", "left": "sign in"}
        assert show("measure", *config)["logins"] == states
        clients = pegboard("clients", "--json", home=tmp_path).json["clients"]
        assert [one["logins"] for one in clients if one["logins"]] == [states]
        table = pegboard("measure", *config, home=tmp_path).out
        assert re.search(r"ended +1 +\d+ +sign in again", table)
        listed = pegboard("clients", home=tmp_path).out
        assert "sign in again: ended, with `pegboard login ended`." in listed
        assert "fine, with" not in listed


@pytest.mark.anyio
async def test_the_owner_logs_in_on_the_dashboard(
    issuer: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path))
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with protected_server(issuer) as server:
        spec = UpstreamSpec("notes", transport="http", url=server.url)
        settings = Settings(oauth=LoginSettings(store="file"))
        gateway = Gateway(Configuration(settings, (spec,)), folder=tmp_path)
        owner = Auth(verifier=OwnerToken("the token of pegboard ui"))
        own: dict[str, Any] = {"is_owner_only": True, "identify": identify_owner(owner)}
        app = build_gateway_app(gateway, "127.0.0.1", auth=owner, **own)
        with served(app, port=port), anyio.fail_after(30):
            async with httpx2.AsyncClient(follow_redirects=True, timeout=20) as http:
                assert (await http.get(f"{url}/ui/login/notes")).status_code == 401
                await http.post(f"{url}/ui/enter", data={"token": "the token of pegboard ui"})

                async def show_until(pattern: str) -> str:
                    while True:
                        page = (await http.get(f"{url}/ui/servers")).text
                        if re.search(pattern, page):
                            return page
                        await anyio.sleep(0.05)

                page = await show_until(r'<span class="badge warn">sign in</span>')
                assert 'href="/ui/login/notes"' in page
                assert "badge bad" not in page
                page = (await http.get(f"{url}/ui/login/notes")).text
                token = re.search(r'name="csrf_token" value="([^"]+)"', page)
                assert token is not None
                form = {"csrf_token": token[1]}
                page = (await http.post(f"{url}/ui/login/notes", data=form)).text
                link = re.search(r'<a href="([^"]+)">Continue to 127', page)
                assert link is not None
                assert (await visit(link[1].replace("&amp;", "&"))).status_code == 200
                page = await show_until(r'<span class="badge good">signed in</span>')
                assert 'href="/ui/login/notes"' not in page
