"""The protocol server of a gateway: tools by face, everything else passed through."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import ListenHandler, ResourceUpdated
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from pegboard.core.calls import LOCAL, Caller
from pegboard.errors import Busy, PegboardError
from pegboard.gateway.gateway import Gateway
from pegboard.server import sdk
from pegboard.server.changes import ListChanges
from pegboard.server.middleware import PegboardMiddleware
from pegboard.server.serve import install, kept_results, make_server
from pegboard.upstream.switchboard import UpstreamEvent

_GOODBYE = 2.0
"""Seconds for telling a server that nobody watches a resource any more."""
_REMOVED = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""Methods that 2026-07-28 no longer has."""
_ROOTS_CHANGED = "notifications/roots/list_changed"


_PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host")


def build_server(
    gateway: Gateway, *, environ: Mapping[str, str] = os.environ, single_user: bool = True
) -> Server[Any]:
    """A low-level server in front of a gateway that is running already.

    `single_user` says that whoever can reach it without signing in is one and the same person.
    """
    changes = ListChanges()
    listen = _Listen(gateway, changes)
    server = make_server(gateway.board, changes, listen)
    middleware = install(
        gateway,
        server,
        gateway.board.parts.store,
        environ,
        kind=GatewayMiddleware,
        changes=changes,
    )
    assert isinstance(middleware, GatewayMiddleware)
    middleware.gateway = gateway
    middleware.single_user = single_user
    listen.middleware = middleware
    sdk.offer(server, lambda: kept_results(gateway.options) | gateway.passthrough.capabilities())
    gateway.when_lists_change(changes.announce)
    gateway.pool.listen(listen.on_event)
    return server


class GatewayMiddleware(PegboardMiddleware):
    """Answers tool methods from the board and passes the rest to the server that it is about."""

    gateway: Gateway
    single_user = True

    def _caller(self, ctx: sdk.Context) -> Caller:
        caller = super()._caller(ctx)
        if ctx.request is None or caller.principal != LOCAL.principal:
            return caller
        # A proxy or tunnel on this machine may bring anybody.
        alone = self.single_user and not any(h in ctx.request.headers for h in _PROXY_HEADERS)
        return caller if alone else replace(caller, anonymous=True)

    async def __call__(self, ctx: sdk.Context, call_next: CallNext) -> HandlerResult:
        through = self.gateway.passthrough
        if not sdk.is_open(ctx):
            return await super().__call__(ctx, call_next)
        if ctx.request_id is None and ctx.method == _ROOTS_CHANGED:
            params = ctx.params or {}
            await through.notify(ctx.method, params, caller=self.caller(ctx), request=ctx)
        elif ctx.request_id is not None and not self.is_ours(ctx) and through.handles(ctx.method):
            if ctx.method in _REMOVED and sdk.era_of(ctx) == "modern":
                return await call_next(ctx)  # which has no such method
            return await self._passed(ctx)
        return await super().__call__(ctx, call_next)

    async def answered(self, ctx: sdk.Context) -> HandlerResult:
        self._begin()
        try:
            return await super().answered(ctx)
        finally:
            self.gateway.work.end()

    def _begin(self) -> None:
        try:
            self.gateway.work.begin()
        except Busy as exc:
            raise sdk.failed(exc) from exc

    async def _passed(self, ctx: sdk.Context) -> HandlerResult:
        caller = self.caller(ctx)
        if caller.era == "legacy":
            self.changes.listen(sdk.connection_of(ctx))
        self._begin()
        try:
            with sdk.relayed_errors():
                result = await self.gateway.passthrough.request(
                    ctx.method, ctx.params or {}, caller=caller, request=ctx
                )
        except PegboardError as exc:
            raise sdk.failed(exc) from exc
        finally:
            self.gateway.work.end()
        return sdk.stamped(self.server, ctx, result)


class _Listen:
    """Serves streams of changes, and has servers announce the resources that these are about."""

    middleware: GatewayMiddleware

    def __init__(self, gateway: Gateway, changes: ListChanges) -> None:
        self._gateway = gateway
        self._changes = changes
        self._handler = ListenHandler(changes.bus)
        self._watched: Counter[str] = Counter()

    async def __call__(
        self, ctx: sdk.Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        uris = params.notifications.resource_subscriptions or []
        async with self._watching(ctx, [str(uri) for uri in uris]):
            return await self._handler(ctx, params)

    async def on_event(self, event: UpstreamEvent) -> None:
        """Tell the streams about a resource; for `Pool.listen`."""
        if event.change == "resource" and event.uri is not None:
            uri = self._gateway.passthrough.addresses.visible(event.server, event.uri)
            await self._changes.bus.publish(ResourceUpdated(uri=uri))

    @asynccontextmanager
    async def _watching(self, ctx: sdk.Context, uris: list[str]) -> AsyncGenerator[None]:
        for uri in uris:
            self._watched[uri] += 1
            if self._watched[uri] == 1:
                await self._ask(ctx, "resources/subscribe", uri)
        try:
            yield
        finally:
            for uri in uris:
                self._watched[uri] -= 1
                if not self._watched[uri]:
                    del self._watched[uri]
                    # The client has left, which cancels this task; the server must still hear it.
                    with anyio.move_on_after(_GOODBYE, shield=True):
                        await self._ask(ctx, "resources/unsubscribe", uri)

    async def _ask(self, ctx: sdk.Context, method: str, uri: str) -> None:
        caller = self.middleware.caller(ctx)
        try:
            await self._gateway.passthrough.request(
                method, {"uri": uri}, caller=caller, request=ctx
            )
        except PegboardError:
            return  # as with a resource that is not there: honoured, and never announced
