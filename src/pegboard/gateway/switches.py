"""Tools that operators switched off: stored for all replicas, and followed by each of them."""

from __future__ import annotations

from collections.abc import Callable

from pegboard.core.json import Json
from pegboard.core.lock import held
from pegboard.core.tools import Tool, with_enabled
from pegboard.errors import StoreError
from pegboard.following import follow
from pegboard.ports import Store
from pegboard.store.memory import MemoryStore

KEY = "switched-off"


class Switches:
    """The tools that are switched off, as far as this gateway knows; all are held until it does.

    Args:
        store: The store for decisions, see `decision_store`.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.off: frozenset[str] = frozenset()
        self.is_known = isinstance(store, MemoryStore)
        """Whether the switches have been read; a process's own memory starts without any."""

    async def turn(self, tool_id: str, *, enabled: bool) -> None:
        """Switch a tool on or off in every replica.

        Raises:
            StoreError: The shared store is unavailable: nothing was switched.
        """

        def change(value: Json) -> Json:
            off = (self.off if value is None else _ids(value)) - {tool_id}
            return sorted(off if enabled else {*off, tool_id})

        self.off = _ids(await self._store.update(KEY, change))
        await self._store.publish(KEY, None)

    def judged(self, tool: Tool) -> Tool:
        """The tool, off where somebody switched it off; held back while that is not known."""
        if not self.is_known:
            return held(tool, "unknown")
        return with_enabled(tool, False) if tool.id in self.off else tool

    async def load(self) -> None:
        """Read which tools are switched off.

        Raises:
            StoreError: It cannot be read. What was known before goes on.
        """
        value = await self._store.get(KEY)
        if value is None and self.off:  # the store lost the record, and this process knows it
            value = await self._store.update(KEY, lambda v: sorted(self.off) if v is None else v)
        self.off, self.is_known = _ids(value), True

    def take(self, other: Switches) -> None:
        """Go by what another reader of the same store found."""
        self.off, self.is_known = other.off, other.is_known

    async def follow(self, changed: Callable[[], None]) -> None:
        """Keep to what the store says, until cancelled."""

        async def read() -> None:
            before = self.off, self.is_known
            await self.load()
            if (self.off, self.is_known) != before:
                changed()

        await follow(lambda: self._store.subscribe(KEY), read)


def _ids(value: Json) -> frozenset[str]:
    if value is None:
        return frozenset()
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise StoreError(f"The store holds something that is not a list of tools at {KEY!r}.")
    return frozenset(value)
