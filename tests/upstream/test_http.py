"""Servers over HTTP, on real sockets: streamable HTTP in both eras, the older SSE, and faults."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import mcp_types as t
import pytest
import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.sse import SseServerTransport
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from tests.upstream.servers.everything import Everything, make_server
from tests.upstream.support import NOBODY, SDK_MODES, Gateway, gateway, said
from tests.upstream.test_eras import answer_form

from pegboard.core.calls import ToolCall
from pegboard.core.tools import Tool, constant_definition
from pegboard.errors import PegboardError, UpstreamError, UpstreamUnavailable
from pegboard.upstream.relay import UpstreamRequest, UpstreamSource
from pegboard.upstream.spec import UpstreamSpec

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def serving(app: Any) -> AsyncGenerator[str]:
    """An application on a free port of this machine, by its address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(server.serve, sockets=[listening]))
            with anyio.fail_after(10):
                while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                    await anyio.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
            server.should_exit = True


def http(url: str, name: str = "e", **settings: Any) -> UpstreamSpec:
    return UpstreamSpec(name, transport="http", url=url, **settings)


async def call(through: Gateway, tool: str = "echo", **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return await through.relay.request(UpstreamRequest("e", "tools/call", params), NOBODY)


@pytest.mark.parametrize("client_era", ["legacy", "modern"])
@pytest.mark.parametrize("server", ["legacy", "modern"])
async def test_calls_questions_and_progress_pass_over_streamable_http(
    client_era: str, server: str
) -> None:
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async with (
        serving(make_server().streamable_http_app()) as url,
        gateway(http(f"{url}/mcp")) as through,
    ):
        if server == "legacy":  # both eras are on one endpoint; a kept catalog decides
            through.pool.set_known_era("e", "legacy")
        async with through.client(
            SDK_MODES[client_era], elicitation_callback=answer_form
        ) as client:
            assert (
                said(await client.call_tool("e.ask", {})) == "accept {'name': 'e asks: your name?'}"
            )
            await client.call_tool("e.progress", {}, progress_callback=hear)
            assert through.pool.status()[0].era == server
    assert heard == [1.0, 2.0, 3.0]


async def test_cancelling_reaches_a_server_over_http() -> None:
    it = Everything()
    async with (
        serving(make_server(it).streamable_http_app()) as url,
        gateway(http(f"{url}/mcp")) as through,
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, through, "wait")
            await it.started.wait()
            tasks.cancel_scope.cancel()
        with anyio.move_on_after(5):
            await it.cancelled.wait()
        assert it.cancelled.is_set()


async def test_a_server_of_the_older_sse_transport_is_reached() -> None:
    transport = SseServerTransport("/messages/")
    server = make_server()

    async def connect(request: Request) -> Response:
        async with transport.connect_sse(
            request.scope,
            request.receive,
            request._send,  # pyright: ignore[reportPrivateUsage]
        ) as (read, write):
            await server.run(read, write, server.create_initialization_options())
        return Response()

    app = Starlette(
        routes=[
            Route("/sse", connect),
            Mount("/messages/", app=transport.handle_post_message),
        ]
    )
    async with serving(app) as url:
        spec = UpstreamSpec("e", transport="sse", url=f"{url}/sse")
        async with gateway(spec) as through:
            assert (await call(through, a=1))["structuredContent"]["arguments"] == {"a": 1}


async def test_arguments_that_a_tool_wants_as_headers_are_sent_as_headers() -> None:
    """2026-07-28, transports: custom headers from tool parameters (`x-mcp-header`)."""
    region = {"type": "string", "x-mcp-header": "Region"}
    schema: Any = {"type": "object", "properties": {"region": region}}
    seen: list[str | None] = []

    async def call_tool(ctx: Any, params: Any) -> t.CallToolResult:
        seen.append(ctx.request.headers.get("mcp-param-region"))
        return t.CallToolResult(content=[])

    server: Server[Any] = Server(
        "s", on_call_tool=call_tool, get_tool_input_schema=lambda name: schema
    )
    async with (
        serving(server.streamable_http_app()) as url,
        gateway(spec := http(f"{url}/mcp")) as through,
    ):
        tool = Tool("go", constant_definition(schema), server="e")
        source = UpstreamSource(spec, through.relay, [tool])
        await source.call(ToolCall(tool, {"region": "eu"}))
        with pytest.raises(UpstreamError) as caught:  # so the server checks them
            await call(through, "go", region="eu")
        assert caught.value.details["code"] == t.HEADER_MISMATCH
    assert seen == ["eu"]


class Plain:
    """A legacy server by hand, to have it forget sessions and answer with any status."""

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.status: int | None = None
        self.calls: list[dict[str, str]] = []
        self.app = Starlette(routes=[Route("/mcp", self.answer, methods=["POST", "GET", "DELETE"])])

    async def answer(self, request: Request) -> Response:
        if self.status is not None:
            return Response(status_code=self.status)
        if request.method != "POST":
            return Response(status_code=405)
        message = json.loads(await request.body())
        session = request.headers.get("mcp-session-id")
        if message["method"] == "initialize":
            session = f"session-{len(self.sessions)}-{len(self.calls)}"
            self.sessions.add(session)
            info = {"name": "plain", "version": "1"}
            result: Any = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}
        elif session not in self.sessions:
            return Response(status_code=404 if session else 400)
        elif "id" not in message:
            return Response(status_code=202)
        else:
            self.calls.append(dict(request.headers))
            result = {"content": [{"type": "text", "text": session}]}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return JSONResponse(answer, headers={"mcp-session-id": session or ""})


