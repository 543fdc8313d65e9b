"""The protocol server of a gateway: tools by mode, everything else passed through."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import (
    ListenHandler,
    ResourceUpdated,
    ServerEvent,
    SubscriptionBus,
)
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from pegboard.core.calls import LOCAL_CALLER, Caller
from pegboard.core.events import RequestAnswered
from pegboard.core.json import Json, JsonObject
from pegboard.core.results.blob_links import URI_PREFIX, uri_to_handle
from pegboard.errors import Busy, ConfigError, PegboardError
from pegboard.gateway.gateway import Gateway
from pegboard.modes.mode import META_TOOL_NAMES
from pegboard.ports import record_event
from pegboard.server import mcp_private
from pegboard.server.list_changed import ListChangedNotifier
from pegboard.server.middleware import PegboardMiddleware
from pegboard.server.replies import error_result
from pegboard.server.serving import install_middleware, make_server, spill_capabilities
from pegboard.upstream.downstream import build_downstream
from pegboard.upstream.passthrough import MAX_SUBSCRIPTIONS, Subscriber

MAX_STREAMS = 1024
MAX_STREAMS_PER_PRINCIPAL = 64
_GOODBYE = 2.0
"""Seconds for telling a server that nobody watches a resource any more."""
_REMOVED = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""Methods that 2026-07-28 no longer has."""
_ACCOUNTED_ELSEWHERE = frozenset({"ping", "tools/call", "subscriptions/listen"})
"""What is counted and recorded by dispatch, when a stream begins, or not at all."""
_LONGEST_TARGET = 500
_LISTS = frozenset({"prompts/list", "resources/list", "resources/templates/list"})
_ROOTS_CHANGED = "notifications/roots/list_changed"


_PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host")


