"""The older HTTP transport (2024-11-05): one event stream from the server, one POST per message.

The SDK has a client for it whose events are limited to 1 MiB. As in `messages`, there is no task
and no queue between the dispatcher and the connection.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from urllib.parse import urljoin, urlsplit

import anyio
import httpx2
from mcp.shared.message import ClientMessageMetadata, SessionMessage

from pegboard.upstream.lines import message_of, parsed
from pegboard.upstream.messages import Closable
from pegboard.upstream.sdk import request_within_origin, sse_within_origin

_log = logging.getLogger(__name__)


class SseReader(Closable):
    """The messages of an event stream."""

    def __init__(self, events: AsyncIterator[httpx2.ServerSentEvent]) -> None:
        self._events = events

    async def receive(self) -> SessionMessage:
        """The next message. Raises `anyio.EndOfStream` at the end."""
        try:
            async for event in self._events:
                if event.event == "message" and event.data:
                    try:
                        return SessionMessage(message_of(parsed(event.data)))
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


class SseWriter(Closable):
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
            endpoint = await _endpoint(events, url)
            yield SseReader(events), SseWriter(client, endpoint)


async def _endpoint(events: AsyncIterator[httpx2.ServerSentEvent], url: str) -> str:
    async for event in events:
        if event.event != "endpoint":
            continue
        endpoint = urljoin(url, event.data)
        if urlsplit(endpoint)[:2] != urlsplit(url)[:2]:
            raise httpx2.RemoteProtocolError(f"its endpoint {endpoint} is on another origin")
        return endpoint
    raise httpx2.RemoteProtocolError("its event stream ended before it named an endpoint")
