"""The way to a server, by its transport: stdio, streamable HTTP, and the older SSE (2024-11-05).

An open `UpstreamTransport` is a pair of message streams for the SDK's dispatcher, plus
details of the transport. The SDK has a client for SSE whose events are limited to 1 MiB, so that
is read here. As in `wire.message_streams`, there is no task and no queue between the dispatcher and
the connection.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urljoin, urlsplit

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp.shared.transport_context import TransportContext

from pegboard.core.calls import Era
from pegboard.credentials import Credentials
from pegboard.upstream.channels import (
    HttpChannel,
    HttpEndpoint,
    RequestChannel,
    SdkChannel,
    StdioChannel,
)
from pegboard.upstream.child_process import ChildProcess, run_process
from pegboard.upstream.client_sdk import (
    ReadStream,
    WriteStream,
    request_within_origin,
    sse_within_origin,
)
from pegboard.upstream.handshake import InboundHandler, RelayDispatcher
from pegboard.upstream.server_log import BoundedLog
from pegboard.upstream.spec import UpstreamSpec
from pegboard.wire.message_filters import filter_surrogates, limit_response_size
from pegboard.wire.message_streams import BorrowedStream, MessageSource, decode_json, to_message

CONNECT_TIMEOUT = 30.0
_log = logging.getLogger(__name__)


class HttpErrorStatus:
    """The last HTTP status of a message that was an error; the SDK says only that there was one."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.challenge: str | None = None
        self._request: httpx2.Request | None = None

    async def record(self, response: httpx2.Response) -> None:
        # After a refused `server/discover` the SDK tries `initialize`, which servers answer with
        # other errors. The refusal is what matters.
        if self.status == 401 and response.status_code != 401:
            return
        # A GET opens the stream that a server need not have: a status there is not an error.
        if response.request.method != "POST":
            return
        if response.status_code < 400:
            # The same request was refused before, and repeated with another token.
            if response.request is self._request:
                self.take()
        else:
            self._request = response.request
            self.status = response.status_code
            self.challenge = response.headers.get("www-authenticate")
            if self.status == 401 or (self.status == 403 and self.challenge):
                # The SDK returns a JSON-RPC error in the body as the server's own answer. With
                # these it is about the credential, so the status must not be lost.
                response.headers["content-type"] = "text/plain"

    def take(self) -> tuple[int | None, str | None]:
        """The status and its challenge, once: the next failure may have another cause."""
        taken = self.status, self.challenge
        self.status = self.challenge = self._request = None
        return taken


@dataclass(frozen=True, slots=True)
class UpstreamTransport:
    """An open way to a server.

    A process has `process` and `stdio_channel`, streamable HTTP has `endpoint`, and both ways over
    HTTP have `http_error`.
    """

    read: ReadStream[SessionMessage | Exception]
    write: WriteStream[SessionMessage]
    process: ChildProcess | None = None
    stdio_channel: StdioChannel | None = None
    endpoint: HttpEndpoint | None = None
    http_error: HttpErrorStatus | None = None

    def build_dispatcher(self) -> JSONRPCDispatcher[TransportContext]:
        """The SDK's dispatcher over the streams."""
        return JSONRPCDispatcher(self.read, self.write)

    def build_channel(
        self, era: Era, dispatcher: RelayDispatcher, inbound: InboundHandler
    ) -> RequestChannel:
        """The shortest path for relayed requests, past the SDK's dispatcher where possible."""
        if self.stdio_channel is not None:
            return self.stdio_channel
        through_sdk = SdkChannel(dispatcher)
        # A legacy server over HTTP has a session, with streams that only the SDK follows.
        if self.endpoint is not None and era == "modern":
            return HttpChannel(self.endpoint, inbound, through_sdk)
        return through_sdk


OpenTransport: TypeAlias = Callable[
    [UpstreamSpec, BoundedLog, httpx2.Auth | None], AbstractAsyncContextManager[UpstreamTransport]
]
"""Opens a connection to a server. Tests and other programs can pass their own."""