async def test_a_session_that_the_server_forgot_is_opened_anew_for_the_same_call() -> None:
    plain = Plain()
    async with serving(plain.app) as url, gateway(http(f"{url}/mcp")) as through:
        first = await call(through)
        plain.sessions.clear()
        second = await call(through)
        assert first["content"] != second["content"]
        assert len(plain.calls) == 2


async def test_the_configured_headers_go_with_every_request() -> None:
    plain = Plain()
    headers = {"Authorization": "Bearer x", "X-Team": "a"}
    async with serving(plain.app) as url, gateway(http(f"{url}/mcp", headers=headers)) as through:
        await call(through)
    sent = plain.calls[0]
    assert (sent["authorization"], sent["x-team"]) == ("Bearer x", "a")
    assert sent["mcp-protocol-version"] == "2025-06-18"


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "check its `headers`"), (404, "check its `url`"), (503, "503")]
)
async def test_a_status_that_refuses_us_at_the_start_is_named(status: int, hint: str) -> None:
    plain = Plain()
    plain.status = status
    async with serving(plain.app) as url, gateway(http(f"{url}/mcp")) as through:
        with pytest.raises(PegboardError, match=hint):
            await call(through)


async def test_a_status_that_refuses_a_call_is_named_and_the_connection_goes_on() -> None:
    plain = Plain()
    async with serving(plain.app) as url, gateway(http(f"{url}/mcp")) as through:
        await call(through)
        plain.status = 503
        with pytest.raises(UpstreamUnavailable, match="tools/call with HTTP status 503"):
            await call(through)
        plain.status = None
        await call(through)
        assert len(plain.sessions) == 1


async def test_a_server_that_is_not_there_is_a_failed_start_and_found_when_it_is() -> None:
    plain = Plain()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    async with gateway(http(f"http://127.0.0.1:{port}/mcp")) as through:
        with pytest.raises(UpstreamUnavailable, match="cannot be reached"):
            await call(through)
        assert through.pool.status()[0].state == "failed"
    async with serving(plain.app) as url, gateway(http(f"{url}/mcp")) as through:
        await call(through)
        assert through.pool.status()[0].state == "ready"


async def test_a_large_result_in_one_event_arrives() -> None:
    async def call_tool(ctx: Any, params: Any) -> t.CallToolResult:
        text = "x" * 5_000_000
        return t.CallToolResult(content=[t.TextContent(type="text", text=text)])

    server: Server[Any] = Server("s", on_call_tool=call_tool, get_tool_input_schema=lambda name: {})
    async with (
        serving(server.streamable_http_app()) as url,
        gateway(http(f"{url}/mcp")) as through,
    ):
        through.pool.set_known_era("e", "legacy")
        assert len((await call(through))["content"][0]["text"]) == 5_000_000
