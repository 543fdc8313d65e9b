"""All uses, on the server side, of private or provisional names of the SDK.

Each has a contract test (`tests/contract/test_server_sdk.py`), so that an SDK release which moves
one of them fails there and nowhere else.

    what we advertise    the handshake: capabilities, our extension, `tools.listChanged`
    what a request says  era, connection, session, client, identity
    direct requests      requests that bypass the SDK's dispatcher (`stdio_fast_path`)
    what we answer       results with what the era requires; JSON-RPC errors
    HTTP sessions        of the older protocol: whether one is open, and how to end it
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import uuid4

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.runner import ServerRunner
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import (
    _JSONRPCDispatchContext as DispatchContext,  # pyright: ignore[reportPrivateUsage]
)
from mcp.shared.jsonrpc_dispatcher import (
    handler_exception_to_error_data,
    progress_token_from_params,
)
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    RequestId,
    ServerCapabilities,
    ToolListChangedNotification,
)
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    MODERN_PROTOCOL_VERSIONS,
    is_version_at_least,
)

from pegboard.core.calls import LOCAL_CALLER, Era
from pegboard.core.json import Json, JsonObject, writable
from pegboard.core.results.blob_links import links_to_text
from pegboard.errors import ConfigError, PegboardError

Context: TypeAlias = ServerRequestContext[Any, Any]

_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
_SESSION_KEY = "pegboard/session"
_LINKS_SINCE = "2025-06-18"

# What we advertise --------------------------------------------------------------------------------


def get_lowlevel_server(server: object) -> Server[Any]:
    """The low-level server inside a `Server`, an `MCPServer` or a FastMCP server."""
    if isinstance(server, Server):
        return server
    for attribute in ("_lowlevel_server", "_mcp_server"):
        inner = getattr(server, attribute, None)
        if isinstance(inner, Server):
            return inner
    raise ConfigError(
        f"Cannot attach to {type(server).__name__}: pass a low-level Server, an MCPServer or a "
        "FastMCP 4 server."
    )


def advertise_extension(
    server: Server[Any], extension_id: str, settings: JsonObject, *, tools_changed: bool
) -> None:
    """Advertise an extension in both eras, and `tools.listChanged` where the list may change.

    A legacy `initialize` result has no `extensions`, so there it is `experimental`.
    """
    server.extensions[extension_id] = settings
    make = server.create_initialization_options

    def create(
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, JsonObject] | None = None,
        extensions: dict[str, JsonObject] | None = None,
    ) -> Any:
        made = make(
            notification_options,
            {extension_id: settings, **(experimental_capabilities or {})},
            extensions,
        )
        if tools_changed and made.capabilities.tools is not None:
            made.capabilities.tools.list_changed = True
        return made

    server.create_initialization_options = create  # pyright: ignore[reportAttributeAccessIssue] per instance


def advertise_capabilities(server: Server[Any], capabilities: Callable[[], JsonObject]) -> None:
    """Advertise further capabilities, as they are when a client connects."""
    make = server.get_capabilities

    def get(*args: Any, **options: Any) -> ServerCapabilities:
        made = make(*args, **options).model_dump(by_alias=True, exclude_none=True)
        more = capabilities()
        merged = {**more, **made}
        if extensions := more.get("extensions"):
            # A legacy `initialize` result has no `extensions`, so there they are `experimental`.
            for key in ("extensions", "experimental"):
                merged[key] = {**extensions, **(made.get(key) or {})}
        return ServerCapabilities.model_validate(merged)

    server.get_capabilities = get  # pyright: ignore[reportAttributeAccessIssue] per instance


# What a request says ------------------------------------------------------------------------------


def get_era(ctx: Context) -> Era:
    return "modern" if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else "legacy"


def get_connection(ctx: Context) -> Connection:
    return ctx.session._connection  # pyright: ignore[reportPrivateUsage] the only way to per-connection state


def is_initialized(ctx: Context) -> bool:
    """Whether the connection may be served; a legacy one must have completed its handshake."""
    return get_connection(ctx).initialize_accepted


def get_session_id(ctx: Context) -> str | None:
    """The id of a legacy session: that of HTTP, or a random one stored on the connection."""
    if get_era(ctx) == "modern":
        return None
    connection = get_connection(ctx)
    if ctx.request is not None and connection.session_id is None:
        return None  # HTTP without sessions: the connection only exists for this request
    if connection.session_id is None and _SESSION_KEY not in connection.state:
        connection.state[_SESSION_KEY] = uuid4().hex
    return connection.session_id or connection.state[_SESSION_KEY]


def get_client_info(ctx: Context) -> tuple[str | None, str | None]:
    """Name and version of the client, as it reports them."""
    params = ctx.session.client_params
    return (params.client_info.name, params.client_info.version) if params else (None, None)


@dataclass(frozen=True, slots=True)
class Identity:
    """The principal of a request, and what else rules may refer to."""

    principal: str = LOCAL_CALLER.principal
    scopes: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    token: str | None = field(default=None, repr=False)


def identity_from_context(ctx: Context) -> Identity:
    """The identity in the request's access token; `local` where there is no authentication."""
    user = ctx.request.scope.get("user") if ctx.request is not None else None
    return _identity(getattr(user, "access_token", None))


