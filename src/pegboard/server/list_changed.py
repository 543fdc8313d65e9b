"""`list_changed`: how clients learn that a list has changed, in both eras.

    a board's tools change ──┐
    a server's prompts or    ├──> `ListChangedNotifier` ──> modern: `subscriptions/listen` streams
    resources change       ──┘      (one per burst)    └──> legacy: the connection itself

    mode `dynamic`: a search  ──> `StoredSessionTools` ──> the one session that searched

In the `dynamic` mode, a search enables its matches on the session, and the client is notified that
its list changed. The enabled tools are in the store, because a session may be served by any replica
that shares it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
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

from pegboard.core.enabled_tools import EnabledTools, EnabledToolsPolicy
from pegboard.core.json import Json
from pegboard.ports import Store
from pegboard.server import mcp_private

DEBOUNCE = 0.05
"""Seconds without a further change after which a burst counts as over."""

SESSION_TTL = 24 * 3600.0
"""Seconds after its last search for which a session's enabled tools are stored."""

ListKind: TypeAlias = Literal["tools", "prompts", "resources"]
_EVENTS = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}


class ListChangedNotifier:
    """Notifies every listening client of changed lists."""

    def __init__(self, bus: SubscriptionBus | None = None) -> None:
        self.bus: SubscriptionBus = bus or InMemorySubscriptionBus()
        self._legacy: WeakSet[Connection] = WeakSet()

    def listen(self, connection: Connection) -> None:
        """Notify a legacy connection too, for as long as it lives."""
        self._legacy.add(connection)

    async def announce(self, kind: ListKind = "tools") -> None:
        """Notify everyone now."""
        await self.bus.publish(_EVENTS[kind]())
        for connection in list(self._legacy):  # a copy: others may connect while we wait
            try:
                await connection.notify(f"notifications/{kind}/list_changed", None)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._legacy.discard(connection)

    async def watch(
        self,
        subscribe: Callable[[Callable[[], object]], Callable[[], None]],
        kind: ListKind = "tools",
    ) -> None:
        """Announce changes until canceled; `subscribe` takes a callback for any thread."""
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        stop = subscribe(lambda: loop.call_soon_threadsafe(changed.set))
        try:
            while True:
                await changed.wait()
                while changed.is_set():  # a server that starts changes its lists many times
                    changed.clear()
                    await anyio.sleep(DEBOUNCE)
                await self.announce(kind)
        finally:
            stop()


class StoredSessionTools:
    """The enabled tools of a legacy session, in the store; implements `modes.mode.SessionTools`."""

    def __init__(self, store: Store, ctx: mcp_private.Context, session: str, cap: int) -> None:
        self._store = store
        self._ctx = ctx
        self._key = f"session/{session}"
        self._cap = cap

    async def enabled(self) -> Collection[str]:
        return EnabledTools.from_json(await self._store.get(self._key)).enabled

    async def enable(self, tool_ids: Sequence[str]) -> None:
        before = set(await self.enabled())
        policy, now = EnabledToolsPolicy(cap=self._cap), time.time()

        def change(stored: Json) -> Json:
            return EnabledTools.from_json(stored).enable(tool_ids, policy, now).to_json()

        after = await self._store.update(self._key, change, ttl=SESSION_TTL)
        if set(EnabledTools.from_json(after).enabled) != before:
            # Before the result is sent, so that the client has the new list when it continues.
            await mcp_private.notify_tools_changed(self._ctx)

    async def used(self, tool_id: str) -> None:
        if tool_id not in await self.enabled():  # a read is cheaper than a needless write
            return
        now = time.time()

        def change(stored: Json) -> Json:
            return EnabledTools.from_json(stored).mark_used(tool_id, now).to_json()

        await self._store.update(self._key, change, ttl=SESSION_TTL)
