"""Serving a board: a low-level server with our middleware, on stdio or HTTP.

    build_server(board)   the server of the SDK, with our middleware on it
    serve_stdio           one client, on standard input and output
    board_app, asgi_app   an ASGI application: `/mcp`, `/mcp/<mode>`, and further routes

Requests of the application pass, from the outside in:

    HostGuardMiddleware   the host and origin in the headers      (`host_guard`)
    authentication        bearer tokens, where there are any      (`auth`)
    Admission             size, values, number of sessions        (`http_sessions`)
    the SDK's endpoint
"""

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
from pegboard.core.json import JsonObject, whole_number
from pegboard.core.options import MODES, Options, check_mode
from pegboard.core.tool_parser import EXTENSION_ID
from pegboard.errors import ConfigError
from pegboard.observe.logs import print_line
from pegboard.ports import Store
from pegboard.sandbox import check_sandbox
from pegboard.server import mcp_private
from pegboard.server.board_operations import BoardOperations, get_operations
from pegboard.server.environment import check_pins, merge_pins, mode_from_environ
from pegboard.server.host_guard import HostGuard, HostGuardMiddleware
from pegboard.server.http_sessions import Admission, Admit, OpenSessions, SessionLimits
from pegboard.server.list_changed import ListChangedNotifier
from pegboard.server.middleware import TOOL_METHODS, PegboardMiddleware, ServedBoard
from pegboard.server.stdio import serve_on_stdio
from pegboard.upstream.client_sdk import get_version

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.routing import BaseRoute

    from pegboard.board import Pegboard
    from pegboard.server.auth import Auth


Listen: TypeAlias = Callable[
    [mcp_private.Context, SubscriptionsListenRequestParams], Awaitable[SubscriptionsListenResult]
]
"""Serves one stream of changes to a modern client."""


def build_server(board: Pegboard, *, environ: Mapping[str, str] = os.environ) -> Server[Any]:
    """A low-level `Server` of the SDK that shows this board, for any transport of the SDK.

    Args:
        board: What it shows.
        environ: Has `PEGBOARD_MODE` and `ALWAYS_AVAILABLE_TOOLS`; that of the process by default.

    Raises:
        ConfigError: The board or the environment names a tool or mode that does not exist.
    """
    check_sandbox(board.options, mode_from_environ(environ))
    board.options = replace(board.options, pins=merge_pins(environ, board.options.pins))
    # At the start, where somebody sees it, rather than in an answer to a client.
    check_pins(environ, board.find)
    board.check()
    changes = ListChangedNotifier()
    operations = get_operations(board)
    server = make_server(board, changes, ListenHandler(changes.bus), operations)
    install_middleware(board, server, board.parts.store, environ, changes=changes)
    mcp_private.advertise_capabilities(server, lambda: spill_capabilities(board.options))
    return server


def spill_capabilities(options: Options) -> JsonObject:
    """The capability of a server that stores results which are too large to send: as resources."""
    return {} if options.spill_tokens is None else {"resources": {}}