@asynccontextmanager
async def open_transport(
    spec: UpstreamSpec, log: BoundedLog, auth: httpx2.Auth | None = None
) -> AsyncGenerator[UpstreamTransport]:
    """Connect to a server by its transport; leaving the block closes it, or ends its process.

    Over HTTP, `auth` adds the credential of a login to each request.

    Raises:
        ProcessStartError: Its process cannot be started.
    """
    if spec.transport == "stdio":
        async with run_process(spec, log) as (read, write, channel, process):
            yield UpstreamTransport(read, write, process=process, stdio_channel=channel)
        return
    url, limit = spec.url or "", spec.max_message_bytes
    # What every request carries; headers for each caller come with their requests.
    headers = Credentials().for_everybody(spec.headers, server=spec.name)
    # Answers may take as long as the tool does: the connection bounds each request, not the client.
    timeout = httpx2.Timeout(CONNECT_TIMEOUT, read=None)
    filters = [filter_surrogates, limit_response_size(limit)]
    # An event may take several lines: the filter bounds each of them, this bounds the event.
    max_event_size = 2 * limit
    http_error = HttpErrorStatus()
    if spec.transport == "sse":
        hooks = {"response": [http_error.record, *filters]}
        async with (
            httpx2.AsyncClient(
                headers=headers, auth=auth, timeout=timeout, event_hooks=hooks
            ) as client,
            open_sse(client, url, max_event_size=max_event_size) as (sse_read, sse_write),
        ):
            yield UpstreamTransport(sse_read, sse_write, http_error=http_error)
        return
    # Imported here, because many gateways have no server over HTTP.
    from pegboard.upstream.h11_transport import H11Transport, supports_url

    client = httpx2.AsyncClient(
        transport=H11Transport() if supports_url(url) else None,
        headers=headers,
        auth=auth,
        timeout=timeout,
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32),
        event_hooks={"response": [http_error.record, *filters]},
    )
    async with (
        client,
        streamable_http_client(url, http_client=client, max_sse_event_size=max_event_size) as (
            http_read,
            http_write,
        ),
    ):
        endpoint = HttpEndpoint(url, client, max_event_size)
        yield UpstreamTransport(http_read, http_write, endpoint=endpoint, http_error=http_error)


# The older HTTP transport: one event stream from the server, one POST for each message.


class SseReader(MessageSource):
    """The messages of an event stream."""

    def __init__(self, events: AsyncIterator[httpx2.ServerSentEvent]) -> None:
        self._events = events

    async def receive(self) -> SessionMessage:
        try:
            async for event in self._events:
                if event.event == "message" and event.data:
                    try:
                        return SessionMessage(to_message(decode_json(event.data)))
                    except ValueError:
                        _log.warning("An event is not JSON-RPC: %r", event.data[:200])
        except httpx2.HTTPError as exc:
            _log.debug("an event stream broke", exc_info=exc)
        raise anyio.EndOfStream


class SseWriter(BorrowedStream):
    """Posts messages to the address that the server named."""

    def __init__(self, client: httpx2.AsyncClient, url: str) -> None:
        self._client = client
        self._url = url

    async def send(self, item: SessionMessage) -> None:
        metadata = item.metadata
        headers = metadata.headers if isinstance(metadata, ClientMessageMetadata) else None
        content = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        try:
            response = await request_within_origin(
                self._client, "POST", self._url, json=content, headers=dict(headers or {})
            )
            response.raise_for_status()
        except (httpx2.HTTPError, httpx2.StreamError) as exc:
            raise anyio.BrokenResourceError from exc


@asynccontextmanager
async def open_sse(
    client: httpx2.AsyncClient, url: str, *, max_event_size: int
) -> AsyncGenerator[tuple[SseReader, SseWriter]]:
    """Open the event stream of a server, and learn from it where messages are posted to.

    Raises:
        httpx2.HTTPError: The server cannot be reached, or names no address of its own.
    """
    async with sse_within_origin(client, url, max_event_size=max_event_size) as source:
        source.response.raise_for_status()
        async with aclosing(aiter(source)) as events:  # pyright: ignore[reportArgumentType] a generator
            endpoint = await _read_endpoint(events, url)
            yield SseReader(events), SseWriter(client, endpoint)


async def _read_endpoint(events: AsyncIterator[httpx2.ServerSentEvent], url: str) -> str:
    async for event in events:
        if event.event == "endpoint":
            endpoint = urljoin(url, event.data)
            # Messages carry the headers of this server, credentials included: they are not sent
            # to another host.
            if urlsplit(endpoint)[:2] != urlsplit(url)[:2]:
                raise httpx2.RemoteProtocolError(f"its endpoint {endpoint} is on another origin")
            return endpoint
    raise httpx2.RemoteProtocolError("its event stream ended before it named an endpoint")
