"""Graceful shutdown: requests in progress are finished, new ones are refused.

    serving  --SIGTERM, SIGINT-->  draining: `RequestDrain` refuses new requests
                                      |  all answered, or the timeout is over
                                      v
                                   stopped

SIGHUP reloads the configuration.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Coroutine
from typing import TypeAlias

import anyio
from anyio.abc import TaskStatus

from pegboard.errors import Busy

SignalAction: TypeAlias = Callable[[], Coroutine[None, None, None]]


class RequestDrain:
    """Counts requests between their arrival and their answer; closed when shutting down."""

    def __init__(self) -> None:
        self.is_closed = False
        self._count = 0
        self._idle = anyio.Event()

    def __len__(self) -> int:
        return self._count

    def begin(self) -> None:
        """Count a request that has arrived. Raises `Busy` during shutdown."""
        if self.is_closed:
            raise Busy("The gateway is stopping: connect again in a moment.", retry_after=1.0)
        self._count += 1

    def end(self) -> None:
        """Count a request as answered."""
        self._count -= 1
        if not self._count:
            self._idle.set()

    async def finish(self, timeout: float) -> bool:
        """Refuse new requests and wait for those in progress; whether all ended in time."""
        self.is_closed = True
        with anyio.move_on_after(timeout):
            while self._count:
                self._idle = anyio.Event()
                await self._idle.wait()
        return not self._count


async def handle_signals(
    *, stop: SignalAction, reload: SignalAction, task_status: TaskStatus[None]
) -> None:
    """Run `stop` on SIGTERM and SIGINT, `reload` on SIGHUP, until canceled."""
    if sys.platform == "win32":  # Windows has no signals that can be awaited
        task_status.started()
        return
    async with anyio.create_task_group() as tasks:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
            task_status.started()
            async for number in received:
                # In a task of its own: a second signal must be handled while the first one is.
                tasks.start_soon(reload if number == signal.SIGHUP else stop)
