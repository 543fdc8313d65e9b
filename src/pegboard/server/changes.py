"""Telling clients that the list of tools has changed: once per burst, in both eras.

Modern clients hear it on the `subscriptions/listen` streams that they opened, legacy ones on their
connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from weakref import WeakSet

import anyio
from mcp.server.connection import Connection
from mcp.server.subscriptions import InMemorySubscriptionBus, SubscriptionBus, ToolsListChanged

QUIET_FOR = 0.05
"""Seconds without a further change after which a burst counts as over."""


class ListChanges:
    """Passes changes of a catalogue on to everyone who listens."""

    def __init__(self, bus: SubscriptionBus | None = None) -> None:
        self.bus: SubscriptionBus = bus or InMemorySubscriptionBus()
        self._legacy: WeakSet[Connection] = WeakSet()

    def listen(self, connection: Connection) -> None:
        """Remember a legacy connection, for as long as it lives."""
        self._legacy.add(connection)

    async def announce(self) -> None:
        """Say it now, to everyone."""
        await self.bus.publish(ToolsListChanged())
        for connection in list(self._legacy):
            try:
                await connection.send_tool_list_changed()
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._legacy.discard(connection)

    async def watch(self, subscribe: Callable[[Callable[[], object]], Callable[[], None]]) -> None:
        """Announce changes until cancelled; `subscribe` takes a callback for any thread."""
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        stop = subscribe(lambda: loop.call_soon_threadsafe(changed.set))
        try:
            while True:
                await changed.wait()
                while changed.is_set():
                    changed.clear()
                    await anyio.sleep(QUIET_FOR)
                await self.announce()
        finally:
            stop()
