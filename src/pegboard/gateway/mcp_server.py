"""The MCP server of a gateway: tools by mode, everything else relayed to the server that owns it.

    request  -->  GatewayMiddleware
                    tools/*, stored results     -->  the board
                    prompts, resources, tasks   -->  the server behind the gateway
                    everything else             -->  the SDK

Every request is counted against its caller's rate limit, recorded as an event, and counted by the
drain, so that a shutdown can wait for it.
"""

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
from pegboard.server.middleware import GREETINGS, PegboardMiddleware
from pegboard.server.replies import error_result
from pegboard.server.serving import install_middleware, make_server, spill_capabilities
from pegboard.upstream.downstream import build_downstream
from pegboard.upstream.passthrough import MAX_SUBSCRIPTIONS, Subscriber

MAX_STREAMS = 1024
"""Notification streams that may be open at a time, in one process."""
MAX_STREAMS_PER_PRINCIPAL = 64
_UNSUBSCRIBE_TIMEOUT = 2.0
"""Seconds for telling a server that nobody watches a resource any more."""
_REMOVED_METHODS = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""Methods that MCP 2026-07-28 no longer has."""
_ACCOUNTED_ELSEWHERE = frozenset({"ping", "tools/call", "subscriptions/listen"})
"""Methods not counted here: dispatch counts calls, a stream counts when it begins, a ping never."""
_RELAYED_LISTS = frozenset({"prompts/list", "resources/list", "resources/templates/list"})
_ROOTS_CHANGED = "notifications/roots/list_changed"
_MAX_TARGET = 500
"""Characters of a request's target in the audit log."""
_PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host")


def build_gateway_server(
    gateway: Gateway, *, environ: Mapping[str, str] = os.environ, single_user: bool = True
) -> Server[Any]:
    """A low-level server for a gateway that is already running.

    Args:
        gateway: The gateway.
        environ: Where `PEGBOARD_MODE` may be.
        single_user: Whether everybody who can reach it without a token is the same person.
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
    middleware.profiles = lambda: gateway.board.policy.profiles
    listen.middleware = middleware

    def capabilities() -> JsonObject:
        passed = gateway.passthrough.capabilities(complete=gateway.knows_all_servers)
        return spill_capabilities(gateway.options) | passed

    mcp_private.advertise_capabilities(server, capabilities)
    gateway.discovery.on_lists_changed(changes.announce)
    return server


class GatewayMiddleware(PegboardMiddleware):
    """Routes each request of a client, and accounts for it."""

    gateway: Gateway
    single_user = True

    async def __call__(self, ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        if ctx.method in GREETINGS and not mcp_private.is_initialized(ctx):
            return await self.greet(ctx, call_next)
        if ctx.request_id is None or not mcp_private.is_initialized(ctx):
            if ctx.method == _ROOTS_CHANGED and mcp_private.is_initialized(ctx):
                relay, params = self.gateway.passthrough, ctx.params or {}
                await relay.notify(ctx.method, params, caller=self.caller(ctx), request=ctx)
            return await call_next(ctx)
        if ctx.method in _ACCOUNTED_ELSEWHERE:
            return await self._route(ctx, call_next)
        async with self.account(ctx):
            return await self._route(ctx, call_next)

    async def _route(self, ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        if self.answers_tools(ctx):
            return await self._answer_tools(ctx)
        if self.gateway.passthrough.handles(ctx.method):
            is_removed = ctx.method in _REMOVED_METHODS and mcp_private.get_era(ctx) == "modern"
            # The SDK answers that there is no such method, in the words of the protocol.
            return await (call_next(ctx) if is_removed else self._relay(ctx))
        if ctx.method in GREETINGS:
            return await self.greet(ctx, call_next)
        empty = self.answer_empty_list(ctx)
        return await call_next(ctx) if empty is None else empty

    def read_caller(self, ctx: mcp_private.Context) -> Caller:
        caller = super().read_caller(ctx)
        if ctx.request is None or caller.principal != LOCAL_CALLER.principal:
            return caller
        # A proxy or tunnel on this machine may forward requests of anybody, not only of the local
        # user.
        is_proxied = any(header in ctx.request.headers for header in _PROXY_HEADERS)
        is_local_user = self.single_user and not is_proxied
        return caller if is_local_user else replace(caller, anonymous=True)

    async def _answer_tools(self, ctx: mcp_private.Context) -> HandlerResult:
        limits, name = self.gateway.limits, str((ctx.params or {}).get("name"))
        if limits is not None and ctx.method == "tools/call" and name in META_TOOL_NAMES:
            # Dispatch counts calls to tools, but a call to a meta-tool may never reach dispatch.
            try:
                await limits.request(self.caller(ctx))
            except Busy as exc:
                return mcp_private.stamp_result(self.server, ctx, error_result(exc).wire)
            except ConfigError as exc:
                raise mcp_private.invalid_params(exc.message, exc.details or None) from exc
        self._begin_request()
        try:
            return await self.answer_tools(ctx)
        finally:
            self.gateway.drain.end()

    async def _relay(self, ctx: mcp_private.Context) -> HandlerResult:
        """Relay a request to the server that owns its prompt, resource or task."""
        caller = self.caller(ctx)
        self._begin_request()
        limits = self.gateway.limits
        counts_as_call = limits is not None and not ctx.method.endswith("/list")
        try:
            # Unlike the list of tools, these lists cannot be built before servers have started.
            if ctx.method in _RELAYED_LISTS:
                await self.gateway.wait_for_first_listing()
            async with limits.call(caller) if limits and counts_as_call else nullcontext():
                with mcp_private.relay_upstream_errors():
                    result = await self.gateway.passthrough.request(
                        ctx.method, ctx.params or {}, caller=caller, request=ctx
                    )
        except PegboardError as exc:
            raise mcp_private.request_failed(exc) from exc
        finally:
            self.gateway.drain.end()
        return mcp_private.stamp_result(self.server, ctx, result)

    def _begin_request(self) -> None:
        try:
            self.gateway.drain.begin()
        except Busy as exc:
            raise mcp_private.request_failed(exc) from exc

    @asynccontextmanager
    async def account(self, ctx: mcp_private.Context) -> AsyncGenerator[None]:
        """Count a request against its caller's limit, and record how it ended."""
        at, began = time.time(), time.perf_counter()
        outcome, error = "cancelled", None
        try:
            caller = self.caller(ctx)
        except ConfigError as exc:  # a mode that does not exist was requested
            raise mcp_private.invalid_params(exc.message, exc.details or None) from exc
        try:
            if self.gateway.limits is not None:
                try:
                    await self.gateway.limits.request(caller)
                except PegboardError as exc:
                    raise mcp_private.request_failed(exc) from exc
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
                target=_find_target(ctx.params or {}),
                principal=caller.principal,
                client=caller.client,
                session=caller.session,
                error=error,
            )
            record_event(self.gateway.board.parts.observer, event)


