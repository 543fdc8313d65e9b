"""Which requests are under way: what a gateway finishes before it stops."""

from __future__ import annotations

import anyio

from pegboard.errors import Busy


class RequestDrain:
    """Requests between their arrival and their answer; closed for new ones when stopping."""

    def __init__(self) -> None:
        self.is_closed = False
        self._count = 0
        self._idle = anyio.Event()

    def __len__(self) -> int:
        return self._count

    def begin(self) -> None:
        """Note that a request is being answered. Raises `Busy` when no more are taken."""
        if self.is_closed:
            raise Busy("The gateway is stopping: connect again in a moment.", retry_after=1.0)
        self._count += 1

    def end(self) -> None:
        """Note that one has been answered."""
        self._count -= 1
        if not self._count:
            self._idle.set()

    async def finished(self, patience: float) -> bool:
        """Take no more requests and wait for those under way; whether all were in time."""
        self.is_closed = True
        with anyio.move_on_after(patience):
            while self._count:
                self._idle = anyio.Event()
                await self._idle.wait()
        return not self._count
