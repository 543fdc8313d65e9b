"""The index of one catalog: from a query to ranked tools.

An index is an immutable value. When tools come and go, `updated` returns the next one, and
`refreshed` one with the vectors that were computed in the meantime; both reuse everything known of
the tools that stay. Without a `Vectorizer`, an index searches by words alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar
from weakref import WeakMethod, ref

import numpy as np
from numpy.typing import NDArray

from pegboard.core.search import relevance
from pegboard.core.search.bm25 import (
    ALIAS,
    CATEGORY,
    DESCRIPTION,
    NAME,
    PARAMETER,
    SERVER,
    LexicalScores,
    Postings,
    TermWeights,
    weigh_terms,
)
from pegboard.core.search.queries import (
    Group,
    GroupNames,
    NamedTools,
    ToolNames,
    matches_name,
    name_words,
)
from pegboard.core.search.searchable_fields import (
    SearchableFields,
    build_passage,
    read_searchable_fields,
)
from pegboard.core.search.terms import WORD, clean, word_terms
from pegboard.core.search.vectors import Floats, QuantizedVectors, ToolVectors, Vectorizer
from pegboard.core.tools import Catalog, Risk, Tool, is_in_group

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
class SearchFilter:
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
            and (self.group is None or is_in_group(tool, self.group))
            and (self.risk is None or tool.risk == self.risk)
        )


def match_reasons(found: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Words of the query with the places they stand in, as `name: create, issue`."""
    hits = list(found)
    return tuple(
        f"{label}: {', '.join(dict.fromkeys(words))}"
        for place, label in _PLACES
        if (words := [word for word, places in hits if places & place])
    )


