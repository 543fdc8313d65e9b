"""Every place where the server side touches names of the SDK that are private or provisional.

Each has a contract test, so that a new SDK release that moves one of them fails there and nowhere
else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
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


def get_lowlevel_server(server: object) -> Server[Any]:
    """The low-level server inside a `Server`, an `MCPServer` or a FastMCP server."""
    if isinstance(server, Server):
        return server
    for attribute in ("_lowlevel_server", "_mcp_server"):
        inner = getattr(server, attribute, None)
        if isinstance(inner, Server):
            return inner
    raise ConfigError(
        f"Cannot attach to {type(server).__name__}: give a low-level Server, an MCPServer or a "
        "FastMCP 4 server."
    )


def advertise_extension(
    server: Server[Any], extension_id: str, settings: JsonObject, *, tools_changed: bool
) -> None:
    """Make an extension known in both eras, and `tools.listChanged` where the list may change.

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
    """Have a server advertise further capabilities, as they are when a client asks."""
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


@contextmanager
def relay_upstream_errors() -> Generator[None]:
    """Let an upstream's own JSON-RPC error through with its code, message and data."""
    try:
        yield
    except PegboardError as exc:
        if "code" not in exc.details:
            raise
        raise MCPError(exc.details["code"], exc.message, exc.details.get("data")) from exc


def get_era(ctx: Context) -> Era:
    return "modern" if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else "legacy"


def get_connection(ctx: Context) -> Connection:
    return ctx.session._connection  # pyright: ignore[reportPrivateUsage] the only way to per-connection state


def is_initialized(ctx: Context) -> bool:
    """Whether the connection may be served; a legacy one must have shaken hands."""
    return get_connection(ctx).initialize_accepted


def get_session_id(ctx: Context) -> str | None:
    """What names a legacy session: its HTTP id, or a random one kept on the connection."""
    if get_era(ctx) == "modern":
        return None
    connection = get_connection(ctx)
    if ctx.request is not None and connection.session_id is None:
        return None  # HTTP without sessions: the connection is there for this request alone
    if connection.session_id is None and _SESSION_KEY not in connection.state:
        connection.state[_SESSION_KEY] = uuid4().hex
    return connection.session_id or connection.state[_SESSION_KEY]


Envelope: TypeAlias = tuple[object, object, object]
"""What a modern request says of its client; a legacy one says nothing."""
_ABSENT = object()


def get_envelope(params: Mapping[str, Json]) -> Envelope:
    """The envelope that these params have in their `_meta`."""
    meta = params.get("_meta")
    said: Mapping[str, object] = meta if isinstance(meta, dict) else {}
    return (
        said.get(PROTOCOL_VERSION_META_KEY, _ABSENT),
        said.get(CLIENT_INFO_META_KEY, _ABSENT),
        said.get(CLIENT_CAPABILITIES_META_KEY, _ABSENT),
    )


def open_direct_connection(server: Server[Any], ctx: Context) -> DirectConnection | None:
    """The connection of a request that the SDK serves, if further ones can be served beside it."""
    outbound = ctx.session._request_outbound  # pyright: ignore[reportPrivateUsage]
    inner = getattr(outbound, "_inner", outbound)
    if not is_initialized(ctx) or ctx.request is not None or not isinstance(inner, DispatchContext):
        return None
    return DirectConnection(server, ctx, outbound, inner)


class DirectConnection:
    """A connection on which the SDK has served a request; further ones need not pass its queues.

    They are answered as the SDK's own dispatcher has them answered: by the server's middleware and
    handlers, with a way back to the client.
    """

    def __init__(
        self, server: Server[Any], ctx: Context, outbound: object, inner: DispatchContext[Any]
    ) -> None:
        self.envelope = get_envelope(ctx.params or {})
        self._guarded: Callable[[Any], Any] | None = None if inner is outbound else type(outbound)
        self._seen = inner
        self._runner = ServerRunner(server, get_connection(ctx), ctx.lifespan_context)

    def asked(self, method: str, number: RequestId, params: JsonObject) -> DirectRequest:
        """One request, to be answered."""
        beside = DispatchContext(
            transport=self._seen.transport,
            _dispatcher=self._seen._dispatcher,  # pyright: ignore[reportPrivateUsage]
            _request_id=number,
            _progress_token=progress_token_from_params(params),
        )
        channel = self._guarded(beside) if self._guarded else beside
        return DirectRequest(beside, lambda: self._runner.on_request(channel, method, params))


