"""The way to a server, by its transport: two open message streams and what is known beside."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext

from pegboard.core.calls import Era
from pegboard.secrets import Credentials
from pegboard.upstream.exchanges import DispatchedExchange, Exchange, LineExchange
from pegboard.upstream.mending import mend
from pegboard.upstream.posts import Endpoint, PostExchange
from pegboard.upstream.process import ChildProcess, run_process
from pegboard.upstream.sdk import Inbox, ReadStream, RelayDispatcher, WriteStream
from pegboard.upstream.size_limit import limited
from pegboard.upstream.spec import UpstreamSpec
from pegboard.upstream.sse import open_sse
from pegboard.upstream.stderr import BoundedLog

CONNECT_TIME = 30.0


class HttpFaults:
    """The last HTTP status of a message that was an error; the SDK says only that there was one."""

    def __init__(self) -> None:
        self.status: int | None = None

    async def note(self, response: httpx2.Response) -> None:
        if response.status_code >= 400 and response.request.method == "POST":
            self.status = response.status_code


@dataclass(frozen=True, slots=True)
class Wire:
    """An open way to a server.

    `child` and `lines` are there when it is a process, `endpoint` and `faults` when it is HTTP.
    """

    read: ReadStream[SessionMessage | Exception]
    write: WriteStream[SessionMessage]
    child: ChildProcess | None = None
    lines: LineExchange | None = None
    endpoint: Endpoint | None = None
    faults: HttpFaults | None = None

    def dispatcher(self) -> JSONRPCDispatcher[TransportContext]:
        return JSONRPCDispatcher(self.read, self.write)

    def exchange(self, era: Era, dispatcher: RelayDispatcher, inbox: Inbox) -> Exchange:
        """The shortest way for relayed requests: past the SDK's dispatcher where that can be."""
        if self.lines is not None:
            return self.lines
        dispatched = DispatchedExchange(dispatcher)
        if self.endpoint is not None and era == "modern":
            return PostExchange(self.endpoint, inbox, dispatched)
        return dispatched


OpenWire: TypeAlias = Callable[[UpstreamSpec, BoundedLog], AbstractAsyncContextManager[Wire]]
"""Opens the way to a server. Tests and embedders give their own."""


@asynccontextmanager
async def open_wire(spec: UpstreamSpec, log: BoundedLog) -> AsyncGenerator[Wire]:
    """Reach a server as its transport says; closed, and its process ended, when the block is left.

    Raises:
        CannotStart: its process cannot be made.
    """
    if spec.transport == "stdio":
        async with run_process(spec, log) as (read, write, lines, child):
            yield Wire(read, write, child=child, lines=lines)
    elif spec.transport == "http":
        async with _http(spec) as wire:
            yield wire
    else:
        async with _sse(spec) as wire:
            yield wire


def _headers(spec: UpstreamSpec) -> dict[str, str]:
    """What every request carries; headers for each caller come with their requests."""
    return Credentials().for_everybody(spec.headers, server=spec.name)


@asynccontextmanager
async def _http(spec: UpstreamSpec) -> AsyncGenerator[Wire]:
    from pegboard.upstream.keep_alive import KeepAlive, is_for

    faults = HttpFaults()
    url, limit = spec.url or "", spec.max_message_bytes
    client = httpx2.AsyncClient(
        transport=KeepAlive() if is_for(url) else None,
        headers=_headers(spec),
        timeout=httpx2.Timeout(CONNECT_TIME, read=None),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32),
        event_hooks={"response": [faults.note, mend, limited(limit)]},
    )
    # An event may take several lines: `limited` bounds each of them, the SDK bounds the event.
    async with (
        client,
        streamable_http_client(url, http_client=client, max_sse_event_size=2 * limit) as (
            read,
            write,
        ),
    ):
        yield Wire(read, write, endpoint=Endpoint(url, client, 2 * limit), faults=faults)


@asynccontextmanager
async def _sse(spec: UpstreamSpec) -> AsyncGenerator[Wire]:
    limit = spec.max_message_bytes
    client = httpx2.AsyncClient(
        headers=_headers(spec),
        timeout=httpx2.Timeout(CONNECT_TIME, read=None),
        event_hooks={"response": [mend, limited(limit)]},
    )
    async with client, open_sse(client, spec.url or "", max_event_size=2 * limit) as (read, write):
        yield Wire(read, write)
