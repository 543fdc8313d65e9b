"""HTTP/1.1 without TLS to a server nearby: one write for a request, connections kept open.

A transport for `httpx2`, whose own serves every kind of server there is: a pool with limits, TLS,
proxies, HTTP/2. A relayed call to a server on the same machine costs less than going through all
of that, so for such a server this stands in. `h11` has the rules of the protocol.
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
"""Seconds that a connection is kept without use; many servers end it after 5."""
MAX_IDLE_CONNECTIONS: Final = 32
_READ_SIZE: Final = 1 << 16


def supports_url(url: str) -> bool:
    """Whether a server can be reached so: it has no TLS, and no proxy is to be asked."""
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
        line = self._kept(request.url) or await self._connected(request)
        try:
            with _translate_errors(httpx2.ReadError):
                head = await line.ask(request)
        except BaseException:
            self._drop(line)
            raise
        return httpx2.Response(
            head.status_code, headers=head.headers.raw_items(), stream=_ResponseBody(line, self)
        )

    async def aclose(self) -> None:
        lines = list(self._open)
        for line in lines:
            self._drop(line)
        for line in lines:
            await line.ended()

    def done(self, line: _H11Connection) -> None:
        """Keep a connection for the next request if its last one is over, else end it."""
        if line in self._open and line.is_answered() and len(self._idle) < MAX_IDLE_CONNECTIONS:
            line.renew()
            self._idle.append(line)
        else:
            self._drop(line)

    def _kept(self, url: httpx2.URL) -> _H11Connection | None:
        """The connection that was used last, if it is still good."""
        while self._idle:
            line = self._idle.pop()
            if line.is_good and line.address == (url.host, url.port or 80):
                return line
            self._drop(line)
        return None

    async def _connected(self, request: httpx2.Request) -> _H11Connection:
        address = request.url.host, request.url.port or 80
        seconds = request.extensions.get("timeout", {}).get("connect")
        try:
            with _translate_errors(httpx2.ConnectError):
                async with asyncio.timeout(seconds):
                    line = _H11Connection(address, *await asyncio.open_connection(*address))
        except TimeoutError as exc:
            raise httpx2.ConnectTimeout(f"no connection within {seconds:g} s") from exc
        self._open.add(line)
        return line

    def _drop(self, line: _H11Connection) -> None:
        self._open.discard(line)
        line.close()


class _H11Connection:
    """One connection, on which one request after the other is made."""

    def __init__(
        self, address: tuple[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.address = address
        self._reader = reader
        self._writer = writer
        self._rules = h11.Connection(h11.CLIENT)
        self._used_at = 0.0

    @property
    def is_good(self) -> bool:
        """Whether another request can be made on it: the server has not ended it, nor will soon."""
        over = self._reader.at_eof() or self._writer.is_closing()
        return not over and time.monotonic() - self._used_at < MAX_IDLE_SECONDS

    def is_answered(self) -> bool:
        """Whether the last request is answered to its end, and another may follow."""
        if self._rules.their_state is h11.SEND_BODY:  # an empty body ends unread
            with suppress(h11.RemoteProtocolError):
                self._rules.next_event()
        return self._rules.our_state is h11.DONE and self._rules.their_state is h11.DONE

    async def ask(self, request: httpx2.Request) -> h11.Response:
        """The head of the answer to a request."""
        rules = self._rules
        head = h11.Request(
            method=request.method, target=request.url.raw_path, headers=request.headers.raw
        )
        parts = [rules.send(head)]
        if request.content:
            parts.append(rules.send(h11.Data(data=request.content)))
        parts.append(rules.send(h11.EndOfMessage()))
        self._writer.write(b"".join(part or b"" for part in parts))
        await self._writer.drain()
        while True:
            event = await self._next()
            if isinstance(event, h11.Response):
                return event

    async def body(self) -> AsyncGenerator[bytes]:
        """The rest of the answer, as it comes."""
        while isinstance(event := await self._next(), h11.Data):
            yield bytes(event.data)

    async def _next(self) -> Any:
        while (event := self._rules.next_event()) is h11.NEED_DATA:
            self._rules.receive_data(await self._reader.read(_READ_SIZE))
        return event

    def renew(self) -> None:
        self._rules.start_next_cycle()
        self._used_at = time.monotonic()

    def close(self) -> None:
        self._writer.close()

    async def ended(self) -> None:
        with suppress(OSError):
            await self._writer.wait_closed()


class _ResponseBody(httpx2.AsyncByteStream):
    """The body of an answer; its connection is free again when it is closed."""

    def __init__(self, line: _H11Connection, transport: H11Transport) -> None:
        self._line = line
        self._transport = transport

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        with _translate_errors(httpx2.ReadError):
            async for part in self._line.body():
                yield part

    async def aclose(self) -> None:
        self._transport.done(self._line)


@contextmanager
def _translate_errors(kind: type[httpx2.NetworkError]) -> Generator[None]:
    """What goes wrong on a connection, as `httpx2` calls it."""
    try:
        yield
    except TimeoutError:
        raise
    except OSError as exc:
        raise kind(str(exc) or type(exc).__name__) from exc
    except h11.RemoteProtocolError as exc:
        raise httpx2.RemoteProtocolError(str(exc)) from exc
    except h11.LocalProtocolError as exc:
        raise httpx2.LocalProtocolError(str(exc)) from exc
