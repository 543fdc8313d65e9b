"""The token cost of a catalog's list in every mode, counted in the background.

Counting thousands of definitions takes a second, so a page shows the costs that are known and gets
the others later by a live update. They are stored with the catalog that they belong to, so a new
catalog is counted again. Counting runs in slices with pauses: a thread that computes without a
pause holds Python's interpreter lock, and every other request would wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import anyio
from anyio import to_thread

from pegboard.core.calls import LOCAL_CALLER
from pegboard.core.tools import Definition, Tool
from pegboard.modes.auto import MODES_BY_NAME, choose_mode
from pegboard.modes.mode import View
from pegboard.tokens import count_entry_tokens, count_tokens

T = TypeVar("T")

SLICE = 100
"""Definitions that are counted at once: about ten milliseconds."""
PAUSE = 0.01
"""Seconds between two slices, in which other requests run."""


@dataclass(frozen=True, slots=True)
class ListCosts:
    """The tokens of a list in each mode."""

    mode: str
    """The mode that a modern client gets by configuration or from `auto`."""
    whole: int
    by_mode: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def shown(self) -> int:
        """Tokens of the list that a client gets by default."""
        return self.by_mode.get(self.mode, self.whole)


class TokenCosts:
    """The costs of catalogs, each counted once."""

    def __init__(self) -> None:
        self._tools: dict[str, tuple[Definition, int]] = {}
        self._counting = anyio.Lock()

    def get_cached(self, view: View) -> ListCosts | None:
        """The costs of a catalog, if they have been counted."""
        return view.listed.memo.get(ListCosts)

    async def get_or_count(self, view: View) -> ListCosts:
        """The costs of a catalog; other requests are answered while it is counted."""
        # One count at a time: several pages often wait for the same catalog.
        async with self._counting:
            cost = self.get_cached(view)
            if cost is None:
                cost = view.listed.memo[ListCosts] = await self._count(view)
        return cost

    def get_cached_tool(self, tool: Tool) -> int | None:
        """The tokens of one definition, if they have been counted."""
        definition, tokens = self._tools.get(tool.id, (None, 0))
        # A tool that was listed again has another definition object, and is counted again.
        return tokens if definition is tool.definition else None

    def count_tool(self, tool: Tool) -> int:
        """The tokens of one definition."""
        tokens = self.get_cached_tool(tool)
        if tokens is None:
            tokens = count_tokens(tool)
            self._tools[tool.id] = tool.definition, tokens
        return tokens

    async def _count(self, view: View) -> ListCosts:
        whole = await _sum(self.count_tool, view.listed.enabled)
        by_mode = {"eager": whole}
        for name, mode in MODES_BY_NAME.items():
            if name != "eager":
                entries = await mode.entries(view)
                by_mode[name] = await _sum(lambda entry: count_entry_tokens([entry]), entries)
        complete = view.constant is None
        mode = choose_mode(
            view.options.mode, LOCAL_CALLER, view.listed, view.options, complete=complete
        )
        return ListCosts(mode, whole, by_mode)


async def _sum(count: Callable[[T], int], items: Sequence[T]) -> int:
    """The sum over all items, counted in a thread and with pauses."""
    total = 0
    for start in range(0, len(items), SLICE):
        total += await to_thread.run_sync(
            lambda part: sum(map(count, part)), items[start : start + SLICE]
        )
        await anyio.sleep(PAUSE)
    return total
