"""A small gateway around the relay, real servers behind it, and real clients in front."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as t
from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.memory import create_client_server_memory_streams
from tests.upstream.servers.everything import Everything, make_server, serve

from pegboard.core.calls import Caller, ToolCall
from pegboard.core.tools import Tool, constant_definition
from pegboard.errors import PegboardError
from pegboard.store.memory import MemoryStore
from pegboard.upstream.downstream import Downstream
from pegboard.upstream.era_translation import era_for_version
from pegboard.upstream.passthrough import Passthrough
from pegboard.upstream.pool import ConnectionPool
from pegboard.upstream.relay import Relay, UpstreamSource
from pegboard.upstream.server_log import BoundedLog
from pegboard.upstream.spec import UpstreamSpec
from pegboard.upstream.transports import UpstreamTransport, open_transport

SERVERS = Path(__file__).parent / "servers"
NOBODY = Downstream(Caller(), None, {})
EXTRAS = ("_meta", "inputResponses", "requestState", "task")


def script(name: str, *args: str, server: str | None = None, **settings: Any) -> UpstreamSpec:
    """A spec of one of our misbehaving servers."""
    file = str(SERVERS / f"{name}.py")
    return UpstreamSpec(server or name, command=sys.executable, args=(file, *args), **settings)


def in_memory(name: str, **settings: Any) -> UpstreamSpec:
    """A spec of a server that `memory` opens; the command is never run."""
    return UpstreamSpec(name, command="memory", **settings)


def memory(
    servers: Mapping[str, tuple[Everything, str]],
) -> Callable[[UpstreamSpec, BoundedLog, httpx2.Auth | None], Any]:
    """Opens wires to servers held in this process, by name, each with its era; others as usual."""

    @asynccontextmanager
    async def open_memory(
        spec: UpstreamSpec, log: BoundedLog, auth: httpx2.Auth | None = None
    ) -> AsyncGenerator[UpstreamTransport]:
        if spec.command != "memory":
            async with open_transport(spec, log, auth) as wire:
                yield wire
            return
        everything, era = servers[spec.name]
        async with (
            create_client_server_memory_streams() as (near, far),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(serve, make_server(everything), *far, era)
            yield UpstreamTransport(*near)
            tasks.cancel_scope.cancel()

    return open_memory


class Gateway:
    """Tools as `server.tool`, the rest passed through: what the real server does, briefly."""

    def __init__(self, pool: ConnectionPool) -> None:
        self.pool = pool
        self.relay = Relay(pool, MemoryStore())
        self.passthrough = Passthrough(self.relay)
        pool.add_listener(self.passthrough.on_event)
        self.server: Server[Any] = Server("gateway", version="1", on_list_tools=_no_tools)
        self.server.middleware.append(self)

    def client(self, mode: str, **callbacks: Any) -> Client:
        return Client(InMemoryTransport(self.server), mode=mode, cache=None, **callbacks)

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        caller = caller_of(ctx)
        params = dict(ctx.params or {})
        try:
            if ctx.method == "tools/call" and ctx.request_id is not None:
                return await self.call(params, caller, ctx)
            if self.passthrough.handles(ctx.method):
                return await self.passthrough.request(
                    ctx.method, params, caller=caller, request=ctx
                )
            if ctx.method == "notifications/roots/list_changed":
                await self.passthrough.notify(ctx.method, params, caller=caller, request=ctx)
        except PegboardError as exc:
            if "code" in exc.details:
                raise MCPError(exc.details["code"], exc.message, exc.details.get("data")) from exc
            raise MCPError(-32050, f"{exc.kind}: {exc.message}", exc.details) from exc
        return await call_next(ctx)

    async def call(self, params: dict[str, Any], caller: Caller, request: Any) -> dict[str, Any]:
        server, _, own = params["name"].partition(".")
        spec = next(spec for spec in self.pool.servers if spec.name == server)
        tool = Tool(own, constant_definition({"type": "object"}), server=server)
        call = ToolCall(
            tool,
            params.get("arguments") or {},
            caller=caller,
            params={k: params[k] for k in EXTRAS if k in params},
            request=request,
        )
        return (await UpstreamSource(spec, self.relay, [tool]).call(call)).wire


async def _no_tools(ctx: Any, params: Any) -> t.ListToolsResult:
    """Python's client lists after each call of a tool that it does not know."""
    return t.ListToolsResult(tools=[])


def caller_of(ctx: ServerRequestContext[Any, Any]) -> Caller:
    era = era_for_version(ctx.protocol_version)
    connection = ctx.session._connection  # pyright: ignore[reportPrivateUsage]
    session = connection.state.setdefault("session", f"s{id(connection)}")
    return Caller(era=era, session=session if era == "legacy" else None)


@asynccontextmanager
async def gateway(*specs: UpstreamSpec, **settings: Any) -> AsyncGenerator[Gateway]:
    async with AsyncExitStack() as stack:
        stack.enter_context(anyio.fail_after(20))
        yield Gateway(await stack.enter_async_context(ConnectionPool(specs, **settings)))


@asynccontextmanager
async def everything_behind(
    era: str, client_era: str, **callbacks: Any
) -> AsyncGenerator[tuple[Everything, Client, Gateway]]:
    """A client of one era, the gateway, and a server of another."""
    it = Everything()
    async with (
        gateway(in_memory("e"), open_transport=memory({"e": (it, era)})) as through,
        through.client(SDK_MODES[client_era], **callbacks) as client,
    ):
        yield it, client, through


SDK_MODES = {"legacy": "legacy", "modern": "auto"}


def said(result: t.CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, t.TextContent)
    return block.text
