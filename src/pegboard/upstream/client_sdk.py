"""The SDK's client side, and everything of it that is provisional or private, in one place.

`tests/contract/test_client_sdk.py` holds what is used here: a new SDK version that breaks one of
these fails there, not in a relayed call.

A `ClientSession` negotiates the era and follows `subscriptions/listen`; relayed messages go past
it. `RelayDispatcher` makes that possible with public means: it is handed to the session as its
dispatcher, passes the session's own requests on, and keeps every message that the server sends by
itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, Protocol, cast

import anyio
from anyio.abc import TaskStatus
from mcp.client._probe import negotiate_auto
from mcp.client._transport import ReadStream, WriteStream
from mcp.client.session import ClientSession
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.server.context import ServerRequestContext
from mcp.shared._httpx_utils import request_within_origin, sse_within_origin
from mcp.shared._otel import inject_trace_context, otel_span
from mcp.shared.dispatcher import (
    CallOptions,
    DispatchContext,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    Outbound,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    UNSUPPORTED_PROTOCOL_VERSION,
    URL_ELICITATION_REQUIRED,
    Implementation,
)
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from opentelemetry.baggage import get_all
from opentelemetry.trace import (
    ProxyTracerProvider,
    SpanKind,
    get_current_span,
    get_tracer_provider,
)

from pegboard.core.calls import Era
from pegboard.core.json import Json, JsonObject

__all__ = [
    "CLIENT_INFO",
    "CONNECTION_CLOSED",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "PROBE_TIMEOUT",
    "URL_ELICITATION_REQUIRED",
    "CallOptions",
    "ClientSession",
    "DownstreamChannel",
    "HeaderMap",
    "InboundHandler",
    "MCPError",
    "ReadStream",
    "RelayDispatcher",
    "WriteStream",
    "build_headers",
    "build_http_error",
    "follow_changes",
    "get_version",
    "is_connection_closed",
    "is_http_error",
    "is_session_expired",
    "negotiate",
    "open_session",
    "read_header_map",
    "request_within_origin",
    "sse_within_origin",
    "trace_request",
]

HeaderMap = Mapping[tuple[str, ...], str]
PROBE_TIMEOUT: Final = 1.0
"""Seconds that a server may leave the question for its era unanswered before it gets the older
handshake too."""


def get_version() -> str:
    """The version that we give ourselves."""
    try:
        return version("pegboard")
    except PackageNotFoundError:  # a source tree
        return "0"


CLIENT_INFO: Final[JsonObject] = {"name": "pegboard", "version": get_version()}


class InboundHandler(Protocol):
    """Who is told what a server sends by itself."""

    async def on_request(self, method: str, params: Mapping[str, Json] | None) -> JsonObject: ...

    async def on_notify(self, method: str, params: Mapping[str, Json] | None) -> None: ...


class RelayDispatcher:
    """A dispatcher whose inbound side goes to an `Inbox`, and which remembers how it was greeted.

    Only the session uses `send_raw_request` of this class; relayed requests go to `inner` at once.

    Servers on old SDKs never answer `server/discover`, because it comes before the handshake. The
    SDK waits ten seconds for them. Here a server that is silent for `silence` seconds is sent the
    handshake as well, and the first answer counts: a server that is merely slow to start reads both
    and answers in order. `None` waits as the SDK does, for transports where each request has an
    answer of its own.
    """

    def __init__(
        self,
        inner: JSONRPCDispatcher[TransportContext],
        inbox: InboundHandler,
        capabilities: JsonObject,
        *,
        silence: float | None = None,
    ) -> None:
        self.inner = inner
        self.ended = anyio.Event()
        self.greeting: JsonObject = {}
        self._inbox = inbox
        self._capabilities = capabilities
        self._silence = silence
        self._handshake: JsonObject | MCPError | None = None

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if method not in ("initialize", "server/discover"):
            return await self.inner.send_raw_request(method, params, opts)
        declared = self._declare(method, params)
        if method == "initialize" and self._handshake is not None:
            result = self._early_handshake()
        elif method == "server/discover" and self._silence is not None:
            result = await self._discover(declared, opts, self._silence)
        else:
            result = await self.inner.send_raw_request(method, declared, opts)
        self.greeting = result
        return result

    def _early_handshake(self) -> JsonObject:
        """What the server has answered already; a second handshake would confuse some."""
        answer, self._handshake = self._handshake, None
        if isinstance(answer, MCPError):
            raise answer
        return answer or {}

    async def _discover(
        self, params: JsonObject, opts: CallOptions | None, silence: float
    ) -> JsonObject:
        """The answer to the question for the era, or an error once the handshake is answered."""
        declared: JsonObject = {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            "capabilities": self._capabilities,
            "clientInfo": CLIENT_INFO,
        }
        sent, answered = anyio.Event(), anyio.Event()
        outcome: JsonObject | MCPError | None = None

        async def shake_hands() -> None:
            await anyio.sleep(silence)
            sent.set()
            try:
                self._handshake = await self.inner.send_raw_request(
                    "initialize", declared, {"cancel_on_abandon": False}
                )
                tasks.cancel_scope.cancel()
            except MCPError as exc:  # a modern server refuses it; its other answer is on the way
                self._handshake = exc
            answered.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shake_hands)
            try:
                outcome = await self.inner.send_raw_request("server/discover", params, opts)
            except MCPError as exc:
                outcome = exc
                if sent.is_set():
                    await answered.wait()
            tasks.cancel_scope.cancel()
        if isinstance(outcome, dict):
            self._handshake = None
            return outcome
        raise outcome or MCPError(REQUEST_TIMEOUT, "server/discover was not answered")

    def _declare(self, method: str, params: Mapping[str, Any] | None) -> JsonObject:
        """Say what the client behind us can do: the session knows only what we can."""
        declared = dict(params or {})
        if method == "initialize":
            declared["capabilities"] = self._capabilities
        else:
            meta = dict(declared.get("_meta") or {})
            declared["_meta"] = {**meta, CLIENT_CAPABILITIES_META_KEY: self._capabilities}
        return declared

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        await self.inner.notify(method, params, opts)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        try:
            await self.inner.run(
                self._on_request, self._on_notify, on_notify_intercept, task_status=task_status
            )
        finally:
            self.ended.set()

    async def _on_request(
        self,
        context: DispatchContext[TransportContext],
        method: str,
        params: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        return await self._inbox.on_request(method, params)

    async def _on_notify(
        self,
        context: DispatchContext[TransportContext],
        method: str,
        params: Mapping[str, Any] | None,
    ) -> None:
        await self._inbox.on_notify(method, params)


def open_session(dispatcher: RelayDispatcher) -> ClientSession:
    """A session over the dispatcher, to be entered."""
    return ClientSession(
        dispatcher=dispatcher, client_info=Implementation.model_validate(CLIENT_INFO)
    )


async def negotiate(session: ClientSession, hint: Era | None) -> str:
    """Agree on a protocol version: modern where possible, and without asking a known legacy server.

    Raises:
        MCPError: the server refused, or the connection closed.
    """
    try:
        if hint == "legacy":
            await session.initialize()
    except MCPError as exc:
        if exc.code != UNSUPPORTED_PROTOCOL_VERSION:
            raise
    if session.protocol_version is None:
        await negotiate_auto(session)
    return session.protocol_version or ""


async def follow_changes(
    session: ClientSession, lists: Mapping[str, bool], uris: tuple[str, ...]
) -> None:
    """Have a modern server announce changes until it ends the stream; they arrive at the inbox.

    Raises:
        MCPError: the server has no such stream, or the connection closed.
    """
    try:
        async with listen(
            session,
            tools_list_changed=lists["tools"],
            prompts_list_changed=lists["prompts"],
            resources_list_changed=lists["resources"],
            resource_subscriptions=uris,
        ) as changes:
            async for _ in changes:
                pass
    except SubscriptionLost:
        return


def is_connection_closed(exc: MCPError) -> bool:
    """Whether the SDK, not the server, says that no answer will come."""
    return exc.code == CONNECTION_CLOSED and (
        exc.message == "Connection closed" or exc.message.startswith("SSE stream ")
    )


def is_session_expired(exc: MCPError) -> bool:
    """Whether a legacy HTTP server no longer knows our session (status 404)."""
    return exc.code == INVALID_REQUEST and exc.message == "Session terminated"


def is_http_error(exc: MCPError) -> bool:
    """Whether an HTTP status stands where a JSON-RPC answer should."""
    return exc.code == INTERNAL_ERROR and exc.message == _HTTP_ERROR


def build_http_error() -> MCPError:
    """What the SDK says when an HTTP status stands where a JSON-RPC answer should."""
    return MCPError(INTERNAL_ERROR, _HTTP_ERROR)


def _is_traced() -> bool:
    """Whether there is a trace to continue, or somebody to whom a new one would go."""
    if not isinstance(get_tracer_provider(), ProxyTracerProvider):
        return True
    return get_current_span().get_span_context().is_valid or bool(get_all())


@contextmanager
def trace_request(method: str, params: JsonObject) -> Generator[JsonObject]:
    """A span around a request, as the SDK's dispatcher makes it; the params carry its trace."""
    if not _is_traced():
        yield params
        return
    name: Json = params.get("name")
    span = f"MCP send {method} {name}" if isinstance(name, str) else f"MCP send {method}"
    with otel_span(span, kind=SpanKind.CLIENT, attributes={"mcp.method.name": method}):
        trace: JsonObject = {}
        inject_trace_context(trace)
        yield {**params, "_meta": {**(params.get("_meta") or {}), **trace}} if trace else params


