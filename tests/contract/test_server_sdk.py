"""Every private or provisional name of the SDK that `server.mcp_private` uses, and what it does.

A new SDK release that moves one of them fails here, with the name that moved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from fastmcp import FastMCP
from mcp import Client, MCPError
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware
from mcp.server.lowlevel.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from pegboard import ConfigError, UpstreamError
from pegboard.server import mcp_private

pytestmark = pytest.mark.anyio

ERAS = {"legacy": "legacy", "modern": "auto"}


async def _nothing_listed(ctx: object, params: object) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[])


async def _called(ctx: object, params: object) -> types.CallToolResult:
    return types.CallToolResult(content=[])


def server(middleware: ServerMiddleware[Any] | None = None) -> Server[Any]:
    made: Server[Any] = Server(
        "contract",
        version="9.9",
        on_list_tools=_nothing_listed,
        on_call_tool=_called,
        on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
    )
    if middleware is not None:
        made.middleware.append(middleware)
    return made


async def seen(mode: str, look: Callable[[mcp_private.Context], Any], times: int = 1) -> list[Any]:
    """What `look` sees in the context of `times` requests to list tools."""
    found: list[Any] = []

    async def middleware(ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        if ctx.method == "tools/list":
            found.append(look(ctx))
        return await call_next(ctx)

    info = types.Implementation(name="somebody", version="4.2")
    with anyio.fail_after(10):
        async with Client(server(middleware), mode=mode, client_info=info, cache=None) as client:
            for _ in range(times):
                await client.list_tools()
    return found


@pytest.mark.parametrize("make", [MCPServer, FastMCP])
async def test_the_low_level_server_inside_another_is_found(make: Callable[[str], object]) -> None:
    assert isinstance(mcp_private.get_lowlevel_server(make("outer")), Server)


async def test_a_low_level_server_is_itself_and_anything_else_is_refused() -> None:
    own = server()
    assert mcp_private.get_lowlevel_server(own) is own
    with pytest.raises(ConfigError, match="Cannot attach to dict"):
        mcp_private.get_lowlevel_server({})


@pytest.mark.parametrize(("era", "mode"), ERAS.items())
async def test_the_era_is_read_from_the_protocol_version(era: str, mode: str) -> None:
    assert await seen(mode, mcp_private.get_era) == [era]
    versions = MODERN_PROTOCOL_VERSIONS if era == "modern" else HANDSHAKE_PROTOCOL_VERSIONS
    assert (await seen(mode, lambda ctx: ctx.protocol_version))[0] in versions


@pytest.mark.parametrize("mode", ERAS.values())
async def test_the_connection_is_behind_the_session_of_a_request(mode: str) -> None:
    (connection,) = await seen(mode, mcp_private.get_connection)
    assert isinstance(connection, Connection)
    assert isinstance(connection.state, dict)
    assert connection.session_id is None  # no HTTP here
    assert connection.initialize_accepted is True


async def test_a_legacy_session_has_one_name_and_a_modern_request_none() -> None:
    names = await seen("legacy", mcp_private.get_session_id, times=2)
    assert len(set(names)) == 1
    assert isinstance(names[0], str)
    assert await seen("legacy", mcp_private.get_session_id) != names[:1]
    assert await seen("auto", mcp_private.get_session_id, times=2) == [None, None]


@pytest.mark.parametrize("mode", ERAS.values())
async def test_the_client_says_its_name_and_version(mode: str) -> None:
    assert await seen(mode, mcp_private.get_client_info) == [("somebody", "4.2")]


@pytest.mark.parametrize("mode", ERAS.values())
async def test_nobody_is_asked_who_they_are_in_memory(mode: str) -> None:
    assert await seen(mode, mcp_private.identity_from_context) == [mcp_private.Identity("local")]


@pytest.mark.parametrize("mode", ERAS.values())
async def test_a_middleware_may_answer_with_a_wire_dict(mode: str) -> None:
    """What it answers reaches the client, in both eras, with the stamp of the modern."""
    made = server()

    async def middleware(ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        if ctx.method != "tools/list":
            return await call_next(ctx)
        tools = [{"name": "mine", "inputSchema": {"type": "object"}}]
        cacheable = (
            {"ttlMs": 5, "cacheScope": "public"} if mcp_private.get_era(ctx) == "modern" else {}
        )
        return mcp_private.stamp_result(
            made, ctx, {"tools": tools, "resultType": "complete", **cacheable}
        )

    made.middleware.append(middleware)
    with anyio.fail_after(10):
        async with Client(made, mode=mode) as client:
            listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == ["mine"]
    stamp = (listed.meta or {}).get("io.modelcontextprotocol/serverInfo")
    assert stamp == ({"name": "contract", "version": "9.9"} if mode == "auto" else None)


@pytest.mark.parametrize(
    ("version", "kind"),
    [("2024-11-05", "text"), ("2025-03-26", "text"), ("2025-06-18", "resource_link")],
)
async def test_a_client_that_knows_no_links_is_sent_text(version: str, kind: str) -> None:
    link = {"type": "resource_link", "name": "big", "uri": "pegboard://result/1"}

    def look(ctx: mcp_private.Context) -> dict[str, Any]:
        return mcp_private.stamp_result(
            server(), replace(ctx, protocol_version=version), {"content": [link]}
        )

    ((block,),) = [found["content"] for found in await seen("legacy", look)]
    assert block["type"] == kind
    assert "pegboard://result/1" in (block.get("text") or block["uri"])


async def test_a_stamp_leaves_a_result_of_another_kind_its_kind() -> None:
    made = server()
    result: dict[str, Any] = {"resultType": "input_required", "_meta": {"own": 1}}

    def look(ctx: mcp_private.Context) -> dict[str, Any]:
        return mcp_private.stamp_result(made, ctx, result)

    (stamped,) = await seen("auto", look)
    assert stamped["resultType"] == "input_required"
    assert stamped["_meta"]["own"] == 1
    assert await seen("legacy", look) == [{"_meta": {"own": 1}}]


@pytest.mark.parametrize(("era", "mode"), ERAS.items())
async def test_an_extension_is_advertised_to_the_client_of_either_era(era: str, mode: str) -> None:
    made = server()
    mcp_private.advertise_extension(made, "io.example/extra", {"on": True}, tools_changed=True)
    with anyio.fail_after(10):
        async with Client(made, mode=mode) as client:
            capabilities = client.server_capabilities
    offered = capabilities.extensions if era == "modern" else capabilities.experimental
    assert offered == {"io.example/extra": {"on": True}}
    assert capabilities.tools is not None
    assert capabilities.tools.list_changed is True


@pytest.mark.parametrize("mode", ERAS.values())
async def test_misuse_is_a_protocol_error_with_code_and_data(mode: str) -> None:
    async def middleware(ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        if ctx.method == "tools/list":
            raise mcp_private.invalid_params("Not like that.", {"right": "like this"})
        return await call_next(ctx)

    with anyio.fail_after(10):
        async with Client(server(middleware), mode=mode) as client:
            with pytest.raises(MCPError) as caught:
                await client.list_tools()
    error = caught.value.error
    assert (error.code, error.message, error.data) == (
        -32602,
        "Not like that.",
        {"right": "like this"},
    )


async def test_a_middleware_sees_methods_that_the_server_does_not_know() -> None:
    """This is how the extension's methods are answered on a server that somebody else built."""

    async def middleware(ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        return {"seen": True} if ctx.method == "example/unknown" else await call_next(ctx)

    request = types.Request[dict[str, Any], str](method="example/unknown", params={})
    for mode in ERAS.values():
        with anyio.fail_after(10):
            async with Client(server(middleware), mode=mode) as client:
                answer = await client.session.send_request(request, types.EmptyResult)
        assert answer is not None


async def test_an_announcement_arrives_before_the_answer_of_its_request() -> None:
    heard: list[str] = []

    async def note(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            heard.append("announcement")

    async def middleware(ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        if ctx.method == "tools/list":
            await mcp_private.notify_tools_changed(ctx)
        return await call_next(ctx)

    with anyio.fail_after(10):
        async with Client(server(middleware), mode="legacy", message_handler=note) as client:
            await client.list_tools()
            heard.append("answer")
    assert heard == ["announcement", "answer"]


@pytest.mark.parametrize("mode", ERAS.values())
async def test_further_capabilities_are_advertised_as_they_are_when_a_client_asks(
    mode: str,
) -> None:
    made = server()
    now: dict[str, Any] = {}
    mcp_private.advertise_capabilities(made, lambda: now)
    now["prompts"] = {"listChanged": False}
    with anyio.fail_after(10):
        async with Client(made, mode=mode) as client:
            capabilities = client.server_capabilities
    assert capabilities.prompts is not None
    assert capabilities.tools is not None


def test_an_upstreams_own_error_keeps_its_code_and_any_other_stays_ours() -> None:
    with pytest.raises(MCPError) as relayed, mcp_private.relay_upstream_errors():
        raise UpstreamError("Row is locked.", code=-32001, data={"row": 5})
    error = relayed.value.error
    assert (error.code, error.message, error.data) == (-32001, "Row is locked.", {"row": 5})
    with pytest.raises(UpstreamError, match="gone"), mcp_private.relay_upstream_errors():
        raise UpstreamError("The server is gone.")


def test_an_internal_error_says_nothing_of_the_inside() -> None:
    assert mcp_private.internal_error().error.code == types.INTERNAL_ERROR


async def test_a_connection_serves_further_requests_past_the_dispatcher() -> None:
    """With its middleware and handlers; `tests/server/test_stdio_fast_path.py` has both eras."""
    made = server()
    found: list[tuple[str, object, bool]] = []

    async def look(ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        if ctx.method == "tools/list":
            served = mcp_private.open_direct_connection(made, ctx)
            assert served is not None
            params = {**(ctx.params or {}), "name": "x", "arguments": {}}
            request = served.open_request("tools/call", 7, params)
            found.append(("result", await request.result(), True))
        if ctx.method == "tools/call":
            found.append((ctx.method, ctx.request_id, ctx.session.can_send_request))
        return await call_next(ctx)

    made.middleware.append(look)
    with anyio.fail_after(10):
        async with Client(made, mode="legacy", cache=None) as client:
            await client.list_tools()
    (method, number, can_ask), (_, result, _) = found
    assert (method, number) == ("tools/call", 7)
    assert can_ask
    assert isinstance(result, dict)
    assert result["content"] == []


async def test_a_request_in_memory_has_no_connection_to_be_served_beside() -> None:
    made = server()
    assert await seen("auto", lambda ctx: mcp_private.open_direct_connection(made, ctx)) == [None]


async def test_what_a_client_is_told_of_a_failure() -> None:
    told = mcp_private.to_error_data(MCPError(-32099, "why", {"a": 1}))
    assert told is not None
    assert (told.code, told.message, told.data) == (-32099, "why", {"a": 1})
    assert mcp_private.to_error_data(RuntimeError("inside")) is None


async def test_a_session_of_an_http_server_can_be_found_and_ended() -> None:
    server: Server[Any] = Server("x")
    app = server.streamable_http_app()
    transport = httpx2.ASGITransport(app)
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": mcp_private.LEGACY_VERSIONS[-1],
            "capabilities": {},
            "clientInfo": {"name": "old", "version": "1"},
        },
    }
    headers = {"Accept": "application/json, text/event-stream"}
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:1") as client,
    ):
        opened = await client.post("/mcp", json=hello, headers=headers)
        session = opened.headers["mcp-session-id"]
        assert mcp_private.has_session(server, session)
        await mcp_private.end_session(server, session)
        assert not mcp_private.has_session(server, session)
        gone = await client.post("/mcp", json=hello, headers={**headers, "Mcp-Session-Id": session})
        assert gone.status_code == 404
