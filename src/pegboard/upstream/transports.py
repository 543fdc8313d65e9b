"""The way to a server, by its transport: stdio, streamable HTTP, and the older SSE (2024-11-05).

An open `UpstreamTransport` is a pair of message streams for the SDK's dispatcher, and what the
transport knows besides. The SDK has a client for SSE whose events are limited to 1 MiB, so that is
read here. As in `wire.message_streams`, there is no task and no queue between the dispatcher and
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
from pegboard.upstream.channels import RequestChannel, SdkChannel, StdioChannel
from pegboard.upstream.child_process import ChildProcess, run_process
from pegboard.upstream.client_sdk import (
    InboundHandler,
    ReadStream,
    RelayDispatcher,
    WriteStream,
    request_within_origin,
    sse_within_origin,
)
from pegboard.upstream.http_channel import HttpChannel, HttpEndpoint
from pegboard.upstream.server_log import BoundedLog
from pegboard.upstream.spec import UpstreamSpec
from pegboard.wire.lines import parse_json, to_message
from pegboard.wire.message_streams import BorrowedStream
from pegboard.wire.response_filters import filter_surrogates, limit_response_size

_log = logging.getLogger(__name__)


class SseReader(BorrowedStream):
    """The messages of an event stream."""

    def __init__(self, events: AsyncIterator[httpx2.ServerSentEvent]) -> None:
        self._events = events

    async def receive(self) -> SessionMessage:
        """The next message. Raises `anyio.EndOfStream` at the end."""
        try:
            async for event in self._events:
                if event.event == "message" and event.data:
                    try:
                        return SessionMessage(to_message(parse_json(event.data)))
                    except ValueError:
                        _log.warning("An event is not JSON-RPC: %r", event.data[:200])
        except httpx2.HTTPError as exc:
            _log.debug("an event stream broke", exc_info=exc)
        raise anyio.EndOfStream

    def __aiter__(self) -> SseReader:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


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
        httpx2.HTTPError: the server cannot be reached, or names no address of its own.
    """
    async with sse_within_origin(client, url, max_event_size=max_event_size) as source:
        source.response.raise_for_status()
        async with aclosing(aiter(source)) as events:  # pyright: ignore[reportArgumentType] a generator
            endpoint = await _read_endpoint(events, url)
            yield SseReader(events), SseWriter(client, endpoint)


async def _read_endpoint(events: AsyncIterator[httpx2.ServerSentEvent], url: str) -> str:
    async for event in events:
        if event.event != "endpoint":
            continue
        endpoint = urljoin(url, event.data)
        if urlsplit(endpoint)[:2] != urlsplit(url)[:2]:
            raise httpx2.RemoteProtocolError(f"its endpoint {endpoint} is on another origin")
        return endpoint
    raise httpx2.RemoteProtocolError("its event stream ended before it named an endpoint")


CONNECT_TIMEOUT = 30.0


class HttpErrorStatus:
    """The last HTTP status of a message that was an error; the SDK says only that there was one."""

    def __init__(self) -> None:
        self.status: int | None = None

    async def note(self, response: httpx2.Response) -> None:
        if response.status_code >= 400 and response.request.method == "POST":
            self.status = response.status_code


@dataclass(frozen=True, slots=True)
class UpstreamTransport:
    """An open way to a server.

    `child` and `lines` are there when it is a process, `endpoint` and `faults` when it is HTTP.
    """

    read: ReadStream[SessionMessage | Exception]
    write: WriteStream[SessionMessage]
    child: ChildProcess | None = None
    lines: StdioChannel | None = None
    endpoint: HttpEndpoint | None = None
    faults: HttpErrorStatus | None = None

    def dispatcher(self) -> JSONRPCDispatcher[TransportContext]:
        return JSONRPCDispatcher(self.read, self.write)

    def exchange(
        self, era: Era, dispatcher: RelayDispatcher, inbox: InboundHandler
    ) -> RequestChannel:
        """The shortest way for relayed requests: past the SDK's dispatcher where that can be."""
        if self.lines is not None:
            return self.lines
        dispatched = SdkChannel(dispatcher)
        if self.endpoint is not None and era == "modern":
            return HttpChannel(self.endpoint, inbox, dispatched)
        return dispatched


OpenTransport: TypeAlias = Callable[
    [UpstreamSpec, BoundedLog], AbstractAsyncContextManager[UpstreamTransport]
]
"""Opens the way to a server. Tests and embedders give their own."""


@asynccontextmanager
async def open_wire(spec: UpstreamSpec, log: BoundedLog) -> AsyncGenerator[UpstreamTransport]:
    """Reach a server as its transport says; closed, and its process ended, when the block is left.

    Raises:
        CannotStart: its process cannot be made.
    """
    if spec.transport == "stdio":
        async with run_process(spec, log) as (read, write, lines, child):
            yield UpstreamTransport(read, write, child=child, lines=lines)
    elif spec.transport == "http":
        async with _open_http(spec) as wire:
            yield wire
    else:
        async with _open_sse_transport(spec) as wire:
            yield wire


def _shared_headers(spec: UpstreamSpec) -> dict[str, str]:
    """What every request carries; headers for each caller come with their requests."""
    return Credentials().for_everybody(spec.headers, server=spec.name)


@asynccontextmanager
async def _open_http(spec: UpstreamSpec) -> AsyncGenerator[UpstreamTransport]:
    from pegboard.upstream.h11_transport import H11Transport, supports_url

    faults = HttpErrorStatus()
    url, limit = spec.url or "", spec.max_message_bytes
    client = httpx2.AsyncClient(
        transport=H11Transport() if supports_url(url) else None,
        headers=_shared_headers(spec),
        timeout=httpx2.Timeout(CONNECT_TIMEOUT, read=None),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32),
        event_hooks={"response": [faults.note, filter_surrogates, limit_response_size(limit)]},
    )
    # An event may take several lines: `limited` bounds each of them, the SDK bounds the event.
    async with (
        client,
        streamable_http_client(url, http_client=client, max_sse_event_size=2 * limit) as (
            read,
            write,
        ),
    ):
        yield UpstreamTransport(
            read, write, endpoint=HttpEndpoint(url, client, 2 * limit), faults=faults
        )


@asynccontextmanager
async def _open_sse_transport(spec: UpstreamSpec) -> AsyncGenerator[UpstreamTransport]:
    limit = spec.max_message_bytes
    client = httpx2.AsyncClient(
        headers=_shared_headers(spec),
        timeout=httpx2.Timeout(CONNECT_TIMEOUT, read=None),
        event_hooks={"response": [filter_surrogates, limit_response_size(limit)]},
    )
    async with client, open_sse(client, spec.url or "", max_event_size=2 * limit) as (read, write):
        yield UpstreamTransport(read, write)