def make_server(
    board: Pegboard,
    changes: ListChangedNotifier,
    listen: Listen,
    operations: BoardOperations | None = None,
) -> Server[Any]:
    """A low-level server of a board's name that notifies clients of changes; it answers nothing.

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
            tasks.cancel_scope.cancel()  # the group would wait for these tasks forever

    return Server(
        board.name,
        version=board.version or get_version(),
        instructions=board.instructions,
        on_list_tools=unreachable_handler,
        on_call_tool=unreachable_handler,
        lifespan=lifespan,
        on_subscriptions_listen=listen,
        get_tool_input_schema=lambda name: _input_schema(board, name),
    )


def install_middleware(
    board: ServedBoard,
    server: Server[Any],
    store: Store,
    environ: Mapping[str, str],
    *,
    kind: type[PegboardMiddleware] = PegboardMiddleware,
    changes: ListChangedNotifier | None = None,
) -> PegboardMiddleware:
    """Put the middleware on a server and advertise what it adds."""
    middleware = kind(board, server, store, forced_mode=mode_from_environ(environ), changes=changes)
    server.middleware.append(middleware)
    settings = {"methods": sorted(m for m in TOOL_METHODS if m not in ("tools/list", "tools/call")),
                "modes": list(MODES)}  # fmt: skip
    mcp_private.advertise_extension(server, EXTENSION_ID, settings, tools_changed=True)
    return middleware


def run_board(
    board: Pegboard, *, http: str | None = None, environ: Mapping[str, str] = os.environ
) -> None:
    """Serve until stopped; over HTTP with everything that the board's application has.

    Raises:
        ConfigError: The address is in use, or other machines could reach it without
            authentication.
    """
    if http is None:
        with suppress(KeyboardInterrupt):
            anyio.run(serve_stdio, board, environ)
        return
    from pegboard.server.auth import refuse_exposure
    from pegboard.server.http_server import HttpServer
    from pegboard.sockets import bind_sockets

    host, port = parse_address(http)
    refuse_exposure(host, None, environ, allowed=True)
    sockets = bind_sockets(host, port)  # before anything is built: an address in use is common
    server = HttpServer(board.asgi(host, environ=environ))
    print_urls(host, sockets[0].getsockname()[1])
    with suppress(KeyboardInterrupt):
        server.run(sockets=sockets)
    if not server.started:
        sys.exit(1)  # it has logged the reason


def print_urls(host: str, port: int) -> None:
    """Print where clients connect and where the dashboard is, on stderr."""
    # Nobody can open the address that stands for all interfaces.
    name = {"0.0.0.0": "localhost", "::": "localhost"}.get(host, host)
    address = f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
    print_line(f"clients connect to {address}/mcp")
    print_line(f"the dashboard is at {address}/")


async def serve_stdio(board: Pegboard, environ: Mapping[str, str] = os.environ) -> None:
    """Serve one client on standard input and output."""
    await serve_on_stdio(build_server(board, environ=environ))


def board_app(
    board: Pegboard,
    *routes: BaseRoute,
    host: str = "127.0.0.1",
    environ: Mapping[str, str] = os.environ,
    auth: Auth | None = None,
) -> Starlette:
    """An ASGI application with `/mcp`, `/mcp/<mode>` and further routes."""
    server = build_server(board, environ=environ)
    return asgi_app(server, HostGuard.bound_to(host), *routes, auth=auth)


def asgi_app(
    server: Server[Any],
    guard: HostGuard,
    *routes: BaseRoute,
    auth: Auth | None = None,
    stateless: bool = False,
    sessions: SessionLimits | None = None,
    admit: Admit | None = None,
) -> Starlette:
    """An ASGI application with `/mcp`, `/mcp/<mode>` and further routes, all behind the guard.

    Args:
        server: What answers.
        guard: The hosts and origins that requests may name.
        routes: Further routes; they have their own authentication.
        auth: Protects the endpoints of the protocol.
        stateless: Gives legacy clients no session, so that any replica can answer.
        sessions: The limits on sessions otherwise.
        admit: The rate limit of a caller who opens a session.
    """
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.middleware import Middleware
    from starlette.routing import Route

    # The SDK compares hosts with fixed values; the guard also knows IP addresses and this machine.
    unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(transport_security=unguarded, stateless_http=stateless)
    if auth is not None:
        auth.protect(app)
    endpoint = next(r for r in app.routes if isinstance(r, Route) and r.path == "/mcp").endpoint
    app.router.routes.append(Route("/mcp/{mode}", _ModeEndpoint(endpoint)))
    app.router.routes.append(Route("/mcp/profiles/{profile}", endpoint))
    app.router.routes.append(Route("/mcp/profiles/{profile}/{mode}", _ModeEndpoint(endpoint)))
    app.router.routes.extend(routes)
    admission = Middleware(
        Admission,
        sessions=None if stateless else OpenSessions(sessions or SessionLimits()),
        exists=partial(mcp_private.has_session, server),
        end_session=partial(mcp_private.end_session, server),
        legacy=mcp_private.LEGACY_VERSIONS,
        admit=admit,
    )
    app.user_middleware.append(admission)  # innermost: it counts per principal, so after `auth`
    app.user_middleware.insert(0, Middleware(HostGuardMiddleware, guard=guard))
    return app


class _ModeEndpoint:
    """`/mcp/<mode>`: the same endpoint as `/mcp`, for the modes that exist."""

    def __init__(self, endpoint: Any) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.responses import JSONResponse

        mode = scope["path_params"]["mode"]
        try:
            check_mode(mode)
        except ConfigError as exc:
            await JSONResponse({"error": exc.message}, status_code=404)(scope, receive, send)
        else:
            await self._endpoint(scope, receive, send)


def parse_address(address: str) -> tuple[str, int]:
    """Host and port of `127.0.0.1:8000`, `[::1]:8000` or `:8000` (loopback)."""
    host, colon, port = address.rpartition(":")
    number = whole_number(port)
    if not colon or number is None or number > 65535:
        raise ConfigError(f"{address!r} is not HOST:PORT, such as 127.0.0.1:8000.")
    return host.strip("[]") or "127.0.0.1", number


async def unreachable_handler(ctx: Any, params: Any) -> NoReturn:
    """A handler for methods that the middleware answers; it makes the SDK advertise them."""
    raise AssertionError("the middleware answers this method")


def _input_schema(board: Pegboard, name: str) -> Mapping[str, Any] | None:
    """The schema by which the SDK checks `Mcp-Param` headers, if the caller has such a tool."""
    who = mcp_private.current_identity()
    caller = Caller(who.principal, scopes=who.scopes, groups=who.groups)
    found = board.policy.visible(board.known_catalog, caller).matching(name)
    # A name of several tools has no one schema: dispatch answers with the candidates.
    return found[0].input_schema if len(found) == 1 else None
