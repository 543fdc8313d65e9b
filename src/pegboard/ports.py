"""The seams: what the core needs from the world, as Protocols that adapters need not inherit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pegboard.core.calls import Call, CallResult
from pegboard.core.json import Json
from pegboard.core.tools import Tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Change", "Embedder", "Handler", "Layer", "Observer", "Source", "Store"]

Handler: TypeAlias = Callable[[Call], Awaitable[CallResult]]
"""Carries out one call."""

Layer: TypeAlias = Callable[[Handler], Handler]
"""Wraps a handler with one concern: a timeout, a breaker, a projection."""

Change: TypeAlias = Callable[[Json], Json]
"""Old value to new, `None` meaning absent. Pure: a store may run it again."""


class Source(Protocol):
    """Where tools come from, and what carries out their calls."""

    async def tools(self) -> Sequence[Tool]:
        """All tools of this source, as they are now."""
        ...

    async def call(self, call: Call) -> CallResult:
        """Run one call of a tool of this source. Raises `UpstreamError` when it cannot be run."""
        ...


class Store(Protocol):
    """State that outlives a request, shared by all replicas. Values are JSON."""

    async def get(self, key: str) -> Json:
        """The value, or `None`."""
        ...

    async def update(self, key: str, change: Change, *, ttl: float | None = None) -> Json:
        """Apply a pure change atomically and return the new value; it expires after `ttl`."""
        ...


class Embedder(Protocol):
    """Turns texts into unit vectors, one row each; `id` names model and version."""

    id: str
    dimensions: int

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]: ...

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


class Observer(Protocol):
    """Told of every event; never fails the call that it watches."""

    def record(self, event: object) -> None: ...
