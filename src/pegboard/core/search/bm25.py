"""Fielded BM25 over array postings.

The weight of a term in a tool is computed from that tool alone: field lengths are compared with
fixed typical lengths, not with the catalog's averages. So a tool keeps its postings when others are
added or removed, and only the rarity of terms depends on the catalog.

A weight lies in [0, 1): occurrences in all fields are summed by field weight, each field's count
capped, then saturated. A score is the rarity-weighted mean of the weights over the query's terms,
so it lies in [0, 1) too and means the same in every catalog.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pegboard.core.search.searchable_fields import SearchableFields
from pegboard.core.search.terms import extract_terms

SATURATION = 1.2
LENGTH = 0.75
REPEATS = 4  # occurrences of a term in one field that count: more is keyword stuffing
TERMS_PER_FIELD = 400


class FieldWeight(NamedTuple):
    """How much an occurrence in this field counts, its typical length in terms, and its flag."""

    weight: float
    length: float
    place: int


NAME, ALIAS, SERVER, DESCRIPTION, PARAMETER, CATEGORY = 1, 2, 4, 8, 16, 32
FIELDS: dict[str, FieldWeight] = {
    "name": FieldWeight(2.0, 3.0, NAME),
    "aliases": FieldWeight(1.5, 3.0, ALIAS),
    "server": FieldWeight(1.0, 2.5, SERVER),
    "category": FieldWeight(0.4, 2.0, CATEGORY),
    "description": FieldWeight(1.0, 18.0, DESCRIPTION),
    "parameters": FieldWeight(0.5, 6.0, PARAMETER),
    "parameter_text": FieldWeight(0.5, 24.0, PARAMETER),
}

TermWeights: TypeAlias = dict[str, tuple[float, int]]
"""What one tool contributes: the weight of each term, and the fields it was found in as flags."""


def weigh_terms(fields: SearchableFields) -> TermWeights:
    """The saturated weight and the fields of every term of a tool."""
    sums: dict[str, float] = {}
    places: dict[str, int] = {}
    for name, (weight, typical, place) in FIELDS.items():
        found = extract_terms(getattr(fields, name))[:TERMS_PER_FIELD]
        if not found:
            continue
        # A term in a short field says more than one in a long field.
        each = weight / (1 - LENGTH + LENGTH * len(found) / typical)
        counts: dict[str, int] = {}
        for term in found:
            counts[term] = counts.get(term, 0) + 1
        for term, count in counts.items():
            sums[term] = sums.get(term, 0.0) + each * min(count, REPEATS)
            places[term] = places.get(term, 0) | place
    return {t: (s / (SATURATION + s), places[t]) for t, s in sums.items()}


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """How well the words of a query match each tool."""

    scores: NDArray[np.float32]
    named: NDArray[np.bool_]
    """Tools that have every term of the query in their names."""
    covered: NDArray[np.bool_]
    """Tools that have every term of the query somewhere."""


@dataclass(frozen=True, slots=True)
class Postings:
    """For each term the tools that have it, in ascending order, with weights and field flags.

    The tools of term `n` are `tools[starts[n]:starts[n + 1]]`; flat arrays can be memory-mapped.
    """

    vocabulary: Mapping[str, int]
    starts: NDArray[np.int64]
    tools: NDArray[np.int32]
    weights: NDArray[np.float32]
    places: NDArray[np.uint8]
    size: int

    @classmethod
    def build(cls, contents: Iterable[TermWeights]) -> Postings:
        """Postings of tools numbered in the order given."""
        rows = _Rows()
        size = 0
        for content in contents:
            rows.add(size, content)
            size += 1
        return rows.sorted(size)

    def changed(
        self, moved: NDArray[np.int32], added: Sequence[tuple[int, TermWeights]], size: int
    ) -> Postings:
        """Postings after a change of the catalog.

        Args:
            moved: the new number of each tool, ascending among those that stay; -1 if removed.
            added: numbers and contents of new tools.
            size: how many tools there are afterwards.
        """
        # Terms keep their numbers, even those that no tool uses anymore: they cost a few bytes.
        rows = _Rows(dict(self.vocabulary))
        for number, content in added:
            rows.add(number, content)
        of_term = np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))
        tools = moved[self.tools]
        stay = tools >= 0
        return rows.sorted(
            size,
            _Columns(of_term[stay], tools[stay], self.weights[stay], self.places[stay]),
        )

    def rarity(self, term: str) -> float:
        """How much a term distinguishes tools: high when few have it."""
        span = self._span(term)
        count = int(span.stop - (span.start or 0))
        return float(np.log1p((self.size - count + 0.5) / (count + 0.5)))

    def score(self, query: Iterable[str]) -> LexicalScores:
        """The mean weight of the query's terms in each tool, by their rarity.

        A term that no tool has counts as well: the more of the query is unknown, the lower all
        scores.
        """
        # Only the postings of the query's terms are visited: other tools cost nothing.
        scores = np.zeros(self.size, np.float32)
        names = np.zeros(self.size, np.uint8)
        found = np.zeros(self.size, np.uint8)
        total, count = 0.0, 0
        for term in query:
            rarity = self.rarity(term)
            total += rarity
            count += 1
            span = self._span(term)
            tools = self.tools[span]
            scores[tools] += np.float32(rarity) * self.weights[span]
            found[tools] += 1
            names[tools] += (self.places[span] & (NAME | ALIAS)) > 0
        if total > 0:
            scores /= np.float32(total)
        if not count:
            return LexicalScores(scores, names > 0, found > 0)
        return LexicalScores(scores, names == count, found == count)

    def _span(self, term: str) -> slice:
        number = self.vocabulary.get(term)
        return slice(0) if number is None else slice(self.starts[number], self.starts[number + 1])

    def places_of(self, term: str, tool: int) -> int:
        """The fields of a tool that have a term, as flags; 0 for none."""
        span = self._span(term)
        at = int(np.searchsorted(self.tools[span], tool))
        found = at < len(self.tools[span]) and self.tools[span][at] == tool
        return int(self.places[span][at]) if found else 0


class _Columns(NamedTuple):
    terms: NDArray[np.int32]
    tools: NDArray[np.int32]
    weights: NDArray[np.float32]
    places: NDArray[np.uint8]


class _Rows:
    """Postings while they are collected, tool by tool.

    In flat arrays: a Python object per posting would take many times the memory.
    """

    def __init__(self, vocabulary: dict[str, int] | None = None) -> None:
        self.vocabulary: dict[str, int] = {} if vocabulary is None else vocabulary
        self._terms, self._tools = array("i"), array("i")
        self._weights, self._places = array("f"), array("B")

    def add(self, tool: int, content: TermWeights) -> None:
        vocabulary = self.vocabulary
        self._terms.extend([vocabulary.setdefault(t, len(vocabulary)) for t in content])
        self._tools.extend([tool] * len(content))
        self._weights.extend([weight for weight, _ in content.values()])
        self._places.extend([place for _, place in content.values()])

    def sorted(self, size: int, earlier: _Columns | None = None) -> Postings:
        columns = _Columns(
            np.array(self._terms, np.int32),
            np.array(self._tools, np.int32),
            np.array(self._weights, np.float32),
            np.array(self._places, np.uint8),
        )
        if earlier is not None:
            columns = _Columns(
                np.concatenate((earlier.terms, columns.terms)),
                np.concatenate((earlier.tools, columns.tools)),
                np.concatenate((earlier.weights, columns.weights)),
                np.concatenate((earlier.places, columns.places)),
            )
        keys = columns.terms.astype(np.int64) * (size + 1) + columns.tools
        order = np.argsort(keys, kind="stable")  # two sorted runs are merged in linear time
        counts = np.bincount(columns.terms, minlength=len(self.vocabulary))
        starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        return Postings(
            self.vocabulary,
            starts,
            columns.tools[order],
            columns.weights[order],
            columns.places[order],
            size,
        )
