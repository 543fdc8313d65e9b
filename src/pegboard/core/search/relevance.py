"""Relevance: how words and meaning add up to a score, and which score means that nothing fits.

Every tool has a rough vector, computed from its words immediately. An exact one, from a model that
reads the whole passage, is computed later and used as soon as it is available. Rough vectors are
compared for the whole catalog; exact ones only for the best candidates, so that a large catalog
costs little more than a small one.

The lexical score is its own confidence: it is the share of the query that the tool's words account
for, unknown words included. So it is large for a query in the catalog's own wording and nearly 0
for one in everyday words, and adding a fixed part of it to the cosine weighs each query
individually.

    score = cosine + 0.45 * lexical score (+ 0.3 if every word of the query is in the tool's name)
                                          (+ 0.1 if the query contains the name of its server)

The numbers were chosen on public datasets (docs/decisions/search.md has the results); results
hardly change with other values near these.

No score tells a near miss from a match: the right subject and another operation. "Drop the
customers table" scores higher with `describe_table` than many queries do with the tool that answers
them. What gives it away is the operation: a query that begins with a verb says whether it wants to
read, change or delete something, and so does the name of a tool. The words are those that also tell
the risk of a tool (`core/risk.py`). Only clear cases count: a query that begins otherwise ("the
table is no longer needed"), a tool without a verb in its name, and "remove" beside "update" (which
may well remove) decide nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pegboard.core.risk import creates, find_operation, verb_risk
from pegboard.core.search.bm25 import LexicalScores
from pegboard.core.search.terms import word_set
from pegboard.core.tools import Risk, Tool

Floats: TypeAlias = NDArray[np.float32]


WORDS_WEIGHT = np.float32(0.45)  # beside an exact cosine
WORDS_WEIGHT_ROUGH = np.float32(0.6)
ROUGH_SCALE = np.float32(1.2)  # rough cosines are smaller than exact ones, by 14 to 29 %
FULL_NAME_BONUS = np.float32(0.3)  # every word of the query is in the tool's name
SAME_SERVER_BONUS = np.float32(0.06)  # of several needs, for the server that meets all of them best
NAMED_SERVER_BONUS = np.float32(0.1)  # the query contains the name of the tool's server
CANDIDATES = 2_000

WEAK_SCORE = 0.36  # a best score below it means that probably nothing fits
RELEVANCE_FLOOR = 0.29  # a best score below it means that nothing fits
LEXICAL_FLOOR = 0.08  # the same for words alone
TAIL_RATIO = 0.3  # matches with a smaller share of the best score are noise


# --- vectors --------------------------------------------------------------------------------------


class QueryVectors(NamedTuple):
    """A query in the space of rough vectors and, if a model is available, of exact ones."""

    rough: Floats
    exact: Floats | None


class QuantizedVectors(NamedTuple):
    """Exact vectors as bytes, one row each, and the scale of each row; 0 for a missing vector."""

    rows: NDArray[np.int8]
    scales: Floats


class Vectorizer(Protocol):
    """Turns texts into vectors."""

    def rough_vectors(self, passages: Sequence[str]) -> Floats:
        """One row per passage, immediately."""
        ...

    def exact_vectors(self, keys: Sequence[bytes]) -> QuantizedVectors:
        """The vectors already known for the passages with these keys; computes nothing."""
        ...

    def embed_query(self, query: str, english: str) -> QueryVectors:
        """The vectors of a query, given as it was written and in English."""
        ...


@dataclass(frozen=True, slots=True)
class ToolVectors:
    """The vectors of a catalog's tools, in its order."""

    rough: Floats
    exact: QuantizedVectors

    def rough_cosines(self, query: QueryVectors) -> Floats:
        """The cosine of the query and each tool, by rough vectors."""
        return self.rough @ query.rough

    def cosines(self, query: QueryVectors, rough: Floats, numbers: NDArray[np.intp]) -> Floats:
        """The cosine of the query and the numbered tools; the rough one if there is no exact."""
        near = rough[numbers]  # of tools whose exact vector is not computed yet
        if query.exact is None:
            return near
        scales = self.exact.scales[numbers]
        # Only the candidates are widened to floats, which takes four times their memory.
        cosines = (self.exact.rows[numbers].astype(np.float32) @ query.exact) * scales
        return np.where(scales > 0, cosines, near)

    def exact_cosines(self, query: QueryVectors, numbers: NDArray[np.intp]) -> Floats:
        """The cosine of the query and the numbered tools, whatever the candidates are."""
        return self.cosines(query, self.rough_cosines(query) * ROUGH_SCALE, numbers)

    def moved(
        self, old: NDArray[np.intp], new: NDArray[np.intp], size: int
    ) -> tuple[Floats, QuantizedVectors]:
        """Arrays for `size` tools, with the rows of the `old` numbers at the `new` ones."""
        rough = np.zeros((size, self.rough.shape[1]), np.float32)
        rows = np.zeros((size, self.exact.rows.shape[1]), np.int8)
        scales = np.zeros(size, np.float32)
        rough[new] = self.rough[old]
        rows[new] = self.exact.rows[old]
        scales[new] = self.exact.scales[old]
        return rough, QuantizedVectors(rows, scales)