def read_header_map(schema: JsonObject) -> HeaderMap:
    """Which arguments a tool wants repeated as HTTP headers (`x-mcp-header`)."""
    return x_mcp_header_map(schema)


def build_headers(
    version: str, era: Era, method: str, params: JsonObject, mirrored: HeaderMap | None
) -> dict[str, str]:
    """The HTTP headers that go with a relayed request."""
    headers = {MCP_PROTOCOL_VERSION_HEADER: version}
    if era == "legacy":
        return headers
    headers[MCP_METHOD_HEADER] = method
    # SEP-2663: requests about a task name the task.
    key = "taskId" if method.startswith("tasks/") else NAME_BEARING_METHODS.get(method)
    name = params.get(key) if key else None
    if isinstance(name, str):
        headers[MCP_NAME_HEADER] = encode_header_value(name)
    if mirrored:
        headers.update(mcp_param_headers(dict(mirrored), params.get("arguments") or {}))
    return headers


class DownstreamChannel:
    """The way back to the client of one front request, raw in both directions."""

    def __init__(self, context: ServerRequestContext[Any, Any]) -> None:
        session = context.session
        self._request = session._request_outbound  # pyright: ignore[reportPrivateUsage]
        self._connection = session._connection  # pyright: ignore[reportPrivateUsage]

    @property
    def can_ask(self) -> bool:
        """Whether the request is still open and its transport carries requests to the client."""
        return self._request.can_send_request

    async def ask(self, method: str, params: Mapping[str, Json] | None) -> JsonObject:
        """Send the client a request: beside the one it waits for, else on the connection's own."""
        outbound: Outbound = self._request if self.can_ask else self._connection.outbound
        return await outbound.send_raw_request(method, params)

    async def tell(self, method: str, params: Mapping[str, Json] | None) -> None:
        """Notify the client beside the request it waits for."""
        await self._request.notify(method, params)

    async def announce(self, method: str, params: Mapping[str, Json] | None) -> None:
        """Notify the client outside of any request."""
        await self._connection.outbound.notify(method, params)

    def capabilities(self) -> JsonObject:
        """What a legacy client declared in its handshake; read once for each connection."""
        kept = self._connection.state.get(_CAPABILITIES_KEY)
        if kept is None:
            declared = self._connection.client_capabilities
            kept = (
                declared.model_dump(by_alias=True, mode="json", exclude_none=True)
                if declared
                else {}
            )
            self._connection.state[_CAPABILITIES_KEY] = kept
        return cast(JsonObject, kept)

    def when_over(self, key: str, then: Callable[[], Awaitable[None]]) -> None:
        """Run `then` once when the client's connection ends; at most one for each key."""
        if key not in self._connection.state:
            self._connection.state[key] = True
            self._connection.exit_stack.push_async_callback(then)


_CAPABILITIES_KEY = "io.github.pegboard/capabilities"
_HTTP_ERROR = "Server returned an error response"
