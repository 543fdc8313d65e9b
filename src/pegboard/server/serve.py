"""Serving a board of one's own: a low-level server with our middleware, on stdio or HTTP."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import anyio
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import ListenHandler
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from pegboard.core.calls import Caller
from pegboard.core.details import EXTENSION_ID
from pegboard.core.json import JsonObject, whole_number
from pegboard.core.options import FACES, Options, checked_face
from pegboard.errors import ConfigError
from pegboard.ports import Store
from pegboard.server import sdk
from pegboard.server.admission import Admission, Admit, SessionLimits, Sessions
from pegboard.server.answers import Shown
from pegboard.server.changes import ListChanges
from pegboard.server.environment import check_pins, forced_face, pins_from
from pegboard.server.guard import Guard, GuardMiddleware
from pegboard.server.middleware import OURS, PegboardMiddleware
from pegboard.server.operations import Operations
from pegboard.server.stdio import serve_on_stdio
from pegboard.upstream.sdk import our_version

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.routing import BaseRoute

    from pegboard.board import Pegboard
    from pegboard.server.auth import Auth

Listen: TypeAlias = Callable[
    [sdk.Context, SubscriptionsListenRequestParams], Awaitable[SubscriptionsListenResult]
]
"""Serves one stream of changes to a modern client."""


def build_server(board: Pegboard, *, environ: Mapping[str, str] = os.environ) -> Server[Any]:
    """A low-level server that shows this board."""
    board.options = replace(board.options, pins=pins_from(environ, board.options.pins))
    check_pins(environ, board.find)
    board.check()
    changes = ListChanges()
    operations = Operations.of(board)
    server = make_server(board, changes, ListenHandler(changes.bus), operations)
    install(board, server, board.parts.store, environ, changes=changes)
    sdk.offer(server, lambda: kept_results(board.options))
    return server


def kept_results(options: Options) -> JsonObject:
    """The capability of a server that keeps what is too large to be sent."""
    return {} if options.spill_tokens is None else {"resources": {}}


def make_server(
    board: Pegboard, changes: ListChanges, listen: Listen, operations: Operations | None = None
) -> Server[Any]:
    """A low-level server of a board's name that tells clients of changes; it answers nothing.

    `operations` are followed while it runs; a gateway follows its own.
    """

    @asynccontextmanager
    async def lifespan(server: Server[Any]) -> AsyncGenerator[JsonObject]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(changes.watch, board.on_change)
            if operations is not None:
                await operations.load()
                tasks.start_soon(operations.follow)
            board.is_served = True
            yield {}
            tasks.cancel_scope.cancel()

    return Server(
        board.name,
        version=board.version or our_version(),
        instructions=board.instructions,
        on_list_tools=answered_before,
        on_call_tool=answered_before,
        lifespan=lifespan,
        on_subscriptions_listen=listen,
        get_tool_input_schema=lambda name: _input_schema(board, name),
    )


def install(
    board: Shown,
    server: Server[Any],
    store: Store,
    environ: Mapping[str, str],
    *,
    kind: type[PegboardMiddleware] = PegboardMiddleware,
    changes: ListChanges | None = None,
) -> PegboardMiddleware:
    """Put the middleware on a server and advertise what it adds."""
    middleware = kind(board, server, store, forced_face=forced_face(environ), changes=changes)
    server.middleware.append(middleware)
    settings = {"methods": sorted(m for m in OURS if m not in ("tools/list", "tools/call")),
                "faces": list(FACES)}  # fmt: skip
    sdk.advertise(server, EXTENSION_ID, settings, tools_changed=True)
    return middleware


def run(
    board: Pegboard, *, http: str | None = None, environ: Mapping[str, str] = os.environ
) -> None:
    """Serve until stopped; over HTTP with whatever the board's application has beside `/mcp`.

    Raises:
        ConfigError: The address is taken, or other machines could reach it and nobody would be
            asked who they are.
    """
    if http is None:
        with suppress(KeyboardInterrupt):
            anyio.run(serve_stdio, board, environ)
        return
    from pegboard.server.auth import refuse_exposure
    from pegboard.server.listening import HttpServer, bound

    host, port = host_and_port(http)
    refuse_exposure(host, None, environ, allowed=True)
    sockets = bound(host, port)
    server = HttpServer(board.asgi(host, environ=environ))
    with suppress(KeyboardInterrupt):
        server.run(sockets=sockets)
    if not server.started:
        sys.exit(1)  # why, it has said


async def serve_stdio(board: Pegboard, environ: Mapping[str, str] = os.environ) -> None:
    """Serve one client on standard input and output."""
    await serve_on_stdio(build_server(board, environ=environ))


def http_app(
    board: Pegboard,
    *routes: BaseRoute,
    host: str = "127.0.0.1",
    environ: Mapping[str, str] = os.environ,
    auth: Auth | None = None,
) -> Starlette:
    """An ASGI application with `/mcp`, `/mcp/<face>` and further routes."""
    server = build_server(board, environ=environ)
    return asgi_app(server, Guard.bound_to(host), *routes, auth=auth)


def asgi_app(
    server: Server[Any],
    guard: Guard,
    *routes: BaseRoute,
    auth: Auth | None = None,
    stateless: bool = False,
    sessions: SessionLimits | None = None,
    admit: Admit | None = None,
) -> Starlette:
    """An ASGI application with `/mcp`, `/mcp/<face>` and further routes, all behind the guard.

    Args:
        server: What answers.
        guard: By which hosts and origins it can be reached.
        routes: Further routes; they look after themselves.
        auth: Protects the endpoints of the protocol.
        stateless: Gives clients of the older protocol no session, so that any replica can answer.
        sessions: How many of them there may be otherwise.
        admit: The rate limit of a caller who opens one.
    """
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.middleware import Middleware
    from starlette.routing import Route

    unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(transport_security=unguarded, stateless_http=stateless)
    if auth is not None:
        auth.protect(app)
    endpoint = next(r for r in app.routes if isinstance(r, Route) and r.path == "/mcp").endpoint
    app.router.routes.append(Route("/mcp/{face}", _FaceEndpoint(endpoint)))
    app.router.routes.extend(routes)
    admission = Middleware(
        Admission,
        sessions=None if stateless else Sessions(sessions or SessionLimits()),
        exists=partial(sdk.has_session, server),
        end_session=partial(sdk.end_session, server),
        legacy=sdk.LEGACY_VERSIONS,
        admit=admit,
    )
    app.user_middleware.append(admission)
    app.user_middleware.insert(0, Middleware(GuardMiddleware, guard=guard))
    return app


class _FaceEndpoint:
    """`/mcp/<face>`: the same endpoint as `/mcp`, for the faces that exist."""

    def __init__(self, endpoint: Any) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.responses import JSONResponse

        face = scope["path_params"]["face"]
        try:
            checked_face(face)
        except ConfigError as exc:
            await JSONResponse({"error": exc.message}, status_code=404)(scope, receive, send)
        else:
            await self._endpoint(scope, receive, send)


def host_and_port(address: str) -> tuple[str, int]:
    """`127.0.0.1:8000`, `[::1]:8000` or `:8000` (loopback) in two parts."""
    host, colon, port = address.rpartition(":")
    number = whole_number(port)
    if not colon or number is None or number > 65535:
        raise ConfigError(f"{address!r} is not HOST:PORT, such as 127.0.0.1:8000.")
    return host.strip("[]") or "127.0.0.1", number


async def answered_before(ctx: Any, params: Any) -> NoReturn:
    """A handler for methods that the middleware answers: it makes their capability known."""
    raise AssertionError("the middleware answers this method")


def _input_schema(board: Pegboard, name: str) -> Mapping[str, Any] | None:
    """The schema by which the SDK checks `Mcp-Param` headers, if the caller has such a tool."""
    who = sdk.current_identity()
    caller = Caller(who.principal, scopes=who.scopes, groups=who.groups)
    found = board.policy.visible(board.known_catalog, caller).matching(name)
    return found[0].input_schema if len(found) == 1 else None