class DirectRequest:
    """A request on a connection that the SDK serves."""

    __slots__ = ("_beside", "_run")

    def __init__(
        self, beside: DispatchContext[Any], run: Callable[[], Awaitable[JsonObject]]
    ) -> None:
        self._beside = beside
        self._run = run

    async def result(self) -> JsonObject:
        """Its result. Raises what `error_of` understands."""
        try:
            return await self._run()
        finally:
            self._beside.close()

    def give_up(self) -> None:
        """Let its handler know that nobody waits for it."""
        self._beside.cancel_requested.set()


def to_error_data(exc: Exception) -> ErrorData | None:
    """What a client is told of a request that failed; `None` where that is nobody's business."""
    return handler_exception_to_error_data(exc)


def connection_closed() -> ErrorData:
    """What a client is told of a request that is not answered because serving ends."""
    return ErrorData(code=CONNECTION_CLOSED, message="Connection closed")


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom a request stands for, and what rules may know of them."""

    principal: str = LOCAL_CALLER.principal
    scopes: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()


def identity_from_context(ctx: Context) -> Identity:
    """Whom the request's access token stands for; `local` where nobody had to say who they are."""
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
    return Identity(token.subject or token.client_id, frozenset(token.scopes), frozenset(groups))


def get_client_info(ctx: Context) -> tuple[str | None, str | None]:
    """Name and version that the client gives itself."""
    params = ctx.session.client_params
    return (params.client_info.name, params.client_info.version) if params else (None, None)


def stamp_result(server: Server[Any], ctx: Context, result: JsonObject) -> JsonObject:
    """A result of ours with what the modern era requires of every result, and the legacy lacks.

    Over HTTP it is made writable first: the SDK breaks a stream off that it cannot encode.
    """
    if ctx.request is not None:
        result = writable(result)
    if get_era(ctx) == "legacy":
        plain = {key: value for key, value in result.items() if key != "resultType"}
        return (
            plain
            if is_version_at_least(ctx.protocol_version, _LINKS_SINCE)
            else links_to_text(plain)
        )
    meta: Mapping[str, Json] = result.get("_meta") or {}
    return {
        **result,
        "resultType": result.get("resultType", "complete"),
        "_meta": {**meta, _SERVER_INFO: meta.get(_SERVER_INFO) or server.server_info_stamp},
    }


LEGACY_VERSIONS = tuple(HANDSHAKE_PROTOCOL_VERSIONS)
"""The versions of the protocol that begin with a handshake and may have sessions."""


def has_session(server: Server[Any], session: str) -> bool:
    """Whether a session of the older protocol is open on an HTTP server."""
    return session in server.session_manager._server_instances  # pyright: ignore[reportPrivateUsage]


async def end_session(server: Server[Any], session: str) -> None:
    """End a session as if its client had; its id is answered with 404 from now on."""
    manager = server.session_manager
    transport = manager._server_instances.get(session)  # pyright: ignore[reportPrivateUsage]
    if transport is not None:
        await manager._discard_session(session, transport)  # pyright: ignore[reportPrivateUsage]


async def notify_tools_changed(ctx: Context) -> None:
    """Tell a legacy client that its list of tools changed, before this request is answered.

    On HTTP the notification rides on the request's own stream: on the standing one it could arrive
    after the result, and would be lost on a client that opened none.
    """
    changed = ToolListChangedNotification()
    await ctx.session.send_notification(changed, related_request_id=ctx.request_id)


def invalid_params(message: str, data: Json = None) -> MCPError:
    """JSON-RPC -32602."""
    return MCPError(INVALID_PARAMS, message, data)


def request_failed(exc: PegboardError) -> MCPError:
    """JSON-RPC -32603 that says what could not be done, and who stood in the way."""
    return MCPError(INTERNAL_ERROR, exc.message, {"kind": exc.kind, **exc.details})


def error_name(exc: Exception) -> str:
    """What kind of error a request ended with: ours by name, others by their JSON-RPC code."""
    if not isinstance(exc, MCPError):
        return type(exc).__name__
    data = exc.data
    return str(data["kind"]) if isinstance(data, dict) and "kind" in data else str(exc.code)


def internal_error() -> MCPError:
    """JSON-RPC -32603, without a word about what went wrong inside."""
    return MCPError(INTERNAL_ERROR, "Internal error: the server's log has the details.")
