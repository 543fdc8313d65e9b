"""Real clients log in to `pegboard serve`, at real authorization servers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from fastmcp import Client as FastClient
from fastmcp.client.auth import OAuth as FastOAuth
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.e2e.test_serving import free_port, running_gateway
from tests.gateway.support import SDK_MODES, polite
from tests.oauth.authorization_server import authorization_server
from tests.oauth.browser import SdkLogin, visit
from tests.oauth.oidc_provider import BY_HAND, NODE, find_package, oidc_provider

pytestmark = pytest.mark.anyio
_LOGIN_ADDRESS = re.compile(r"^\s*(https?://\S+/auth(?:orize)?\?\S+)", re.MULTILINE)


@asynccontextmanager
async def gateway_with(
    kind: str, folder: Path, **auth: Any
) -> AsyncGenerator[tuple[str, Callable[[], int]]]:
    """A gateway whose tokens come from a server of that kind, and how many clients registered."""
    port = free_port()
    resource = f"http://127.0.0.1:{port}/mcp"
    async with AsyncExitStack() as stack:
        settings = {"kind": "jwt", "audience": resource, **auth}
        if kind == "oidc-provider":
            oidc = await stack.enter_async_context(oidc_provider(resource))
            settings["issuer"] = oidc.issuer
            registered = partial(oidc.count, "registration_create.success")
        else:
            issuer = stack.enter_context(authorization_server(signs=True))
            # It publishes RFC 8414 metadata, which does not name its keys.
            settings |= {"issuer": issuer.issuer, "jwks_url": f"{issuer.issuer}/keys"}
            registered = partial(issuer.count, "register")
        config = folder / "pegboard.toml"
        lines = [f"{key} = {_to_toml(value)}" for key, value in settings.items()]
        lines += [
            "[servers.a]",
            *(f"{key} = {json.dumps(value)}" for key, value in polite().items()),
        ]
        config.write_text("\n".join(["[auth]", *lines]))
        await stack.enter_async_context(running_gateway(folder, config, port=port, env=os.environ))
        yield resource, registered


def _to_toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {json.dumps(v)}" for k, v in value.items()) + " }"
    return json.dumps(value)


@asynccontextmanager
async def sdk_client(login: SdkLogin, url: str, mode: Any = "auto") -> AsyncGenerator[Client]:
    async with (
        httpx2.AsyncClient(auth=login.auth, timeout=20) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, cache=None) as client,
    ):
        yield client


async def list_with_fastmcp(url: str) -> set[str]:
    opened: list[str] = []

    class Headless(FastOAuth):
        async def redirect_handler(self, authorization_url: str) -> None:
            opened.append(authorization_url)
            tasks.start_soon(visit, authorization_url)

    names: set[str] = set()
    async with anyio.create_task_group() as tasks:
        async with FastClient(url, auth=Headless(url)) as client:
            names = {tool.name for tool in await client.list_tools()}
        tasks.cancel_scope.cancel()
    assert len(opened) == 1
    return names


async def list_with_mcp_remote(url: str, folder: Path) -> set[str]:
    """The tools that `mcp-remote`, a program for clients without logins, finds at an address."""
    program = find_package("mcp-remote") / "dist" / "proxy.js"
    tools = folder / "bin"
    tools.mkdir(parents=True)
    (tools / "xdg-open").write_text("#!/bin/sh\nexit 0\n")
    (tools / "xdg-open").chmod(0o755)
    env = {**os.environ, "MCP_REMOTE_CONFIG_DIR": str(folder / "home")}
    env["PATH"] = f"{tools}:{NODE.parent}:{env['PATH']}"
    names: set[str] = set()
    command = [str(NODE), str(program), url, "--allow-http", "--transport", "http-only"]
    async with (
        await anyio.open_process(command, env=env) as process,
        anyio.create_task_group() as tasks,
    ):
        stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        answers, printed = BufferedByteReceiveStream(stdout), ""

        async def browse() -> None:
            nonlocal printed
            async for part in stderr:
                printed += part.decode()
                if (address := _LOGIN_ADDRESS.search(printed)) is not None:
                    printed = ""
                    await visit(address[1])

        async def ask(message: dict[str, Any]) -> Any:
            await stdin.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            if "id" in message:
                return json.loads(await answers.receive_until(b"\n", 1 << 20))["result"]

        tasks.start_soon(browse)
        info = {"name": "tests", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        with anyio.fail_after(25):
            await ask({"id": 1, "method": "initialize", "params": hello})
            await ask({"method": "notifications/initialized"})
            found = await ask({"id": 2, "method": "tools/list", "params": {}})
            names.update(tool["name"] for tool in found["tools"])
        tasks.cancel_scope.cancel()
        process.terminate()
    return names


# FastMCP warns that its tokens live in memory, which is what a test wants.
@pytest.mark.filterwarnings("ignore:Using in-memory token storage")
@pytest.mark.parametrize("kind", ["oidc-provider", "the SDK's"])
async def test_three_clients_log_in_and_list_tools(kind: str, tmp_path: Path) -> None:
    async with gateway_with(kind, tmp_path, required_scopes=["tools"]) as (url, registered):
        for number, era in enumerate(SDK_MODES, start=1):
            login = SdkLogin(url)
            async with sdk_client(login, url, SDK_MODES[era]) as client:
                assert {tool.name for tool in (await client.list_tools()).tools} == {"a_echo"}
            assert (len(login.opened), registered()) == (1, number)
            assert login.storage.tokens is not None
            assert "tools" in str(login.storage.tokens.scope)
        assert await list_with_fastmcp(url) == {"a_echo"}
        assert await list_with_mcp_remote(url, tmp_path / "remote") == {"a_echo"}


def requested_scopes(address: str) -> set[str]:
    """The scopes for this resource that an authorization request asks for."""
    return set(httpx2.URL(address).params["scope"].split()) - {"offline_access"}


async def test_a_login_is_good_for_every_mode_and_a_call_asks_for_the_scope_of_its_risk(
    tmp_path: Path,
) -> None:
    """2026-07-28, authorization: the client steps up by itself, to old and new scopes together."""
    scopes = {"read": "read", "destructive": "delete"}
    async with gateway_with("oidc-provider", tmp_path, scopes=scopes) as (url, _):
        login = SdkLogin(f"{url}/proxy", client=BY_HAND)
        async with sdk_client(login, f"{url}/proxy") as client:
            assert "search_tools" in {tool.name for tool in (await client.list_tools()).tools}
            assert [httpx2.URL(a).params["resource"] for a in login.opened] == [f"{url}/proxy"]
            assert requested_scopes(login.opened[0]) == {"read"}
            first = login.storage.tokens
            assert first is not None
            # The risk of `echo` is unknown, so it counts as destructive.
            echo = {"name": "a_echo", "arguments": {}}
            assert not (await client.call_tool("call_write_tool", echo)).is_error
        assert requested_scopes(login.opened[1]) == {"read", "delete"}
        assert len(login.opened) == 2
        headers = {"Authorization": f"Bearer {first.access_token}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(url, http_client=http), cache=None) as client,
        ):
            assert {tool.name for tool in (await client.list_tools()).tools} == {"a_echo"}
