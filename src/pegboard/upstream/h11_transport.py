"""HTTP/1.1 without TLS to a server nearby: one write for a request, connections that stay open.

A transport for `httpx2`, whose own transport is general: a pool with limits, TLS, proxies, HTTP/2.
For a relayed call to a server on the same machine, that overhead is larger than the call itself, so
this one replaces it. `h11` implements the rules of the protocol.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.request import getproxies, proxy_bypass

import h11
import httpx2

MAX_IDLE_SECONDS: Final = 4.0
"""Seconds that a connection stays open without use; many servers close it after 5."""
MAX_IDLE_CONNECTIONS: Final = 32
_READ_SIZE: Final = 1 << 16


def supports_url(url: str) -> bool:
    """Whether a server can be reached this way: it has no TLS, and there is no proxy for it."""
    parts = httpx2.URL(url)
    if parts.scheme != "http":
        return False
    return not ({"http", "all"} & getproxies().keys()) or bool(proxy_bypass(parts.host))


class H11Transport(httpx2.AsyncBaseTransport):
    """The connections to servers; closed with the client that it is given to."""

    def __init__(self) -> None:
        self._open: set[_H11Connection] = set()
        self._idle: list[_H11Connection] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        # The connection that was used last, if it is still usable.
        connection: _H11Connection | None = None
        while connection is None and self._idle:
            idle = self._idle.pop()
            if idle.is_usable and idle.address == (request.url.host, request.url.port or 80):
                connection = idle
            else:
                self._drop(idle)
        if connection is None:
            connection = await self._connect(request)
        try:
            with _translate_errors(httpx2.ReadError):
                head = await connection.send(request)
        except BaseException:
            # Also when the request is canceled: half an answer may be on its way.
            self._drop(connection)
            raise
        return httpx2.Response(
            head.status_code,
            headers=head.headers.raw_items(),
            stream=_ResponseBody(connection, self),
        )

    async def aclose(self) -> None:
        connections = list(self._open)
        for connection in connections:
            self._drop(connection)
        for connection in connections:
            await connection.wait_closed()

    def release(self, connection: _H11Connection) -> None:
        """Hold a connection for the next request if its last one is over, else close it."""
        has_room = len(self._idle) < MAX_IDLE_CONNECTIONS
        # A body that was not read to its end cancels the request; the connection is lost with it.
        if has_room and connection in self._open and connection.is_finished():
            connection.start_next()
            self._idle.append(connection)
        else:
            self._drop(connection)

    async def _connect(self, request: httpx2.Request) -> _H11Connection:
        address = request.url.host, request.url.port or 80
        seconds = request.extensions.get("timeout", {}).get("connect")
        try:
            with _translate_errors(httpx2.ConnectError):
                async with asyncio.timeout(seconds):
                    connection = _H11Connection(address, *await asyncio.open_connection(*address))
        except TimeoutError as exc:
            raise httpx2.ConnectTimeout(f"no connection within {seconds:g} s") from exc
        self._open.add(connection)
        return connection

    def _drop(self, connection: _H11Connection) -> None:
        self._open.discard(connection)
        connection.close()


class _H11Connection:
    """One connection, on which one request after the other is made."""

    def __init__(
        self, address: tuple[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.address = address
        self._reader = reader
        self._writer = writer
        self._protocol = h11.Connection(h11.CLIENT)
        self._used_at = 0.0

    @property
    def is_usable(self) -> bool:
        """Whether another request can be made: the server has not closed it, nor will soon."""
        over = self._reader.at_eof() or self._writer.is_closing()
        return not over and time.monotonic() - self._used_at < MAX_IDLE_SECONDS

    def is_finished(self) -> bool:
        """Whether the last answer has been read to its end, and another request may follow."""
        if self._protocol.their_state is h11.SEND_BODY:  # an empty body ends unread
            with suppress(h11.RemoteProtocolError):
                self._protocol.next_event()
        return self._protocol.our_state is h11.DONE and self._protocol.their_state is h11.DONE

    async def send(self, request: httpx2.Request) -> h11.Response:
        """The head of the answer to a request."""
        protocol = self._protocol
        head = h11.Request(
            method=request.method, target=request.url.raw_path, headers=request.headers.raw
        )
        # One write, so that head and body leave in one packet: with two, the second would wait for
        # the acknowledgement of the first.
        parts = [protocol.send(head)]
        if request.content:
            parts.append(protocol.send(h11.Data(data=request.content)))
        parts.append(protocol.send(h11.EndOfMessage()))
        self._writer.write(b"".join(part or b"" for part in parts))
        await self._writer.drain()
        while True:
            event = await self._next()
            if isinstance(event, h11.Response):  # and not an informational one
                return event

    async def body(self) -> AsyncGenerator[bytes]:
        """The rest of the answer, as it comes."""
        while isinstance(event := await self._next(), h11.Data):
            yield bytes(event.data)

    async def _next(self) -> Any:
        while (event := self._protocol.next_event()) is h11.NEED_DATA:
            self._protocol.receive_data(await self._reader.read(_READ_SIZE))
        return event

    def start_next(self) -> None:
        self._protocol.start_next_cycle()
        self._used_at = time.monotonic()

    def close(self) -> None:
        self._writer.close()

    async def wait_closed(self) -> None:
        with suppress(OSError):
            await self._writer.wait_closed()


class _ResponseBody(httpx2.AsyncByteStream):
    """The body of an answer; closing it frees its connection."""

    def __init__(self, connection: _H11Connection, transport: H11Transport) -> None:
        self._connection = connection
        self._transport = transport

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        with _translate_errors(httpx2.ReadError):
            async for part in self._connection.body():
                yield part

    async def aclose(self) -> None:
        self._transport.release(self._connection)


@contextmanager
def _translate_errors(kind: type[httpx2.NetworkError]) -> Generator[None]:
    """What goes wrong on a connection, as the exceptions of `httpx2`."""
    try:
        yield
    except TimeoutError:  # an `OSError`, which the caller handles
        raise
    except OSError as exc:
        raise kind(str(exc) or type(exc).__name__) from exc
    except h11.RemoteProtocolError as exc:
        raise httpx2.RemoteProtocolError(str(exc)) from exc
    except h11.LocalProtocolError as exc:
        raise httpx2.LocalProtocolError(str(exc)) from exc
