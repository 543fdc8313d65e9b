"""Connections of HTTP clients: slow ones are closed, and there are never too many.

    connected ──headers──> request ──body──> answering ──> idle (uvicorn's keep-alive timeout)
       └ `header_timeout`    └ `body_timeout`  └ `write_timeout` without the client reading

Uvicorn has a timeout for idle connections alone, and asyncio, when it is out of descriptors, tries
to accept as many clients as wait, with a traceback in the log for each. So a connection has to make
progress here, and the number of connections stays below what the process has descriptors for: at
the limit, one that only waits for a request makes room for a new one.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

RESERVED_DESCRIPTORS = 16
"""For files, servers behind us and the store, beside those that are open at the start."""
ACCEPTED_AT_ONCE = 16
"""Clients that are accepted before the event loop goes on: each takes a descriptor at once."""
WAITING_CLIENTS = 2048
"""Clients that the system lets wait to be accepted."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How long clients may take, in seconds, and how many there may be."""

    header_timeout: float = 20.0
    body_timeout: float = 120.0
    write_timeout: float = 120.0
    connections: int = 1_000

    def most(self) -> int:
        """Connections that fit the descriptors of this process."""
        with suppress(ImportError):  # there is none on Windows, and no such limit
            import resource

            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            if soft != resource.RLIM_INFINITY:
                taken = _open_descriptors() + RESERVED_DESCRIPTORS + ACCEPTED_AT_ONCE
                return max(4, min(self.connections, soft - taken))
        return self.connections


def _open_descriptors() -> int:
    try:
        return len(os.listdir("/dev/fd"))
    except OSError:
        return 0


def protocol_of(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """The class of uvicorn's connections, with these limits."""
    most = limits.most()
    numbers = count()

    class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        """One connection."""

        connections: set[Any]
        timeout_keep_alive_task: asyncio.TimerHandle | None
        cycle: Any
        loop: asyncio.AbstractEventLoop
        transport: asyncio.Transport

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            self.number = next(numbers)
            self._deadline: asyncio.TimerHandle | None = None
            self._awaited: str | None = None
            self._stalled: asyncio.TimerHandle | None = None
            super().connection_made(transport)
            self._expect()
            if len(self.connections) > most:
                _make_room(self.connections, self)

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
            self._stalled = self.loop.call_later(limits.write_timeout, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._stalled is not None:
                self._stalled.cancel()

        @property
        def is_waiting(self) -> bool:
            """Whether no request is being answered, so that nothing is lost with it."""
            return self.cycle is None or self.cycle.response_complete

        def _expect(self) -> None:
            """Have the client send what comes next in time; the clock runs from its beginning."""
            if not self.is_waiting:
                awaited = "body" if self.cycle.more_body else None
            else:
                # Between two requests uvicorn's own timeout runs, until the next one begins.
                awaited = "headers" if self.timeout_keep_alive_task is None else None
            if awaited != self._awaited:
                self._cancel()
                self._awaited = awaited
                if awaited is not None:
                    seconds = limits.header_timeout if awaited == "headers" else limits.body_timeout
                    self._deadline = self.loop.call_later(seconds, self.transport.abort)

        def _cancel(self) -> None:
            for timer in (self._deadline, self._stalled):
                if timer is not None:
                    timer.cancel()

    return Connection


def _make_room(connections: set[Any], newest: Any) -> None:
    """Close the oldest connection that waits for a request; where all are busy, the newest."""
    waiting = (one for one in connections if one.is_waiting and not one.transport.is_closing())
    min(waiting, key=lambda one: one.number, default=newest).transport.abort()