def _find_target(params: Mapping[str, Json]) -> str | None:
    """The URI, name or id that a request is about, for the audit log."""
    if uri_to_handle(params.get("uri")) is not None:
        return URI_PREFIX  # the handle of a stored result is a secret
    ref = params.get("ref")
    fields: Mapping[str, Json] = ref if isinstance(ref, dict) else params
    for key in ("uri", "name", "taskId", "names", "level"):
        if fields.get(key):
            return str(fields[key])[:_MAX_TARGET]
    wanted = params.get("notifications")
    uris = wanted.get("resourceSubscriptions") if isinstance(wanted, dict) else None
    return str(uris)[:_MAX_TARGET] if uris else None


class _SubscriptionHandler:
    """Serves notification streams: changed lists to everybody, changed resources to subscribers."""

    middleware: GatewayMiddleware

    def __init__(self, gateway: Gateway, changes: ListChangedNotifier) -> None:
        self._gateway = gateway
        self._changes = changes
        self._streams: Counter[str] = Counter()

    async def __call__(
        self, ctx: mcp_private.Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        async with self.middleware.account(ctx):  # only its beginning: a stream may last for days
            caller = self.middleware.caller(ctx)
            if self._gateway.limits is not None:
                try:
                    async with self._gateway.limits.call(caller):
                        pass  # it counts as one call, which is over at once
                except Busy as exc:
                    raise mcp_private.request_failed(exc) from exc
        uris = [str(uri) for uri in params.notifications.resource_subscriptions or ()]
        stream = _StreamBus(self._changes.bus)
        with self._count_stream(caller.principal, uris):
            downstream = build_downstream(caller, ctx, ctx.params or {})
            async with self._subscribed(Subscriber(downstream, stream, stream.updated), uris):
                return await ListenHandler(stream)(ctx, params)

    @contextmanager
    def _count_stream(self, principal: str, uris: list[str]) -> Generator[None]:
        """Limit the streams of each principal, so that nobody can take all of them."""
        total = self._streams.total()
        if self._streams[principal] >= MAX_STREAMS_PER_PRINCIPAL or total >= MAX_STREAMS:
            raise mcp_private.request_failed(
                Busy("You have too many notification streams open: close some first.")
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
        relay = self._gateway.passthrough
        wanted: list[str] = []
        try:
            for uri in uris:
                wanted.append(uri)
                # A resource that does not exist or is not permitted: acknowledged, never announced.
                with suppress(PegboardError):
                    await relay.subscribe(uri, subscriber)
            yield
        finally:
            # The client has left, which cancels this task; the servers must still be told.
            with anyio.move_on_after(_UNSUBSCRIBE_TIMEOUT, shield=True):
                for uri in wanted:
                    with suppress(PegboardError):
                        await relay.unsubscribe(uri, subscriber)
            relay.forget_subscriber(subscriber.key)


class _StreamBus:
    """The bus of one stream: changed lists, as for everybody, and updates of its own resources."""

    def __init__(self, lists: SubscriptionBus) -> None:
        self._lists = lists
        self._listeners: list[Callable[[ServerEvent], None]] = []

    async def publish(self, event: ServerEvent) -> None:
        for listener in self._listeners:
            listener(event)

    async def updated(self, uri: str) -> None:
        """Notify the client of this stream that a resource has changed."""
        await self.publish(ResourceUpdated(uri=uri))

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        stop = self._lists.subscribe(listener)

        def unsubscribe() -> None:
            stop()
            self._listeners.clear()

        return unsubscribe
