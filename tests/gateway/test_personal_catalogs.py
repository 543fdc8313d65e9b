"""Servers that list nothing without a login: each caller sees their own tools alone."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.conformance.clients import served
from tests.gateway.support import SDK_MODES, said
from tests.oauth.authorization_server import (
    AuthorizationServer,
    ProtectedServer,
    authorization_server,
    protected_server,
)
from tests.oauth.browser import SdkLogin

from pegboard.config.loader import Configuration
from pegboard.config.settings import (
    ApiKey,
    AuthSettings,
    HttpSettings,
    PermissionRule,
    PermissionSettings,
    Settings,
)
from pegboard.gateway import personal_catalogs
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.http_app import build_gateway_app
from pegboard.upstream.spec import UpstreamSpec

pytestmark = pytest.mark.anyio
PEOPLE = ("ann", "bob", "eve", "op")
KEYS = tuple(
    ApiKey(principal=who, sha256=hashlib.sha256(f"key of {who}".encode()).hexdigest())
    for who in PEOPLE
)


async def log_in(server: ProtectedServer, user: str) -> str:
    """An access token of this user for the server."""
    login = SdkLogin(server.url, user=user)
    async with (
        httpx2.AsyncClient(auth=login.auth) as http,
        Client(streamable_http_client(server.url, http_client=http)) as client,
    ):
        await client.list_tools()
    assert login.storage.tokens is not None
    return login.storage.tokens.access_token


@asynccontextmanager
async def shared_gateway(
    server: ProtectedServer, folder: Path, settings: Settings | None = None
) -> AsyncGenerator[str]:
    headers = {"Authorization": "Bearer {{env:TOKEN_{principal}}}"}
    spec = UpstreamSpec("p", transport="http", url=server.url, headers=headers)
    settings = settings or Settings(
        mode="eager",
        auth=AuthSettings(kind="keys", keys=KEYS),
        http=HttpSettings(operators=("op",)),
    )
    gateway = Gateway(Configuration(settings, (spec,)), folder=folder)
    with served(build_gateway_app(gateway, "127.0.0.1")) as url:
        async with httpx2.AsyncClient() as http:
            while (await http.get(f"{url}/ready")).status_code != 200:
                pass
        yield url


@asynccontextmanager
async def client_of(url: str, who: str, mode: Any = "auto") -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer key of {who}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=20) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, cache=None) as client,
    ):
        yield client


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


def find_in_files(folder: Path, text: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text in path.read_bytes()]


@pytest.fixture
def issuer() -> Any:
    with authorization_server() as server:
        yield server


@pytest.mark.parametrize(("era", "legacy"), [("modern", False), ("modern", True), ("legacy", True)])
async def test_each_caller_sees_and_calls_their_own_tools(
    issuer: AuthorizationServer,
    era: str,
    legacy: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with protected_server(issuer, legacy=legacy, is_personal=True) as server:
        for who in ("ann", "bob"):
            monkeypatch.setenv(f"TOKEN_{who}", await log_in(server, who))
        async with shared_gateway(server, tmp_path) as url:
            address = f"{url}/mcp"
            async with (
                client_of(address, "ann", SDK_MODES[era]) as ann,
                client_of(address, "bob", SDK_MODES[era]) as bob,
                client_of(address, "eve", SDK_MODES[era]) as eve,
            ):
                assert await names(ann) == {"p_whoami", "p_ann_notes"}
                assert await names(bob) == {"p_whoami", "p_bob_notes"}
                assert await names(eve) == set()
                for client, who in ((ann, "ann"), (bob, "bob"), (ann, "ann")):
                    assert said(await client.call_tool(f"p_{who}_notes", {})) == who


async def test_nothing_reveals_the_tools_of_somebody_else(
    issuer: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with protected_server(issuer, is_personal=True) as server:
        for who in ("ann", "bob"):
            monkeypatch.setenv(f"TOKEN_{who}", await log_in(server, who))
        async with shared_gateway(server, tmp_path) as url:
            async with client_of(f"{url}/mcp/proxy", "ann") as ann:
                found = await ann.call_tool("search_tools", {"query": "ann notes"})
                assert "p_ann_notes" in str(found)
            async with client_of(f"{url}/mcp/proxy", "bob") as bob:
                for tool, arguments in (
                    ("search_tools", {"query": "ann notes"}),
                    ("describe_tools", {"names": ["p_whoami", "p_bob_notes"]}),
                    ("call_tool", {"name": "p_ann_note"}),
                    ("call_tool", {"name": "p.ann_notes", "arguments": {}}),
                ):
                    answer = str(await bob.call_tool(tool, arguments))
                    assert "p_ann_notes" not in answer.replace("'p.ann_notes'", ""), answer
            # Not even to an operator, who sees the names in calls that were made, but no list.
            async with httpx2.AsyncClient(headers={"Authorization": "Bearer key of op"}) as http:
                for page in ("/ui/tools", "/ui/tools/list?query=notes"):
                    shown = await http.get(f"{url}{page}")
                    assert shown.status_code == 200
                    assert "ann_notes" not in shown.text
        assert server.seen == []
    assert find_in_files(tmp_path, b"ann_notes") == []


async def test_permissions_apply_to_personal_tools(
    issuer: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = PermissionRule(effect="deny", principals=("ann",), tools=("p_whoami",))
    settings = Settings(
        mode="eager",
        auth=AuthSettings(kind="keys", keys=KEYS),
        permissions=PermissionSettings(rules=(rule,)),
    )
    with protected_server(issuer, is_personal=True) as server:
        monkeypatch.setenv("TOKEN_ann", await log_in(server, "ann"))
        async with (
            shared_gateway(server, tmp_path, settings) as url,
            client_of(f"{url}/mcp", "ann") as ann,
        ):
            assert await names(ann) == {"p_ann_notes"}


async def test_with_an_operators_login_everybody_shares_one_catalog(
    issuer: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with protected_server(issuer, is_personal=True) as server:
        monkeypatch.setenv("TOKEN_local", await log_in(server, "op"))
        monkeypatch.setenv("TOKEN_ann", await log_in(server, "ann"))
        async with (
            shared_gateway(server, tmp_path) as url,
            client_of(f"{url}/mcp", "ann") as ann,
        ):
            assert await names(ann) == {"p_whoami", "p_op_notes"}


async def test_a_caller_without_access_is_asked_about_again_later_and_holds_up_nobody(
    issuer: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(personal_catalogs, "RETRY_AFTER", 0.2)
    with protected_server(issuer, is_personal=True) as server:
        token = await log_in(server, "ann")
        async with (
            shared_gateway(server, tmp_path) as url,
            client_of(f"{url}/mcp", "ann") as ann,
        ):
            assert await names(ann) == set()
            monkeypatch.setenv("TOKEN_ann", token)
            with anyio.fail_after(10):
                while "p_ann_notes" not in await names(ann):
                    pass
