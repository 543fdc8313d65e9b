"""No token, code, verifier or client secret is in anything that a person or a model may read."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp.shared.auth import OAuthClientInformationFull
from mcp.shared.exceptions import MCPError
from pydantic import AnyUrl
from tests.conformance.clients import served
from tests.e2e.test_serving import free_port
from tests.oauth.authorization_server import authorization_server, protected_server
from tests.oauth.browser import visit
from tests.oauth.test_login_command import command, run
from tests.oauth.test_login_page import KEYS, browser_at, client_of

from pegboard.config.loader import Configuration
from pegboard.config.settings import (
    AuthSettings,
    HttpSettings,
    LoginSettings,
    ObserveSettings,
    Settings,
)
from pegboard.gateway.from_settings import build_observability
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.http_app import build_gateway_app
from pegboard.upstream.spec import UpstreamSpec

pytestmark = pytest.mark.anyio
PAGES = ("/", "/ui/tools", "/ui/tools/list", "/ui/tool?name=p_whoami", "/ui/calls", "/ui/servers",
         "/metrics", "/ready", "/health", "/ui/login/p")  # fmt: skip


@asynccontextmanager
async def observed_gateway(server_url: str, folder: Path) -> AsyncGenerator[tuple[str, Gateway]]:
    """A shared gateway with everything switched on that writes something down."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = Settings(
        auth=AuthSettings(kind="keys", keys=KEYS, resource=f"{url}/mcp"),
        http=HttpSettings(operators=("ann",)),
        oauth=LoginSettings(store="file"),
        observe=ObserveSettings(audit="audit.jsonl", metrics="open"),
    )
    spec = UpstreamSpec("p", transport="http", url=server_url)
    gateway = Gateway(
        Configuration(settings, (spec,)),
        folder=folder,
        observability=build_observability(settings, folder),
    )
    with served(build_gateway_app(gateway, "127.0.0.1"), port=port):
        async with httpx2.AsyncClient() as http:
            while (await http.get(f"{url}/ready")).status_code != 200:
                pass
        yield url, gateway


async def test_nothing_secret_is_written_down_or_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("httpcore2", "hpack"):  # these log whole requests, for those who debug HTTP
        logging.getLogger(name).setLevel(logging.INFO)
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path / "home"))
    shown: list[str] = []
    with (
        authorization_server(lifetime=3600) as issuer,
        protected_server(issuer, is_personal=True) as server,
    ):
        async with (
            observed_gateway(server.url, tmp_path) as (url, gateway),
            browser_at(url) as browser,
        ):
            await browser.sign_in("ann", "/ui/login/p")
            address = await browser.begin("/ui/login/p")
            shown += [address, (await browser.http.get(f"{address}&login_hint=ann")).text]
            async with client_of(url, "ann") as client:
                shown.append((await client.list_tools()).model_dump_json())
                for event in (lambda: None, issuer.expire, issuer.expire, issuer.forget):
                    event()
                    for server.quotes_token in (False, True):
                        try:
                            shown.append((await client.call_tool("p_whoami", {})).model_dump_json())
                        except MCPError as exc:
                            shown.append(repr((exc.message, exc.data)))
                issuer.faults.down = True
                shown.append((await client.call_tool("p_whoami", {})).model_dump_json())
            shown += [(await browser.http.get(f"{url}{page}")).text for page in PAGES]
            dumps = gateway.configuration, vars(gateway.logins), gateway.pool.status()
            shown += [repr(dump) for dump in dumps]
    assert issuer.count("refresh_token") >= 2
    assert len(issuer.secrets) >= 8
    assert any("[redacted]" in text for text in shown)
    messages = [record.getMessage() for record in caplog.records]
    # The browser of this test logs the addresses that it opens; a browser has them in its history.
    shown += [text for text in messages if f"GET {url}/ui/login-return?" not in text]
    shown += [str(record.exc_text or "") for record in caplog.records]
    grants = [path for path in (tmp_path / "home").rglob("*") if _is_grant(path)]
    assert {path.stat().st_mode & 0o777 for path in grants} <= {0o600}
    shown += [p.read_text("utf-8", "replace") for p in _files(tmp_path) if p not in grants]
    for secret in issuer.secrets:
        leaks = [text for text in shown if secret in text]
        assert not leaks, (secret, leaks[0][:500])


async def test_commands_print_nothing_secret_also_when_they_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, secret = free_port(), "the-secret-of-a-client-by-hand"
    monkeypatch.setenv("CLIENT_SECRET", secret)
    shown: list[str] = []
    config = tmp_path / "mcp.json"
    with authorization_server() as issuer, protected_server(issuer) as server:
        issuer.clients["by-hand"] = OAuthClientInformationFull(
            client_id="by-hand",
            client_secret=secret,
            redirect_uris=[AnyUrl(f"http://localhost:{port}/callback")],
            token_endpoint_auth_method="client_secret_post",
            scope="tools",
        )
        issuer.secrets.add(secret)
        oauth = {"clientId": "by-hand", "clientSecret": "${CLIENT_SECRET}", "callbackPort": port}
        config.write_text(json.dumps({"mcpServers": {"p": {"url": server.url, "oauth": oauth}}}))

        async def show(*words: str, ends_well: bool = True) -> None:
            code, text = await run(*words, "--debug", config=config)
            assert (code == 0) is ends_well, text
            shown.append(text)

        async with command("login", "p", "--no-browser", "--debug", config=config) as login:
            await visit(await login.wait_for(r"http://\S+/authorize\S+"))
            assert await login.end() == 0, login.text
            shown.append(login.text)
        for words in (("doctor", "--json"), ("measure", "--json"), ("call", "p_whoami")):
            await show(*words)
        server.quotes_token = True
        await show("call", "p_whoami", ends_well=False)
        server.quotes_token = False
        issuer.expire()
        issuer.faults.down = True
        await show("call", "p_whoami", ends_well=False)
        await show("logout", "p", "--json", ends_well=False)
    assert issuer.count("authorization_code") == 1
    assert any("[redacted]" in text for text in shown)
    shown += [p.read_text("utf-8", "replace") for p in _files(tmp_path)]
    for one in issuer.secrets:
        leaks = [text for text in shown if one in text]
        assert not leaks, (one, leaks[0][:500])


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _is_grant(path: Path) -> bool:
    """Whether a file is where a login is stored: the one place for its tokens."""
    return path.is_file() and path.parent.name == "logins"