QUERY_LIMIT = 4_000
TERM_LIMIT = 64
SPELLED_LIMIT = 200
"""Tools, best first, whose names are compared word by word with a query."""
REMEMBERED = 512
_PART = "search index"
"""Where a catalogue keeps the index of itself as a part of another."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IndexContents:
    """What an index knows of its tools, in the order of the catalogue."""

    keys: tuple[bytes, ...]
    postings: Postings
    vectors: ToolVectors | None = None


class SearchIndex:
    """Search over one catalogue."""

    def __init__(
        self, catalog: Catalog, contents: IndexContents, meanings: Vectorizer | None = None
    ) -> None:
        self.catalog = catalog
        self.contents = contents
        self._meanings = meanings
        self._remembered = _remembering(REMEMBERED, self._answer)
        self._visible = _remembering(64, self._admitted)

    @classmethod
    def build(cls, catalog: Catalog, meanings: Vectorizer | None = None) -> SearchIndex:
        """The index of a catalogue, from nothing."""
        read = [read_searchable_fields(tool) for tool in catalog]
        keys = tuple(fields.key for fields in read)
        vectors = None
        if meanings is not None:
            vectors = ToolVectors(
                meanings.rough(list(map(build_passage, read))), meanings.exact(keys)
            )
        contents = IndexContents(keys, Postings.build(map(weigh_terms, read)), vectors)
        return cls(catalog, contents, meanings)

    def among(self, seen: Catalog) -> SearchIndex:
        """The index of what somebody sees: words of other tools must not weigh in its answers.

        Made anew when this index has become another, as it does while vectors are made.
        """
        if seen is self.catalog:
            return self
        kept: tuple[ref[SearchIndex], SearchIndex] | None = seen.memo.get(_PART)
        if kept is not None and kept[0]() is self:
            return kept[1]
        part = self.updated(seen)
        seen.memo[_PART] = (ref(self), part)
        return part

    def updated(self, catalog: Catalog) -> SearchIndex:
        """The index of the catalogue as it is now; tools that read the same are not read again."""
        change = _Change.between(self, catalog)
        postings = self.contents.postings.changed(change.moved, change.weights(), len(catalog))
        vectors = None
        if self.contents.vectors is not None and self._meanings is not None:
            vectors = change.vectors(self.contents.vectors, self._meanings)
        return SearchIndex(catalog, IndexContents(change.keys, postings, vectors), self._meanings)

    def refreshed(self) -> SearchIndex:
        """The index with the exact vectors known by now; itself when there is nothing new."""
        vectors = self.contents.vectors
        lacking = self._lacking
        if vectors is None or self._meanings is None or not len(lacking):
            return self
        come = self._meanings.exact([self.contents.keys[n] for n in lacking])
        if not come.scales.any():
            return self
        rows, scales = vectors.exact.rows.copy(), vectors.exact.scales.copy()
        rows[lacking], scales[lacking] = come
        better = ToolVectors(vectors.rough, QuantizedVectors(rows, scales))
        contents = IndexContents(self.contents.keys, self.contents.postings, better)
        return SearchIndex(self.catalog, contents, self._meanings)

    def lacking(self) -> list[tuple[bytes, Tool]]:
        """Key and tool of everything that has no exact vector yet, each key once."""
        if self.contents.vectors is None:
            return []
        found = {self.contents.keys[n]: self.catalog.tools[n] for n in self._lacking}
        return list(found.items())

    def search(
        self,
        query: str,
        limit: int = 10,
        *,
        category: str | None = None,
        server: str | None = None,
        group: str | None = None,
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
            group: only tools of this category, server, or group as it is shown.
            risk: only tools of this risk.
            include_disabled: find tools that are switched off as well.
            include_deprecated: find tools that are on their way out as well.
            allowed: whether the caller may see a tool.
        """
        chosen = SearchFilter(category, server, group, risk, include_disabled, include_deprecated)
        if allowed is None:
            return list(self._remembered(query, limit, chosen, None))
        return list(self._answer(query, limit, chosen, allowed))

    def group(self, query: str) -> Group | None:
        """The category or server that a query asks for whole ("everything about milestones")."""
        return self._groups.asked(query)

    def topic(self, query: str) -> Group | None:
        """The group that a query asks for as a whole, or just names."""
        return self._groups.asked(query) or self._groups.named(query)

    def _answer(
        self, query: str, limit: int, chosen: SearchFilter, allowed: Callable[[Tool], bool] | None
    ) -> tuple[Match, ...]:
        text = clean(query, QUERY_LIMIT)
        if not text or limit <= 0:
            return ()
        visible = self._visible(chosen)
        if allowed is not None:
            visible = visible & self._where(allowed)
        group = self.group(text)
        if group is not None:
            visible = visible & self._where(group.holds)
        if not visible.any():
            return ()
        words = self._words(text)
        named = self._names.named(text)
        if not words and group is None and not any(named):
            return ()  # stop words and signs: near to everything, about nothing
        lexical = self.contents.postings.score(words)
        scores = self._scores(text, lexical, visible, named)
        wanted = (
            visible if group is not None else visible & self._relevant(scores, lexical, visible)
        )
        return tuple(
            Match(
                self.catalog.tools[n],
                1.0 if n in named.exactly else relevance.display_score(float(scores[n])),
                self._why(n, words),
            )
            for n in _ranked(scores, wanted, limit)
        )

    def _words(self, text: str) -> dict[str, str]:
        """The query's terms, each with the word it was written as; of very many, the rarest."""
        words = {term: word for word in WORD.findall(text) for term in word_terms(word)}
        if len(words) <= TERM_LIMIT:
            return words
        rarest = sorted(words, key=self.contents.postings.rarity, reverse=True)[:TERM_LIMIT]
        return {term: words[term] for term in rarest}

    def _scores(
        self, text: str, lexical: LexicalScores, visible: NDArray[np.bool_], named: NamedTools
    ) -> Floats:
        vectors = self.contents.vectors
        if vectors is None or self._meanings is None:
            scores = lexical.scores + relevance.FULL_NAME_BONUS * lexical.named
        else:
            scores = relevance.fuse_scores(lexical, vectors, self._meanings.place(text), visible)
        spelled = self._spelled(text, scores, lexical.named & visible)
        # Before all others, each in their own order: those that are named, then the rest.
        scores[list({*spelled, *named.otherwise})] += 1
        scores[named.exactly] += 2
        return scores

    def _spelled(self, text: str, scores: Floats, having_all: NDArray[np.bool_]) -> list[int]:
        """The tools whose names are the words of the query, of those that have all of them."""
        words = name_words(text)
        candidates = _ranked(scores, having_all, SPELLED_LIMIT)
        return [n for n in candidates if matches_name(self.catalog.tools[n], words)]

    def _relevant(
        self, scores: Floats, lexical: LexicalScores, visible: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Tools worth showing: near enough to the best, or with every word of the query."""
        best = float(scores[visible].max())
        if self.contents.vectors is None:
            return (scores > 0) & (best >= relevance.LEXICAL_FLOOR)
        near = (scores >= relevance.TAIL_RATIO * min(best, 1.0)) & (
            best >= relevance.RELEVANCE_FLOOR
        )
        return near | lexical.covered

    def _admitted(self, chosen: SearchFilter) -> NDArray[np.bool_]:
        return self._where(chosen.admits)

    def _where(self, holds: Callable[[Tool], bool]) -> NDArray[np.bool_]:
        return np.fromiter(map(holds, self.catalog.tools), np.bool_, len(self.catalog))

    def _why(self, number: int, words: Mapping[str, str]) -> tuple[str, ...]:
        places_of = self.contents.postings.places_of
        found = match_reasons((word, places_of(term, number)) for term, word in words.items())
        return found or ("meaning",)

    @cached_property
    def _groups(self) -> GroupNames:
        return GroupNames(self.catalog)

    @cached_property
    def _names(self) -> ToolNames:
        return ToolNames(self.catalog.tools)

    @cached_property
    def _lacking(self) -> NDArray[np.intp]:
        vectors = self.contents.vectors
        return np.flatnonzero(vectors.exact.scales == 0) if vectors else np.empty(0, np.intp)


@dataclass(frozen=True, slots=True)
class _Change:
    """How one catalogue became another: which tools stay, and what the new ones say."""

    keys: tuple[bytes, ...]
    moved: NDArray[np.int32]
    """The new number of each old tool; -1 for those that are gone or read differently."""
    added: Mapping[int, SearchableFields]

    @classmethod
    def between(cls, index: SearchIndex, catalog: Catalog) -> _Change:
        old_keys, old_tools = index.contents.keys, index.catalog.tools
        before = {tool.id: number for number, tool in enumerate(old_tools)}
        moved = np.full(len(old_tools), -1, np.int32)
        keys: list[bytes] = []
        added: dict[int, SearchableFields] = {}
        last = -1
        for number, tool in enumerate(catalog):
            old = before.get(tool.id, -1)
            same = old >= 0 and old_tools[old] is tool
            fields = None if same else read_searchable_fields(tool)
            keys.append(old_keys[old] if fields is None else fields.key)
            if old > last and old_keys[old] == keys[-1]:
                moved[old], last = number, old
            else:
                added[number] = fields or read_searchable_fields(tool)
        return cls(tuple(keys), moved, added)

    def weights(self) -> Sequence[tuple[int, TermWeights]]:
        return [(number, weigh_terms(fields)) for number, fields in self.added.items()]

    def vectors(self, before: ToolVectors, meanings: Vectorizer) -> ToolVectors:
        kept = np.flatnonzero(self.moved >= 0)
        rough, exact = before.moved(kept, self.moved[kept].astype(np.intp), len(self.keys))
        if self.added:
            new = list(self.added)
            rough[new] = meanings.rough([build_passage(fields) for fields in self.added.values()])
            exact.rows[new], exact.scales[new] = meanings.exact([self.keys[n] for n in new])
        return ToolVectors(rough, exact)


def _remembering(most: int, method: Callable[..., T]) -> Callable[..., T]:
    """The method with its last results, not holding its object.

    In a circle with what it remembers, an index that has been replaced would stay, its catalogue
    and megabytes of vectors with it, until somebody looks for such circles.
    """
    weak = WeakMethod(method)

    @lru_cache(maxsize=most)
    def remembered(*asked: Hashable) -> T:
        bound = weak()
        if bound is None:
            raise ReferenceError("the index is gone")
        return bound(*asked)

    return remembered


def _ranked(scores: Floats, wanted: NDArray[np.bool_], limit: int) -> list[int]:
    """The best of the wanted tools, catalogue order among equals."""
    numbers = np.flatnonzero(wanted)
    if len(numbers) > 4 * limit:
        least = np.partition(scores[numbers], len(numbers) - limit)[len(numbers) - limit]
        numbers = numbers[scores[numbers] >= least]
    return numbers[np.argsort(-scores[numbers], kind="stable")][:limit].tolist()
