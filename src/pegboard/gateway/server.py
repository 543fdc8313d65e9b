"""The protocol server of a gateway: tools by face, everything else passed through."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import ListenHandler

from pegboard.core.json import JsonObject
from pegboard.gateway.gateway import Gateway
from pegboard.server import sdk
from pegboard.server.changes import ListChanges
from pegboard.server.middleware import PegboardMiddleware
from pegboard.server.serve import answered_before, install

_ENDS_SESSION = "pegboard/ends-session"


def build_server(gateway: Gateway, *, environ: Mapping[str, str] = os.environ) -> Server[Any]:
    """A low-level server in front of a gateway that is running already."""
    board = gateway.board
    changes = ListChanges()

    @asynccontextmanager
    async def lifespan(server: Server[Any]) -> AsyncGenerator[JsonObject]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(changes.watch, board.on_change)
            yield {}
            tasks.cancel_scope.cancel()

    server: Server[Any] = Server(
        board.name,
        version=board.version,
        instructions=board.instructions,
        lifespan=lifespan,
        on_list_tools=answered_before,
        on_call_tool=answered_before,
        on_subscriptions_listen=ListenHandler(changes.bus),
        get_tool_input_schema=lambda name: None,
    )
    middleware = install(
        gateway, server, board.parts.store, environ, kind=GatewayMiddleware, changes=changes
    )
    assert isinstance(middleware, GatewayMiddleware)
    middleware.gateway = gateway
    sdk.offer(server, gateway.passthrough.capabilities)
    return server


class GatewayMiddleware(PegboardMiddleware):
    """Answers tool methods from the board and passes the rest to the server that it is about."""

    gateway: Gateway

    async def __call__(self, ctx: sdk.Context, call_next: CallNext) -> HandlerResult:
        if not sdk.is_open(ctx) or not self.gateway.passthrough.handles(ctx.method):
            return await super().__call__(ctx, call_next)
        caller = self.caller(ctx)
        self._end_with(ctx, caller.session)
        params = ctx.params or {}
        if ctx.request_id is None:
            await self.gateway.passthrough.notify(ctx.method, params, caller=caller, request=ctx)
            return None
        with sdk.relayed_errors():
            result = await self.gateway.passthrough.request(
                ctx.method, params, caller=caller, request=ctx
            )
        return sdk.stamped(self.server, ctx, result)

    async def answered(self, ctx: sdk.Context) -> HandlerResult:
        self._end_with(ctx, sdk.session_of(ctx))
        return await super().answered(ctx)

    def _end_with(self, ctx: sdk.Context, session: str | None) -> None:
        """End what a legacy session holds upstream when its connection ends."""
        if session is None:
            return
        connection = sdk.connection_of(ctx)
        if connection.state.setdefault(_ENDS_SESSION, False):
            return
        connection.state[_ENDS_SESSION] = True
        connection.exit_stack.push_async_callback(self.gateway.relay.end_session, session)
