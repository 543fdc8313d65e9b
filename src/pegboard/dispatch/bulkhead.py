"""The bulkhead layer: limits the concurrent calls of each upstream.

A slow upstream then delays its own callers and nobody else's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio

from pegboard.core import defaults
from pegboard.core.calls import CallResult, ToolCall
from pegboard.errors import Busy, ConfigError
from pegboard.ports import Handler, Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """`running` calls at a time and `waiting` more in a queue, for at most `patience` seconds.

    `retry_after` is the time after which a rejected caller should try again.
    """

    running: int = defaults.UPSTREAM_CONCURRENCY
    waiting: int = defaults.UPSTREAM_QUEUE
    patience: float = 30.0
    retry_after: float = 1.0

    def __post_init__(self) -> None:
        if self.running < 1 or self.waiting < 0 or self.patience <= 0:
            raise ConfigError(f"An upstream must be able to run at least one call; got {self}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkheadPolicy:
    """The bound of each upstream; tools without an upstream have none."""

    default: Bound = field(default_factory=Bound)
    upstreams: Mapping[str, Bound] = field(default_factory=dict[str, Bound])

    def bound(self, upstream: str) -> Bound:
        """The bound of one upstream."""
        return self.upstreams.get(upstream, self.default)


def bulkhead(policy: BulkheadPolicy | None = None) -> Layer:
    """A layer that queues calls to a busy upstream in order, and rejects the rest with `Busy`."""
    bounds = policy or BulkheadPolicy()
    slots: dict[str, _Slots] = {}

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            # Functions of this process have no server to protect.
            upstream = call.tool.server
            if upstream is None:
                return await inner(call)
            # Created on the first call: upstreams come and go, and few are ever busy.
            if upstream not in slots:
                slots[upstream] = _Slots(upstream, bounds.bound(upstream))
            await slots[upstream].acquire()
            try:
                return await inner(call)
            finally:
                slots[upstream].release()

        return handle

    return layer


class _Slots:
    """The concurrent calls to one upstream."""

    def __init__(self, upstream: str, bound: Bound) -> None:
        self._upstream = upstream
        self._bound = bound
        self._free = anyio.Semaphore(bound.running, fast_acquire=True)

    async def acquire(self) -> None:
        """A slot, immediately or after waiting in the queue. Raises `Busy`."""
        # Without this, every call would enter a cancel scope, although nearly none has to wait.
        try:
            return self._free.acquire_nowait()
        except anyio.WouldBlock:
            pass
        # A queue without a limit would hold requests of clients that have given up long ago.
        waiting = self._free.statistics().tasks_waiting
        if waiting >= self._bound.waiting:
            raise self._busy(f"{waiting} more are waiting")
        with anyio.move_on_after(self._bound.patience) as scope:
            await self._free.acquire()
        if scope.cancelled_caught:
            raise self._busy(f"none finished within {self._bound.patience:g} s")

    def release(self) -> None:
        self._free.release()

    def _busy(self, why: str) -> Busy:
        return Busy(
            f"The server {self._upstream} is busy: {self._bound.running} calls are running and "
            f"{why}. Try again in {self._bound.retry_after:g} s, with fewer calls at once.",
            server=self._upstream,
            retry_after=self._bound.retry_after,
        )