def identity_from_scope(scope: Mapping[str, Any]) -> Identity:
    """The same, for an HTTP request that has not reached the SDK yet."""
    return _identity(getattr(scope.get("user"), "access_token", None))


def current_identity() -> Identity:
    """The same, where the SDK calls us with a name alone, in the task of an HTTP request."""
    return _identity(get_access_token())


def _identity(token: AccessToken | None) -> Identity:
    if token is None:
        return Identity()
    groups = (token.claims or {}).get("groups") or ()
    return Identity(
        token.subject or token.client_id,
        frozenset(token.scopes),
        frozenset(groups),
        token.token or None,  # empty unless a server exchanges it (`JwtTokens.keep_token`)
    )


# Direct requests ----------------------------------------------------------------------------------

Envelope: TypeAlias = tuple[object, object, object]
"""What a modern request says about its client; a legacy one says nothing."""
_ABSENT = object()


def get_envelope(params: Mapping[str, Json]) -> Envelope:
    """The envelope that these params have in their `_meta`."""
    meta = params.get("_meta")
    given: Mapping[str, object] = meta if isinstance(meta, dict) else {}
    return (
        given.get(PROTOCOL_VERSION_META_KEY, _ABSENT),
        given.get(CLIENT_INFO_META_KEY, _ABSENT),
        given.get(CLIENT_CAPABILITIES_META_KEY, _ABSENT),
    )


def open_direct_connection(server: Server[Any], ctx: Context) -> DirectConnection | None:
    """The connection of a request that the SDK serves, if others can be served directly."""
    outbound = ctx.session._request_outbound  # pyright: ignore[reportPrivateUsage]
    inner = getattr(outbound, "_inner", outbound)
    if not is_initialized(ctx) or ctx.request is not None or not isinstance(inner, DispatchContext):
        return None
    return DirectConnection(server, ctx, outbound, inner)


class DirectConnection:
    """A connection on which the SDK has served a request, so that others can skip its queues.

    They are answered as the SDK's own dispatcher would: by the server's middleware and handlers,
    which can send requests and notifications back to the client.
    """

    def __init__(
        self, server: Server[Any], ctx: Context, outbound: object, inner: DispatchContext[Any]
    ) -> None:
        self.envelope = get_envelope(ctx.params or {})
        # In some eras the SDK wraps the context, to forbid requests to the client.
        self._wrap: Callable[[Any], Any] | None = None if inner is outbound else type(outbound)
        self._served = inner
        self._runner = ServerRunner(server, get_connection(ctx), ctx.lifespan_context)

    def open_request(self, method: str, number: RequestId, params: JsonObject) -> DirectRequest:
        """A request, ready to be answered."""
        context = DispatchContext(
            transport=self._served.transport,
            _dispatcher=self._served._dispatcher,  # pyright: ignore[reportPrivateUsage]
            _request_id=number,
            _progress_token=progress_token_from_params(params),
        )
        channel = self._wrap(context) if self._wrap else context
        return DirectRequest(context, lambda: self._runner.on_request(channel, method, params))


