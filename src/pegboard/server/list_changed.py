"""Telling clients that a list has changed: once per burst, in both eras.

Modern clients hear it on the `subscriptions/listen` streams that they opened, legacy ones on their
connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal, TypeAlias
from weakref import WeakSet

import anyio
from mcp.server.connection import Connection
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourcesListChanged,
    SubscriptionBus,
    ToolsListChanged,
)

DEBOUNCE = 0.05
"""Seconds without a further change after which a burst counts as over."""

ListKind: TypeAlias = Literal["tools", "prompts", "resources"]
_EVENTS = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}


class ListChangedNotifier:
    """Passes changes of a catalogue on to everyone who listens."""

    def __init__(self, bus: SubscriptionBus | None = None) -> None:
        self.bus: SubscriptionBus = bus or InMemorySubscriptionBus()
        self._legacy: WeakSet[Connection] = WeakSet()

    def listen(self, connection: Connection) -> None:
        """Remember a legacy connection, for as long as it lives."""
        self._legacy.add(connection)

    async def announce(self, kind: ListKind = "tools") -> None:
        """Say it now, to everyone."""
        await self.bus.publish(_EVENTS[kind]())
        for connection in list(self._legacy):
            try:
                await connection.notify(f"notifications/{kind}/list_changed", None)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._legacy.discard(connection)

    async def watch(
        self,
        subscribe: Callable[[Callable[[], object]], Callable[[], None]],
        kind: ListKind = "tools",
    ) -> None:
        """Announce changes until cancelled; `subscribe` takes a callback for any thread."""
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        stop = subscribe(lambda: loop.call_soon_threadsafe(changed.set))
        try:
            while True:
                await changed.wait()
                while changed.is_set():
                    changed.clear()
                    await anyio.sleep(DEBOUNCE)
                await self.announce(kind)
        finally:
            stop()
