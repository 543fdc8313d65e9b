"""The ports: what Pegboard needs from the outside, as Protocols that adapters need not inherit.

Source     gives tools and runs their calls     functions, OpenAPI documents, MCP servers
Store      state that replicas share            memory, Redis
Embedder   texts to vectors, for search         the bundled model
Observer   receives events                      logs, traces, metrics, the dashboard
Sandbox    runs programs that models write      Monty
Layer      one step of dispatch                 `pegboard.dispatch`
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.events import Event
from pegboard.core.json import Json
from pegboard.core.tools import Tool

if TYPE_CHECKING:  # numpy is slow to import, and only needed for search
    import numpy as np
    from numpy.typing import NDArray

    from pegboard.core.code.steps import Answers, SandboxLimits, Step

__all__ = [
    "Change",
    "Embedder",
    "Handler",
    "Layer",
    "Observer",
    "Records",
    "Sandbox",
    "SandboxSession",
    "Source",
    "Store",
    "ToolCall",
    "call_progress",
    "progress_callback",
    "record_event",
]

logger = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[ToolCall], Awaitable[CallResult]]
"""Runs one call."""

Layer: TypeAlias = Callable[[Handler], Handler]
"""Wraps a handler with one concern, such as a timeout or a projection."""

# Not `Callable[[Json], Awaitable[Json]]`: nothing may be awaited between reading and writing.
Change: TypeAlias = Callable[[Json], Json]
"""From the old value to the new one; `None` means absent. Pure: a store may run it again."""


class Source(Protocol):
    """Where tools come from, and what runs their calls."""

    async def tools(self) -> Sequence[Tool]:
        """The current tools of this source."""
        ...

    async def call(self, call: ToolCall) -> CallResult:
        """Run one call to a tool of this source. Raises `UpstreamError` when it cannot be run."""
        ...


class Records(Protocol):
    """Values under keys. Values are JSON.

    Every method raises `StoreError` when the state cannot be reached.
    """

    async def get(self, key: str) -> Json:
        """The value, or `None`; a copy that the caller may change."""
        ...

    async def update(self, key: str, change: Change, *, ttl: float | None = None) -> Json:
        """Apply a pure change atomically and return the new value.

        It expires `ttl` seconds from now; without `ttl` it stays until it is removed.
        """
        ...


class Store(Records, Protocol):
    """State that outlives a request, shared by all replicas."""

    async def publish(self, topic: str, message: Json) -> None:
        """Send a message to every subscriber of the topic, in every replica, at most once."""
        ...

    def subscribe(self, topic: str) -> AbstractAsyncContextManager[AsyncIterator[Json]]:
        """The topic's messages from the moment the block is entered.

        Messages can be lost (a broken connection, a slow reader). A `None` then comes in their
        place: read the current state from the store.
        """
        ...


class Embedder(Protocol):
    """Turns texts into unit vectors, one row each; `id` names model and version."""

    id: str
    dimensions: int

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]: ...

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


class Observer(Protocol):
    """Receives every event through `record_event`; never fails the call that it observes."""

    def record(self, event: Event) -> None: ...


class SandboxSession(Protocol):
    """One program in a sandbox. Every step raises as `core/code/steps.py` says."""

    @property
    def printed(self) -> str:
        """What the program has printed, up to its limit."""
        ...

    @property
    def prints_dropped(self) -> int:
        """Characters that were printed beyond the limit."""
        ...

    async def start(
        self, program: str, names: Iterable[str], *, stops: Callable[[str], bool], is_async: bool
    ) -> Step:
        """Check a program and run it to its first pause; `stops` names tools to stop before."""
        ...

    async def start_unchecked(self, program: str) -> Step:
        """Run a program that `start` rejected for something harmless."""
        ...

    async def resume(self, answers: Answers) -> Step:
        """Go on with the answers to calls."""
        ...

    def dump(self) -> bytes:
        """The paused program, for `load`."""
        ...

    async def load(
        self, blob: bytes, names: Iterable[str], *, stops: Callable[[str], bool], is_async: bool
    ) -> Step:
        """Take up a saved program where it was paused; only bytes that `dump` gave."""
        ...


# One sandbox serves many programs, so that a pool of worker processes can outlive each of them.
class Sandbox(Protocol):
    """Runs programs where they can reach nothing but the tools that they are given."""

    @property
    def version(self) -> str:
        """A program that was saved can be continued by the same version."""
        ...

    def open(
        self, limits: SandboxLimits, stubs: str | None = None
    ) -> AbstractAsyncContextManager[SandboxSession]:
        """A fresh session; with `stubs`, programs are checked against them first."""
        ...

    def close(self) -> None:
        """End all processes; a later program starts new ones."""
        ...


def record_event(observer: Observer | None, event: Event) -> None:
    """Pass an event to an observer, if there is one; a failure of the observer is only logged."""
    # Most parts work without an observer, and none of them should have to ask.
    if observer is None:
        return
    try:
        observer.record(event)
    except Exception:  # an observer may be anybody's code, and a call must not fail because of it
        logger.exception("The observer %s failed on %s.", type(observer).__name__, event.kind)


call_progress: ContextVar[Callable[[], None] | None] = ContextVar("pegboard_progress", default=None)
"""Set by the timeout layer: to be called whenever the running call reports progress."""


def progress_callback() -> Callable[[], None]:
    """A function for a source to call whenever the running call reports progress.

    Get it in the call's own task; call it wherever progress arrives on the same event loop.
    """
    return call_progress.get() or (lambda: None)
