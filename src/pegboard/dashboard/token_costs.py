"""What listing a catalogue costs, whole and under the modes, worked out behind the page.

Counting some thousand definitions takes a second, so a page asks for what is known and the figures
follow. They are kept with the catalogue that they are about. Counting goes on by slices with a
breath between two: a thread that computes without end would make every page wait for its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import anyio
from anyio import to_thread

from pegboard.core.calls import LOCAL_CALLER
from pegboard.core.json import JsonObject
from pegboard.core.tools import Definition, Tool
from pegboard.modes.auto import MODES_BY_NAME, choose_mode
from pegboard.modes.mode import View
from pegboard.tokens import count_tokens

T = TypeVar("T")

SLICE = 100
"""Definitions that are counted at once: some ten milliseconds."""
BREATH = 0.01
"""Seconds between two slices, for whoever waits for a page."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens of a list."""

    mode: str
    """The mode that `auto` or the configuration gives a client of the modern era."""
    whole: int
    by_mode: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def shown(self) -> int:
        """Tokens of the list that a client gets unless it asks for another."""
        return self.by_mode.get(self.mode, self.whole)


class Costs:
    """The costs of catalogues, counted once for each."""

    def __init__(self) -> None:
        self._tools: dict[str, tuple[Definition, int]] = {}
        self._counting = anyio.Lock()

    def known(self, view: View) -> Cost | None:
        """What has been counted already."""
        return view.listed.memo.get(Cost)

    async def of(self, view: View) -> Cost:
        """The costs of a catalogue; other requests are answered while it is counted."""
        async with self._counting:
            cost = self.known(view)
            if cost is None:
                cost = view.listed.memo[Cost] = await self._counted(view)
        return cost

    def counted(self, tool: Tool) -> int | None:
        """Tokens of one definition, if it has been counted."""
        definition, tokens = self._tools.get(tool.id, (None, 0))
        return tokens if definition is tool.definition else None

    def tool(self, tool: Tool) -> int:
        """Tokens of one definition."""
        tokens = self.counted(tool)
        if tokens is None:
            tokens = count_tokens(tool)
            self._tools[tool.id] = tool.definition, tokens
        return tokens

    async def _counted(self, view: View) -> Cost:
        whole = await _sum(self.tool, view.listed.enabled)
        by_mode = {"eager": whole}
        for name, mode in MODES_BY_NAME.items():
            if name != "eager":
                by_mode[name] = await _sum(_tokens, await mode.entries(view))
        complete = view.constant is None
        mode = choose_mode(
            view.options.mode, LOCAL_CALLER, view.listed, view.options, complete=complete
        )
        return Cost(mode, whole, by_mode)


async def _sum(count: Callable[[T], int], items: Sequence[T]) -> int:
    """What all items come to, counted beside the event loop and with pauses."""
    total = 0
    for start in range(0, len(items), SLICE):
        total += await to_thread.run_sync(
            lambda part: sum(map(count, part)), items[start : start + SLICE]
        )
        await anyio.sleep(BREATH)
    return total


def _tokens(entry: JsonObject) -> int:
    return count_tokens({k: entry[k] for k in ("name", "description", "inputSchema") if k in entry})
