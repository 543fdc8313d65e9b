"""All uses of the SDK's client side, including provisional and private names, in one place.

`tests/contract/test_client_sdk.py` tests what is used here: a new SDK version that breaks one of
these fails there, not in a relayed call.

Relayed messages bypass the SDK's session, so this module also recognizes how the SDK reports a
closed connection, an expired session, or an HTTP status instead of an answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, cast

from mcp.client._probe import negotiate_auto
from mcp.client._transport import ReadStream, WriteStream
from mcp.client.session import ClientSession
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.server.context import ServerRequestContext
from mcp.shared._httpx_utils import request_within_origin, sse_within_origin
from mcp.shared._otel import inject_trace_context, otel_span
from mcp.shared.dispatcher import CallOptions, Outbound
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
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    URL_ELICITATION_REQUIRED,
)
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
    "URL_ELICITATION_REQUIRED",
    "CallOptions",
    "ClientSession",
    "DownstreamChannel",
    "HeaderMap",
    "HttpStatusError",
    "MCPError",
    "ReadStream",
    "WriteStream",
    "build_headers",
    "follow_changes",
    "get_version",
    "is_connection_closed",
    "is_http_error",
    "is_session_expired",
    "negotiate_auto",
    "read_header_map",
    "request_within_origin",
    "sse_within_origin",
    "trace_request",
]

HeaderMap = Mapping[tuple[str, ...], str]
_CAPABILITIES_KEY = "io.github.pegboard/capabilities"
_HTTP_ERROR = "Server returned an error response"


def get_version() -> str:
    """The installed version of this package."""
    try:
        return version("pegboard")
    except PackageNotFoundError:  # a source tree
        return "0"


CLIENT_INFO: Final[JsonObject] = {"name": "pegboard", "version": get_version()}


async def follow_changes(
    session: ClientSession, lists: Mapping[str, bool], uris: tuple[str, ...]
) -> None:
    """Have a modern server announce changes until it ends the stream.

    The announcements arrive at the inbound handler of the session's dispatcher.

    Raises:
        MCPError: The server has no such stream, or the connection closed.
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


# Errors. The SDK has no classes for these: it tells them apart by code and text, and so do we.


def is_connection_closed(exc: MCPError) -> bool:
    """Whether the SDK, not the server, reports that no answer will come."""
    # A server may use the same code for an error of its own; the texts are the SDK's.
    return exc.code == CONNECTION_CLOSED and (
        exc.message == "Connection closed" or exc.message.startswith("SSE stream ")
    )


def is_session_expired(exc: MCPError) -> bool:
    """Whether a legacy HTTP server no longer knows our session (status 404)."""
    return exc.code == INVALID_REQUEST and exc.message == "Session terminated"


def is_http_error(exc: MCPError) -> bool:
    """Whether an HTTP status took the place of a JSON-RPC answer."""
    return exc.code == INTERNAL_ERROR and exc.message == _HTTP_ERROR


class HttpStatusError(MCPError):
    """The SDK's error for an HTTP status in place of a JSON-RPC answer, with what the SDK drops."""

    def __init__(self, status: int, challenge: str | None = None) -> None:
        super().__init__(INTERNAL_ERROR, _HTTP_ERROR)
        self.status = status
        self.challenge = challenge


@contextmanager
def trace_request(method: str, params: JsonObject) -> Generator[JsonObject]:
    """A span around a request, as the SDK's dispatcher makes it; yields params with its trace."""
    # Without a tracer there is nobody to send a span to, and making one costs more than the rest of
    # a relayed request. A trace that came with the call is continued anyway.
    has_tracer = not isinstance(get_tracer_provider(), ProxyTracerProvider)
    has_trace = has_tracer or get_current_span().get_span_context().is_valid or bool(get_all())
    if not has_trace:
        yield params
        return
    name: Json = params.get("name")
    span = f"MCP send {method} {name}" if isinstance(name, str) else f"MCP send {method}"
    with otel_span(span, kind=SpanKind.CLIENT, attributes={"mcp.method.name": method}):
        trace: JsonObject = {}
        inject_trace_context(trace)
        yield {**params, "_meta": {**(params.get("_meta") or {}), **trace}} if trace else params


# HTTP headers of requests.


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
    """The way back to the client of one request, raw in both directions."""

    def __init__(self, context: ServerRequestContext[Any, Any]) -> None:
        session = context.session
        self._request = session._request_outbound  # pyright: ignore[reportPrivateUsage]
        self._connection = session._connection  # pyright: ignore[reportPrivateUsage]

    @property
    def can_send_request(self) -> bool:
        """Whether the request is still open and its transport carries requests to the client."""
        return self._request.can_send_request

    async def send_request(self, method: str, params: Mapping[str, Json] | None) -> JsonObject:
        """Send the client a request: on the stream of its open request, else on the connection."""
        outbound: Outbound = self._request if self.can_send_request else self._connection.outbound
        return await outbound.send_raw_request(method, params)

    async def notify(self, method: str, params: Mapping[str, Json] | None) -> None:
        """Notify the client on the stream of its open request."""
        await self._request.notify(method, params)

    async def notify_session(self, method: str, params: Mapping[str, Json] | None) -> None:
        """Notify the client outside of any request."""
        await self._connection.outbound.notify(method, params)

    def capabilities(self) -> JsonObject:
        """What a legacy client declared in its handshake; read once for each connection."""
        cached = self._connection.state.get(_CAPABILITIES_KEY)
        if cached is None:
            declared = self._connection.client_capabilities
            cached = (
                declared.model_dump(by_alias=True, mode="json", exclude_none=True)
                if declared
                else {}
            )
            self._connection.state[_CAPABILITIES_KEY] = cached
        return cast(JsonObject, cached)

    def on_close(self, key: str, then: Callable[[], Awaitable[None]]) -> None:
        """Run `then` once when the client's connection ends; at most one for each key."""
        if key not in self._connection.state:
            self._connection.state[key] = True
            self._connection.exit_stack.push_async_callback(then)