def build_gateway_server(
    gateway: Gateway, *, environ: Mapping[str, str] = os.environ, single_user: bool = True
) -> Server[Any]:
    """A low-level server in front of a gateway that is running already.

    `single_user` says that whoever can reach it without signing in is one and the same person.
    """
    changes = ListChangedNotifier()
    listen = _SubscriptionHandler(gateway, changes)
    server = make_server(gateway.board, changes, listen)
    middleware = install_middleware(
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

    def capabilities() -> JsonObject:
        passed = gateway.passthrough.capabilities(complete=gateway.knows_all_servers)
        return spill_capabilities(gateway.options) | passed

    mcp_private.advertise_capabilities(server, capabilities)
    gateway.discovery.on_lists_changed(changes.announce)
    return server


class GatewayMiddleware(PegboardMiddleware):
    """Answers tool methods from the board and passes the rest to the server that it is about."""

    gateway: Gateway
    single_user = True

    def read_caller(self, ctx: mcp_private.Context) -> Caller:
        caller = super().read_caller(ctx)
        if ctx.request is None or caller.principal != LOCAL_CALLER.principal:
            return caller
        # A proxy or tunnel on this machine may bring anybody.
        alone = self.single_user and not any(h in ctx.request.headers for h in _PROXY_HEADERS)
        return caller if alone else replace(caller, anonymous=True)

    async def __call__(self, ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None or not mcp_private.is_initialized(ctx):
            if ctx.method == _ROOTS_CHANGED and mcp_private.is_initialized(ctx):
                through, params = self.gateway.passthrough, ctx.params or {}
                await through.notify(ctx.method, params, caller=self.caller(ctx), request=ctx)
            return await super().__call__(ctx, call_next)
        if ctx.method in _ACCOUNTED_ELSEWHERE:
            return await super().__call__(ctx, call_next)
        async with self.accounted(ctx):
            return await self._answer(ctx, call_next)

    async def _answer(self, ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        if self.answers_tools(ctx) or not self.gateway.passthrough.handles(ctx.method):
            return await super().__call__(ctx, call_next)
        if ctx.method in _REMOVED and mcp_private.get_era(ctx) == "modern":
            return await call_next(ctx)  # which has no such method
        return await self._passed(ctx)

    @asynccontextmanager
    async def accounted(self, ctx: mcp_private.Context) -> AsyncGenerator[None]:
        """Count a request against its caller's limit, and tell of how it ended."""
        at, began = time.time(), time.perf_counter()
        outcome, error = "cancelled", None
        try:
            caller = self.caller(ctx)
        except ConfigError as exc:  # a mode that does not exist was asked for
            raise mcp_private.invalid_params(exc.message, exc.details or None) from exc
        try:
            await self._admit(caller)
            yield
            outcome = "ok"
        except Exception as exc:
            outcome, error = "failed", mcp_private.error_name(exc)
            raise
        finally:
            event = RequestAnswered(
                at=at,
                method=ctx.method,
                duration=time.perf_counter() - began,
                outcome=outcome,
                target=_request_target(ctx.params or {}),
                principal=caller.principal,
                client=caller.client,
                session=caller.session,
                error=error,
            )
            record_event(self.gateway.board.parts.observer, event)

    async def _admit(self, caller: Caller) -> None:
        if self.gateway.limits is None:
            return
        try:
            await self.gateway.limits.request(caller)
        except PegboardError as exc:
            raise mcp_private.request_failed(exc) from exc

    async def answer_tools(self, ctx: mcp_private.Context) -> HandlerResult:
        limits, name = self.gateway.limits, str((ctx.params or {}).get("name"))
        if limits is not None and ctx.method == "tools/call" and name in META_TOOL_NAMES:
            # Direct calls are counted by dispatch; what a meta-tool does may not get there.
            try:
                await limits.request(self.caller(ctx))
            except Busy as exc:
                return mcp_private.stamp_result(self.server, ctx, error_result(exc).wire)
            except ConfigError as exc:
                raise mcp_private.invalid_params(exc.message, exc.details or None) from exc
        self._begin()
        try:
            return await super().answer_tools(ctx)
        finally:
            self.gateway.drain.end()

    def _begin(self) -> None:
        try:
            self.gateway.drain.begin()
        except Busy as exc:
            raise mcp_private.request_failed(exc) from exc

    async def _passed(self, ctx: mcp_private.Context) -> HandlerResult:
        caller = self.caller(ctx)
        self._begin()
        limits = self.gateway.limits
        is_call = limits is not None and not ctx.method.endswith("/list")
        try:
            if ctx.method in _LISTS:  # the list of tools does not wait for a first start; these do
                await self.gateway.wait_for_first_listing()
            async with limits.call(caller) if limits and is_call else nullcontext():
                with mcp_private.relay_upstream_errors():
                    result = await self.gateway.passthrough.request(
                        ctx.method, ctx.params or {}, caller=caller, request=ctx
                    )
        except PegboardError as exc:
            raise mcp_private.request_failed(exc) from exc
        finally:
            self.gateway.drain.end()
        return mcp_private.stamp_result(self.server, ctx, result)


def _request_target(params: Mapping[str, Json]) -> str | None:
    """What a request is about, for the record; the handle of a kept result is a secret."""
    if uri_to_handle(params.get("uri")) is not None:
        return URI_PREFIX
    ref = params.get("ref")
    about: Mapping[str, Json] = ref if isinstance(ref, dict) else params
    for key in ("uri", "name", "taskId", "names", "level"):
        if about.get(key):
            return str(about[key])[:_LONGEST_TARGET]
    wanted = params.get("notifications")
    uris = wanted.get("resourceSubscriptions") if isinstance(wanted, dict) else None
    return str(uris)[:_LONGEST_TARGET] if uris else None


class _SubscriptionHandler:
    """Serves streams of changes: of lists to everybody, of resources to who subscribed to them."""

    middleware: GatewayMiddleware

    def __init__(self, gateway: Gateway, changes: ListChangedNotifier) -> None:
        self._gateway = gateway
        self._changes = changes
        self._streams: Counter[str] = Counter()

    async def __call__(
        self, ctx: mcp_private.Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        async with self.middleware.accounted(ctx):  # when it begins: it may last for days
            caller = self.middleware.caller(ctx)
            await self._count_call(caller)
        uris = [str(uri) for uri in params.notifications.resource_subscriptions or ()]
        stream = _StreamBus(self._changes.bus)
        with self._counted(caller.principal, uris):
            downstream = build_downstream(caller, ctx, ctx.params or {})
            async with self._subscribed(Subscriber(downstream, stream, stream.updated), uris):
                return await ListenHandler(stream)(ctx, params)

    async def _count_call(self, caller: Caller) -> None:
        """Count the stream as one call, which is over at once."""
        if self._gateway.limits is None:
            return
        try:
            async with self._gateway.limits.call(caller):
                return
        except Busy as exc:
            raise mcp_private.request_failed(exc) from exc

    @contextmanager
    def _counted(self, principal: str, uris: list[str]) -> Generator[None]:
        """Bound the streams of each principal and of all, so that nobody takes everybody's."""
        total = self._streams.total()
        if self._streams[principal] >= MAX_STREAMS_PER_PRINCIPAL or total >= MAX_STREAMS:
            raise mcp_private.request_failed(
                Busy("You have too many streams of changes open: end some first.")
            )
        if len(uris) > MAX_SUBSCRIPTIONS:
            raise mcp_private.invalid_params(
                f"At most {MAX_SUBSCRIPTIONS} resources on one stream."
            )
        self._streams[principal] += 1
        try:
            yield
        finally:
            self._streams[principal] -= 1
            if not self._streams[principal]:
                del self._streams[principal]

    @asynccontextmanager
    async def _subscribed(self, subscriber: Subscriber, uris: list[str]) -> AsyncGenerator[None]:
        through = self._gateway.passthrough
        wanted: list[str] = []
        try:
            for uri in uris:
                wanted.append(uri)
                # As with a resource that is not there: acknowledged, and never announced.
                with suppress(PegboardError):
                    await through.subscribe(uri, subscriber)
            yield
        finally:
            # The client has left, which cancels this task; the servers must still hear it.
            with anyio.move_on_after(_GOODBYE, shield=True):
                for uri in wanted:
                    with suppress(PegboardError):
                        await through.unsubscribe(uri, subscriber)
            through.forget_subscriber(subscriber.key)


class _StreamBus:
    """The bus of one stream: everybody's changes of lists, and updates meant for it alone."""

    def __init__(self, lists: SubscriptionBus) -> None:
        self._lists = lists
        self._listeners: list[Callable[[ServerEvent], None]] = []

    async def publish(self, event: ServerEvent) -> None:
        for listener in self._listeners:
            listener(event)

    async def updated(self, uri: str) -> None:
        """Tell the client of this stream that a resource has changed."""
        await self.publish(ResourceUpdated(uri=uri))

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        stop = self._lists.subscribe(listener)

        def unsubscribe() -> None:
            stop()
            self._listeners.clear()

        return unsubscribe
