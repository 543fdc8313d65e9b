"""Tools that operators switched off: kept in the store, followed by every replica."""

from __future__ import annotations

from collections.abc import Callable

from pegboard.core.json import Json
from pegboard.core.tools import Tool, with_enabled
from pegboard.ports import Store
from pegboard.store.fallback import strict

KEY = "switched-off"


class Switches:
    """What is switched off, as far as this gateway knows it now."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.off: frozenset[str] = frozenset()

    async def turn(self, tool_id: str, *, enabled: bool) -> None:
        """Switch a tool on or off in every replica.

        Raises:
            StoreError: The shared store is away: nothing was switched.
        """

        def change(kept: Json) -> Json:
            off = set[str](kept or ()) - {tool_id}
            return sorted(off if enabled else {*off, tool_id}) or None

        store = strict(self._store)
        self.off = frozenset(await store.update(KEY, change) or ())
        await store.publish(KEY, None)

    def judged(self, tool: Tool) -> Tool:
        """The tool, off where somebody switched it off."""
        return with_enabled(tool, False) if tool.id in self.off else tool

    async def load(self) -> None:
        """Read what is switched off."""
        self.off = frozenset(await self._store.get(KEY) or ())

    async def follow(self, changed: Callable[[], None]) -> None:
        """Keep to what the store says, until cancelled."""
        async with self._store.subscribe(KEY) as messages:
            await self._read(changed)  # what was said before there was somebody to hear it
            async for _ in messages:
                await self._read(changed)

    async def _read(self, changed: Callable[[], None]) -> None:
        before = self.off
        await self.load()
        if self.off != before:
            changed()
