"""The HTTP server: binds an address, bounds its connections, and ends its streams at shutdown.

    connected ──headers──> request ──body──> answering ──> idle (uvicorn's keep-alive timeout)
       └ `header_timeout`    └ `body_timeout`  └ `write_timeout` without the client reading

Uvicorn has a timeout only for idle connections. And when asyncio runs out of file descriptors, it
tries to accept every waiting client, with a traceback in the log for each. So a connection has to
make progress here, and the number of connections stays below the limit of file descriptors: at the
limit, one that only waits for a request is closed in favor of a new one.

An open dashboard and a client that waits for notifications each hold a response that never ends by
itself. At shutdown, streams that carry no answer (`GET`) are ended at once, and those that may
still carry one a little later. The client sees a stream that is complete.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

import anyio
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from pegboard.core import defaults

RESERVED_DESCRIPTORS = 16
"""For files, upstream servers and the store, in addition to those open at the start."""
ACCEPT_BATCH = 16
"""Clients that are accepted in one step of the event loop: each takes a descriptor at once."""
LISTEN_BACKLOG = 2048
"""Clients that the operating system queues until they are accepted."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How long clients may take, in seconds, and how many may be connected."""

    header_timeout: float = defaults.HEADER_TIMEOUT
    body_timeout: float = defaults.BODY_TIMEOUT
    write_timeout: float = defaults.WRITE_TIMEOUT
    connections: int = defaults.MAX_CONNECTIONS

    def max_connections(self) -> int:
        """The number of connections that fits the file descriptors of this process."""
        with suppress(ImportError):  # Windows has no such module, and no such limit
            import resource

            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            if soft != resource.RLIM_INFINITY:
                taken = RESERVED_DESCRIPTORS + ACCEPT_BATCH
                with suppress(OSError):
                    taken += len(os.listdir("/dev/fd"))
                return max(4, min(self.connections, soft - taken))
        return self.connections


class _LimitedConnection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """One connection of uvicorn, closed when its client exceeds the limits."""

    limits: ClassVar[ConnectionLimits]
    most: ClassVar[int]
    numbers: ClassVar[Iterator[int]]

    connections: set[Any]
    timeout_keep_alive_task: asyncio.TimerHandle | None
    cycle: Any
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.number = next(self.numbers)
        self._deadline: asyncio.TimerHandle | None = None
        self._awaited: str | None = None
        self._stalled: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        self._expect()
        if len(self.connections) > self.most:
            # The oldest one that waits for a request; where all are busy, this new one.
            waiting = (c for c in self.connections if c.is_waiting and c.is_open)
            min(waiting, key=lambda one: one.number, default=self).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect()

    def on_response_complete(self) -> None:
        super().on_response_complete()  # pyright: ignore[reportAttributeAccessIssue] of either class
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(self.limits.write_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()

    @property
    def is_open(self) -> bool:
        return not self.transport.is_closing()

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being answered, so that closing it loses nothing."""
        return self.cycle is None or self.cycle.response_complete

    def _expect(self) -> None:
        """Start the deadline for what the client must send next, unless it is already running."""
        if not self.is_waiting:
            awaited = "body" if self.cycle.more_body else None
        else:
            # Between two requests uvicorn's own keep-alive timeout runs.
            awaited = "headers" if self.timeout_keep_alive_task is None else None
        if awaited != self._awaited:
            self._cancel()  # a client that trickles bytes does not get more time
            self._awaited = awaited
            if awaited is not None:
                seconds = (
                    self.limits.header_timeout if awaited == "headers" else self.limits.body_timeout
                )
                self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _cancel(self) -> None:
        for timer in (self._deadline, self._stalled):
            if timer is not None:
                timer.cancel()


def make_http_protocol(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """The class of uvicorn's connections, with these limits."""

    # Uvicorn makes the objects, so what they share must be on their class.
    class Connection(_LimitedConnection):
        pass

    Connection.limits, Connection.most = limits, limits.max_connections()
    Connection.numbers = count()
    return Connection


SHUTDOWN_GRACE = 1.0
"""Seconds that answers in progress get at shutdown."""
_FORCED_SHUTDOWN = 3
"""Seconds after which uvicorn cancels what is left, and logs it."""


class StreamTracker:
    """An application whose event streams can be ended from outside."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._listening: set[anyio.CancelScope] = set()
        self._answering: set[anyio.CancelScope] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and complete its stream when it is ended from outside."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        kind = self._listening if scope["method"] == "GET" else self._answering
        with anyio.CancelScope() as whole:

            async def sent(message: Message) -> None:
                is_start = message["type"] == "http.response.start"
                if is_start and any(
                    name.lower() == b"content-type" and value.startswith(b"text/event-stream")
                    for name, value in message.get("headers", ())
                ):
                    kind.add(whole)
                await send(message)

            try:
                await self._app(scope, receive, sent)
            finally:
                kind.discard(whole)
        if whole.cancel_called:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def end_listening(self) -> None:
        """End the streams that carry no answer."""
        for scope in tuple(self._listening):
            scope.cancel()

    def end_all(self) -> None:
        """End all streams."""
        for scope in (*self._listening, *self._answering):
            scope.cancel()


class HttpServer(uvicorn.Server):
    """A uvicorn server with limits, which ends the streams of its application at shutdown."""

    def __init__(
        self, app: ASGIApp, *, keep_alive: int = 5, limits: ConnectionLimits | None = None
    ) -> None:
        self._streams = StreamTracker(app)
        super().__init__(
            uvicorn.Config(
                self._streams,
                http=make_http_protocol(limits or ConnectionLimits()),
                backlog=ACCEPT_BATCH,
                log_level="warning",
                timeout_keep_alive=keep_alive,
                timeout_graceful_shutdown=_FORCED_SHUTDOWN,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, with a long queue of clients to be accepted."""
        await super().startup(sockets)
        # Again, because asyncio accepts `backlog` clients at once: that number has to be small.
        for one in sockets or ():
            with suppress(OSError):
                one.listen(LISTEN_BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more requests, end the streams that would stay open, then the application."""
        self._streams.end_listening()
        later = asyncio.get_running_loop().call_later(SHUTDOWN_GRACE, self._streams.end_all)
        await super().shutdown(sockets)
        later.cancel()