class DirectRequest:
    """A request on a `DirectConnection`."""

    __slots__ = ("_context", "_run")

    def __init__(
        self, context: DispatchContext[Any], run: Callable[[], Awaitable[JsonObject]]
    ) -> None:
        self._context = context
        self._run = run

    async def result(self) -> JsonObject:
        """Its result; `to_error_data` converts what this raises."""
        try:
            return await self._run()
        finally:
            self._context.close()

    def cancel(self) -> None:
        """Notify its handler that nobody waits for the result."""
        self._context.cancel_requested.set()


# What we answer -----------------------------------------------------------------------------------


def stamp_result(server: Server[Any], ctx: Context, result: JsonObject) -> JsonObject:
    """A result with the fields that the modern era requires, and without those in the legacy one.

    Over HTTP it is made encodable first: the SDK would abort the stream otherwise.
    """
    if ctx.request is not None:
        result = writable(result)
    if get_era(ctx) == "legacy":
        plain = {key: value for key, value in result.items() if key != "resultType"}
        has_links = is_version_at_least(ctx.protocol_version, _LINKS_SINCE)
        return plain if has_links else links_to_text(plain)
    meta: Mapping[str, Json] = result.get("_meta") or {}
    return {
        **result,
        "resultType": result.get("resultType", "complete"),
        "_meta": {**meta, _SERVER_INFO: meta.get(_SERVER_INFO) or server.server_info_stamp},
    }


async def notify_tools_changed(ctx: Context) -> None:
    """Notify a legacy client that its list of tools changed, before this request is answered.

    Over HTTP the notification is sent on the stream of the request itself: on the client's `GET`
    stream it could arrive after the result, and a client that opened none would not get it.
    """
    changed = ToolListChangedNotification()
    await ctx.session.send_notification(changed, related_request_id=ctx.request_id)


@contextmanager
def relay_upstream_errors() -> Generator[None]:
    """Relay an upstream's own JSON-RPC error with its code, message and data."""
    try:
        yield
    except PegboardError as exc:
        if "code" not in exc.details:
            raise
        raise MCPError(exc.details["code"], exc.message, exc.details.get("data")) from exc


def to_error_data(exc: Exception) -> ErrorData | None:
    """The JSON-RPC error of a request that failed; `None` for a bug, which has none."""
    return handler_exception_to_error_data(exc)


def connection_closed() -> ErrorData:
    """The JSON-RPC error of a request that is not answered because the server stops."""
    return ErrorData(code=CONNECTION_CLOSED, message="Connection closed")


def invalid_params(message: str, data: Json = None) -> MCPError:
    """JSON-RPC -32602."""
    return MCPError(INVALID_PARAMS, message, data)


def request_failed(exc: PegboardError) -> MCPError:
    """JSON-RPC -32603 with the message, kind and details of one of our errors."""
    return MCPError(INTERNAL_ERROR, exc.message, {"kind": exc.kind, **exc.details})


def internal_error() -> MCPError:
    """JSON-RPC -32603 for a bug, without internal details."""
    return MCPError(INTERNAL_ERROR, "Internal error: the server's log has the details.")


def error_name(exc: Exception) -> str:
    """The name of an error, for the log: the kind of ours, the JSON-RPC code of others."""
    if not isinstance(exc, MCPError):
        return type(exc).__name__
    data = exc.data
    return str(data["kind"]) if isinstance(data, dict) and "kind" in data else str(exc.code)


# HTTP sessions ------------------------------------------------------------------------------------

LEGACY_VERSIONS = tuple(HANDSHAKE_PROTOCOL_VERSIONS)
"""The versions of the protocol that begin with a handshake and may have sessions."""


def has_session(server: Server[Any], session: str) -> bool:
    """Whether a session of the older protocol is open on an HTTP server."""
    return session in server.session_manager._server_instances  # pyright: ignore[reportPrivateUsage]


async def end_session(server: Server[Any], session: str) -> None:
    """End a session as if its client had; requests with its id then get 404."""
    manager = server.session_manager
    transport = manager._server_instances.get(session)  # pyright: ignore[reportPrivateUsage]
    if transport is not None:
        await manager._discard_session(session, transport)  # pyright: ignore[reportPrivateUsage]
