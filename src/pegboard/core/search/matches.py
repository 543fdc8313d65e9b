"""What a search gives back, and which tools it may give back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pegboard.core.search.bm25 import ALIAS, CATEGORY, DESCRIPTION, NAME, PARAMETER, SERVER
from pegboard.core.tools import Risk, Tool, belongs

_PLACES = (
    (NAME, "name"),
    (ALIAS, "alias"),
    (DESCRIPTION, "description"),
    (PARAMETER, "parameters"),
    (SERVER, "server"),
    (CATEGORY, "category"),
)


@dataclass(frozen=True, slots=True)
class Match:
    """One tool found: how well it fits, from 0 to 1, and what of it fits."""

    tool: Tool
    score: float
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Filter:
    """Which tools may be found at all."""

    category: str | None = None
    server: str | None = None
    group: str | None = None
    risk: Risk | None = None
    include_disabled: bool = False
    include_deprecated: bool = True

    def admits(self, tool: Tool) -> bool:
        """Whether the tool may be found."""
        return (
            (self.include_disabled or tool.enabled)
            and (self.include_deprecated or tool.deprecated is None)
            and (self.category is None or tool.category == self.category)
            and (self.server is None or tool.server == self.server)
            and (self.group is None or belongs(tool, self.group))
            and (self.risk is None or tool.risk == self.risk)
        )


def reasons(found: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Words of the query with the places they stand in, as `name: create, issue`."""
    hits = list(found)
    return tuple(
        f"{label}: {', '.join(dict.fromkeys(words))}"
        for place, label in _PLACES
        if (words := [word for word, places in hits if places & place])
    )
