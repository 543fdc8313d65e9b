"""What `upstream.client_sdk` relies on in the SDK that is private, provisional or a message."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as t
import pytest
from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.server.lowlevel.server import Server
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.subscriptions import ToolsListChanged
from tests.upstream.servers.everything import Everything, make_server, serve

from pegboard.upstream.client_sdk import (
    ClientSession,
    DownstreamChannel,
    MCPError,
    build_headers,
    follow_changes,
    is_connection_closed,
    read_header_map,
)
from pegboard.upstream.handshake import RelayDispatcher, negotiate, open_session

pytestmark = pytest.mark.anyio


class Inbox:
    def __init__(self) -> None:
        self.requests: list[str] = []
        self.notifications: list[str] = []
        self.told = anyio.Event()

    async def on_request(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        self.requests.append(method)
        return {"action": "accept", "content": {"name": "contract"}}

    async def on_notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        self.notifications.append(method)
        self.told.set()


@asynccontextmanager
async def connected(
    era: str, capabilities: dict[str, Any] | None = None
) -> AsyncGenerator[tuple[ClientSession, RelayDispatcher, Inbox, Everything]]:
    it, inbox = Everything(), Inbox()
    with anyio.fail_after(5):
        async with (
            create_client_server_memory_streams() as (near, far),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(serve, make_server(it), *far, era)
            dispatcher = RelayDispatcher(JSONRPCDispatcher(*near), inbox, capabilities or {})
            async with open_session(dispatcher) as session:
                yield session, dispatcher, inbox, it
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("era", "hint", "version"),
    [
        ("modern", None, "2026-07-28"),
        ("legacy", None, "2025-11-25"),
        ("legacy", "legacy", "2025-11-25"),
        ("modern", "modern", "2026-07-28"),
    ],
)
async def test_a_session_negotiates_over_a_dispatcher_of_ours(
    era: str, hint: Any, version: str
) -> None:
    async with connected(era) as (session, dispatcher, _, _it):
        assert await negotiate(session, hint) == version
        assert dispatcher.handshake_result["capabilities"]["tools"] == {"listChanged": True}
        assert dispatcher.handshake_result["instructions"] == "Ask me anything."


async def test_a_hint_of_an_era_that_is_gone_is_no_dead_end() -> None:
    """A modern-only server answers `initialize` with -32022."""
    async with connected("modern") as (session, _, _inbox, _it):
        await negotiate(session, None)
    async with connected("modern") as (session, dispatcher, _, _it):
        await dispatcher.inner.send_raw_request(
            "server/discover",
            {
                "_meta": {
                    t.PROTOCOL_VERSION_META_KEY: "2026-07-28",
                    t.CLIENT_INFO_META_KEY: {"name": "x", "version": "1"},
                    t.CLIENT_CAPABILITIES_META_KEY: {},
                }
            },
        )
        assert await negotiate(session, "legacy") == "2026-07-28"


async def test_the_handshake_declares_what_we_say_and_questions_come_to_us() -> None:
    async with connected("legacy", {"elicitation": {}}) as (session, dispatcher, inbox, _):
        await negotiate(session, None)
        result = await dispatcher.inner.send_raw_request("tools/call", {"name": "ask"})
        assert inbox.requests == ["elicitation/create"]
        assert result["content"][0]["text"] == "accept {'name': 'contract'}"


async def test_notifications_come_to_us_raw() -> None:
    async with connected("legacy") as (session, dispatcher, inbox, _):
        await negotiate(session, None)
        await dispatcher.inner.send_raw_request("tools/call", {"name": "change_tools"})
        await inbox.told.wait()
        assert inbox.notifications == ["notifications/tools/list_changed"]


async def test_a_modern_change_stream_brings_announcements_to_us() -> None:
    async with connected("modern") as (session, _, inbox, it), anyio.create_task_group() as tasks:
        await negotiate(session, None)
        lists = {"tools": True, "prompts": False, "resources": False}
        tasks.start_soon(follow_changes, session, lists, ())
        await anyio.wait_all_tasks_blocked()
        await it.bus.publish(ToolsListChanged())
        await inbox.told.wait()
        assert inbox.notifications == ["notifications/tools/list_changed"]
        tasks.cancel_scope.cancel()


async def test_a_closed_connection_is_told_from_an_error_of_the_server() -> None:
    async with connected("legacy") as (session, dispatcher, _, _it):
        await negotiate(session, None)
        with pytest.raises(MCPError) as own:
            await dispatcher.inner.send_raw_request("tools/call", {"name": "fail"})
        assert not is_connection_closed(own.value)
    assert dispatcher.ended.is_set()
    with pytest.raises(MCPError) as closed:
        await dispatcher.inner.send_raw_request("ping", {})
    assert is_connection_closed(closed.value)
    assert not is_connection_closed(MCPError(t.CONNECTION_CLOSED, "the server's own -32000"))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_request_has_a_raw_channel_back_to_its_client(mode: str) -> None:
    seen: list[Any] = []
    ended: list[str] = []
    heard: list[str] = []

    async def end() -> None:
        ended.append("over")

    async def call_tool(ctx: Any, params: Any) -> t.CallToolResult:
        channel = DownstreamChannel(ctx)
        seen.append((channel.can_send_request, channel.capabilities()))
        for _ in range(2):
            channel.on_close("test", end)
        await channel.notify("notifications/message", {"level": "info", "data": "beside"})
        await channel.notify_session("notifications/message", {"level": "info", "data": "alone"})
        if mode == "legacy":
            seen.append(await channel.send_request("roots/list", None))
        return t.CallToolResult(content=[])

    async def list_roots(context: Any) -> t.ListRootsResult:
        return t.ListRootsResult(roots=[])

    async def log(params: Any) -> None:
        heard.append(params.data)

    async def list_tools(ctx: Any, params: Any) -> t.ListToolsResult:
        return t.ListToolsResult(tools=[])

    server: Server[Any] = Server("s", on_call_tool=call_tool, on_list_tools=list_tools)
    transport = InMemoryTransport(server)
    async with Client(
        transport, mode=mode, list_roots_callback=list_roots, logging_callback=log
    ) as client:
        await client.call_tool("go", {})
        await anyio.wait_all_tasks_blocked()
    can_ask, capabilities = seen[0]
    assert can_ask is (mode == "legacy")
    assert "roots" in capabilities
    assert seen[1:] == ([{"roots": []}] if mode == "legacy" else [])
    assert heard == ["beside", "alone"]
    assert ended == ["over"]


def test_headers_of_a_modern_request_name_method_subject_and_mirrored_arguments() -> None:
    schema: Any = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }
    params = {"name": "go", "arguments": {"region": "eu"}}
    headers = build_headers("2026-07-28", "modern", "tools/call", params, read_header_map(schema))
    assert headers == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "go",
        "Mcp-Param-Region": "eu",
    }
    about = build_headers("2026-07-28", "modern", "tasks/get", {"taskId": "5"}, None)
    assert about["mcp-name"] == "5"
    assert build_headers("2025-11-25", "legacy", "tools/call", params, None) == {
        "mcp-protocol-version": "2025-11-25"
    }