def quantize(vectors: Floats) -> QuantizedVectors:
    """Unit vectors as bytes with a scale each: a quarter of the memory, no measurable loss."""
    scales = np.abs(vectors).max(axis=1, initial=1e-12) / np.float32(127)
    rows = np.rint(vectors / scales[:, None]).astype(np.int8)
    return QuantizedVectors(rows, scales.astype(np.float32))


# --- scores ---------------------------------------------------------------------------------------


def display_score(score: float) -> float:
    """A score as people see it: below 1, and never the same for two that differ.

    Up to one half it is unchanged. Above that, where words and meaning add up to more than 1, it
    approaches 1 and does not reach it: 1 is reserved for a tool that was named.
    """
    return round(score if score <= 0.5 else 1 - 0.5 * math.exp(1 - 2 * score), 4)


def raw_score(displayed: float) -> float:
    """The score that `display_score` was given; at most 1, the score of a tool that was named."""
    if displayed <= 0.5:
        return displayed
    return min(1.0, (1 - math.log(2 * max(1 - displayed, 1e-6))) / 2)


def fuse_scores(
    lexical: LexicalScores, vectors: ToolVectors, query: QueryVectors, visible: NDArray[np.bool_]
) -> Floats:
    """The score of each tool; 0 for tools that are not visible or not among the candidates."""
    rough = vectors.rough_cosines(query)
    numbers = np.flatnonzero(visible)
    if len(numbers) > CANDIDATES:
        guess = rough[numbers] + WORDS_WEIGHT_ROUGH * lexical.scores[numbers]
        best = np.argpartition(guess, len(numbers) - CANDIDATES)[-CANDIDATES:]
        numbers = np.sort(numbers[best])  # in the order of the catalog, which breaks ties
    cosines = vectors.cosines(query, rough * ROUGH_SCALE, numbers)
    scores = np.zeros(len(lexical.scores), np.float32)
    scores[numbers] = cosines + WORDS_WEIGHT * lexical.scores[numbers]
    scores[numbers] += FULL_NAME_BONUS * lexical.named[numbers]
    return np.maximum(scores, 0)  # cosines of unrelated texts can be negative


def find_relevant(
    scores: Floats, lexical: LexicalScores, visible: NDArray[np.bool_], *, has_vectors: bool
) -> NDArray[np.bool_]:
    """The tools worth showing: close enough to the best, or with every word of the query.

    None at all if even the best score is below the floor: then nothing in the catalog fits.
    """
    best = float(scores[visible].max())
    if not has_vectors:
        return (scores > 0) & (best >= LEXICAL_FLOOR)
    near = (scores >= TAIL_RATIO * min(best, 1.0)) & (best >= RELEVANCE_FLOOR)
    return near | lexical.covered


SURE_SCORE = 0.6
"""At or above this score a tool counts as fitting, whatever its verb: "read the deal" is answered
by `update_deal` if its description says that it reads too."""

_WORD = re.compile(r"[a-z']+")
_FILLERS = word_set(
    "please kindly can could would you just now i we want to need help me lets let's hey hi ok"
)
_QUESTIONS = word_set("what which who whose where when how is are")
_IDIOMS = re.compile(
    r"(?:get rid of|throw (?:\S+ ){0,3}(?:out|away)|call (?:\S+ ){0,4}off"
    r"|take (?:\S+ ){0,3}(?:down|back))\b"
)
"""Ways to say `delete` that begin with a verb of another meaning."""
_LEADING_WORDS = 12


def is_near_miss(query: str, tool: Tool, score: float) -> bool:
    """Whether the best match of a query probably does something other than what was requested."""
    return match_confidence(query, tool, score) < WEAK_SCORE


def match_confidence(query: str, tool: Tool, score: float) -> float:
    """The raw score of a match, reduced if the tool is named for another operation."""
    penalty = SURE_SCORE - WEAK_SCORE if is_other_operation(query, tool) else 0.0
    return raw_score(score) - penalty


def is_other_operation(query: str, tool: Tool) -> bool:
    """Whether a query clearly asks for another operation than the one that a tool is named for."""
    asked = find_requested_operation(query)
    does = find_operation(tool)
    if asked is None or does is None or asked == does:
        return False
    if (asked, does) == ("destructive", "write"):
        return creates(tool.own_name)
    return True


def find_requested_operation(query: str) -> Risk | None:
    """Whether a query asks to read, write or delete, by its first words; `None` if unclear."""
    words = _WORD.findall(query.lower())[:_LEADING_WORDS]
    while words and words[0] in _FILLERS:
        del words[0]
    if not words:
        return None
    if _IDIOMS.match(" ".join(words)):
        return "destructive"
    return "read" if words[0] in _QUESTIONS else verb_risk(words[0])
