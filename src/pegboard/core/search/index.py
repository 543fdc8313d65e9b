"""The index of one catalogue: from a query to ranked tools.

An index is a value. When tools come and go, `updated` gives the next one and keeps what it knows
of the tools that stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from pegboard.core.search.bm25 import (
    ALIAS,
    CATEGORY,
    DESCRIPTION,
    NAME,
    PARAMETER,
    SERVER,
    Postings,
    TermWeights,
    weigh,
)
from pegboard.core.search.fields import fields_of
from pegboard.core.search.groups import Group, Groups
from pegboard.core.search.names import Names
from pegboard.core.search.text import WORD, clean, word_terms
from pegboard.core.tools import Catalog, Risk, Tool

QUERY_LIMIT = 4_000
TERM_LIMIT = 64
REMEMBERED = 512
FLOOR = 0.08  # a best score below this means that nothing fits

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
            and (self.risk is None or tool.risk == self.risk)
        )


class SearchIndex:
    """Search over one catalogue."""

    def __init__(self, catalog: Catalog, postings: Postings, keys: tuple[bytes, ...]) -> None:
        self.catalog = catalog
        self.keys = keys
        self._postings = postings
        self._remembered = lru_cache(maxsize=REMEMBERED)(self._answer)
        self._visible = lru_cache(maxsize=64)(self._admitted)

    @classmethod
    def build(cls, catalog: Catalog) -> SearchIndex:
        """The index of a catalogue, from nothing."""
        contents: list[TermWeights] = []
        keys: list[bytes] = []
        for tool in catalog:
            fields = fields_of(tool)
            keys.append(fields.key)
            contents.append(weigh(fields))
        return cls(catalog, Postings.build(contents), tuple(keys))

    def updated(self, catalog: Catalog) -> SearchIndex:
        """The index of the catalogue as it is now; tools that read the same are not read again."""
        before = {tool.id: number for number, tool in enumerate(self.catalog)}
        moved = np.full(len(self.catalog), -1, np.int32)
        keys: list[bytes] = []
        added: list[tuple[int, TermWeights]] = []
        last = -1
        for number, tool in enumerate(catalog):
            old = before.get(tool.id, -1)
            if old >= 0 and self.catalog.tools[old] is tool:
                key, fields = self.keys[old], None
            else:
                fields = fields_of(tool)
                key = fields.key
            keys.append(key)
            if old > last and self.keys[old] == key:
                moved[old] = number
                last = old
            else:
                added.append((number, weigh(fields or fields_of(tool))))
        return SearchIndex(catalog, self._postings.changed(moved, added, len(catalog)), tuple(keys))

    def search(
        self,
        query: str,
        limit: int = 10,
        *,
        category: str | None = None,
        server: str | None = None,
        risk: Risk | None = None,
        include_disabled: bool = False,
        include_deprecated: bool = True,
        allowed: Callable[[Tool], bool] | None = None,
    ) -> list[Match]:
        """The tools that fit a query, best first; empty when nothing is relevant.

        Args:
            query: what is wanted, in any words; or a tool's name; or "everything about" a category.
            limit: at most so many.
            category: only tools of this category.
            server: only tools of this server.
            risk: only tools of this risk.
            include_disabled: find tools that are switched off as well.
            include_deprecated: find tools that are on their way out as well.
            allowed: whether the caller may see a tool.
        """
        chosen = Filter(category, server, risk, include_disabled, include_deprecated)
        if allowed is None:
            return list(self._remembered(query, limit, chosen, None))
        return list(self._answer(query, limit, chosen, allowed))

    def group(self, query: str) -> Group | None:
        """The category or server that a query asks for whole ("everything about milestones")."""
        return self._groups.asked(query)

    def _answer(
        self, query: str, limit: int, chosen: Filter, allowed: Callable[[Tool], bool] | None
    ) -> tuple[Match, ...]:
        text = clean(query, QUERY_LIMIT).strip()
        if not text or limit <= 0 or not len(self.catalog):
            return ()
        group = self.group(text)
        words = self._words(text)
        scores = self._scores(text, words)
        visible = self._visible(chosen)
        if group is not None:
            visible = visible & self._members(group)
            scores = np.maximum(scores, np.float32(FLOOR))
        found: list[Match] = []
        for number in _ranked(scores, visible, limit if allowed is None else None):
            tool = self.catalog.tools[number]
            if allowed is None or allowed(tool):
                found.append(Match(tool, round(float(scores[number]), 4), self._why(number, words)))
                if len(found) == limit:
                    break
        return tuple(found) if found and found[0].score >= FLOOR else ()

    def _words(self, text: str) -> dict[str, str]:
        """The query's terms, each with the word it was written as; of very many, the rarest."""
        words = {term: word for word in WORD.findall(text) for term in word_terms(word)}
        if len(words) <= TERM_LIMIT:
            return words
        rarest = sorted(words, key=self._postings.rarity, reverse=True)[:TERM_LIMIT]
        return {term: words[term] for term in rarest}

    def _scores(self, text: str, words: Mapping[str, str]) -> NDArray[np.float32]:
        scores = self._postings.score(dict.fromkeys(words, 1.0)).scores
        for number in self._names.named(text):
            scores[number] = 1.0
        return scores

    def _admitted(self, chosen: Filter) -> NDArray[np.bool_]:
        return np.fromiter(map(chosen.admits, self.catalog.tools), np.bool_, len(self.catalog))

    def _members(self, group: Group) -> NDArray[np.bool_]:
        return np.fromiter(map(group.holds, self.catalog.tools), np.bool_, len(self.catalog))

    def _why(self, number: int, words: Mapping[str, str]) -> tuple[str, ...]:
        found = [(w, self._postings.places_of(term, number)) for term, w in words.items()]
        return tuple(
            f"{label}: {', '.join(dict.fromkeys(hits))}"
            for place, label in _PLACES
            if (hits := [word for word, places in found if places & place])
        )

    @cached_property
    def _groups(self) -> Groups:
        return Groups(self.catalog)

    @cached_property
    def _names(self) -> Names:
        return Names(self.catalog.tools)


def _ranked(
    scores: NDArray[np.float32], visible: NDArray[np.bool_], limit: int | None
) -> list[int]:
    """Tools with any score, best first, catalogue order among equals; `limit` of them at least."""
    numbers = np.flatnonzero(visible & (scores > 0))
    if limit is not None and len(numbers) > 4 * limit:
        least = np.partition(scores[numbers], len(numbers) - limit)[len(numbers) - limit]
        numbers = numbers[scores[numbers] >= least]
    return numbers[np.argsort(-scores[numbers], kind="stable")].tolist()
