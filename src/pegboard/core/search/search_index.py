"""The index of one catalog: from a query to ranked tools.

An index is an immutable value. When tools are added or removed, `updated` returns the next index,
and `refreshed` one with the vectors that were computed in the meantime; both reuse everything known
of the tools that stay. Without a `Vectorizer`, an index searches by words alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, zip_longest
from typing import NamedTuple, TypeAlias, TypeVar
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
    weigh_terms,
)
from pegboard.core.search.catalog_change import CatalogChange
from pegboard.core.search.queries import (
    GroupNames,
    NamedTools,
    ToolGroup,
    ToolNames,
    matches_name,
    name_words,
    server_terms,
    split_clauses,
    split_needs,
    split_sentences,
)
from pegboard.core.search.relevance import Floats, QuantizedVectors, ToolVectors, Vectorizer
from pegboard.core.search.searchable_fields import (
    build_passage,
    read_searchable_fields,
)
from pegboard.core.search.terms import WORD, clean_text, extract_terms, word_terms
from pegboard.core.search.translation import translate
from pegboard.core.tools import Catalog, Risk, Tool, is_in_group

_FIELD_LABELS = (
    (NAME, "name"),
    (ALIAS, "alias"),
    (DESCRIPTION, "description"),
    (PARAMETER, "parameters"),
    (SERVER, "server"),
    (CATEGORY, "category"),
)

QUERY_LIMIT = 4_000
TERM_LIMIT = 64
NAME_MATCH_LIMIT = 200
"""Tools, best first, whose names are compared word by word with a query."""
SECOND_BEST = 0.6
"""The share of a need's best score that another tool must reach to be chosen for the need."""
FIRST_PLACES = 5
CLAUSE_PLACES = 2
"""How many of the first places are reserved for the best tools of single clauses."""
CLAUSE_SHARE = 0.6
"""The share of the request's best score that the best tool of a clause must reach."""
MIN_NAME_SHARE = 0.8
"""Of a server's tools and the tools of others with its name in theirs, the share of the former."""
CACHED_QUERIES = 512
CACHED_FILTERS = 64
_MEMO_KEY = "search index"
"""The key under which a catalog caches the index of its tools as part of a larger index."""

Boosts: TypeAlias = Callable[[Floats], Mapping[str, float]]
"""Returns, for the vector of a query, how much the score of each tool rises, by tool id."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Match:
    """One tool found: how well it fits, from 0 to 1, and which of its fields match."""

    tool: Tool
    score: float
    why: tuple[str, ...] = ()
    need: str | None = None
    """The part of the query that it fits best, where the query has several needs."""


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """Why a tool has its place: what its meaning and its words contribute to the score."""

    tool: Tool
    rank: int
    """Its place among all tools by score, from 1, whether it is shown or not."""
    is_relevant: bool
    """Whether the score is high enough for the tool to be shown at all."""
    score: float
    meaning: float
    """The cosine of query and tool; 0 if the index has no vectors."""
    words: float
    """The share of the query that the words of the tool account for."""
    why: tuple[str, ...]


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


@dataclass(frozen=True, slots=True)
class IndexContents:
    """What an index knows of its tools, in the order of the catalog."""

    keys: tuple[bytes, ...]
    postings: Postings
    vectors: ToolVectors | None = None


class _Scored(NamedTuple):
    """What a text has in common with each tool."""

    words: Mapping[str, str]
    """The terms of the text, each with the word that it was written as."""
    named: NamedTools
    lexical: LexicalScores
    scores: Floats
    order_bonus: Floats
    """Added to the scores to order tools, and not to judge whether they fit."""

    @property
    def order(self) -> Floats:
        return self.scores + self.order_bonus


class SearchIndex:
    """Search over one catalog."""

    def __init__(
        self, catalog: Catalog, contents: IndexContents, vectorizer: Vectorizer | None = None
    ) -> None:
        self.catalog = catalog
        self.contents = contents
        self._vectorizer = vectorizer
        # Agents repeat queries, and a page of results repeats its filter.
        self._cached_answer = _cache_weakly(CACHED_QUERIES, self._answer)
        self._cached_filter = _cache_weakly(CACHED_FILTERS, self._filter_mask)

    @classmethod
    def build(cls, catalog: Catalog, vectorizer: Vectorizer | None = None) -> SearchIndex:
        """The index of a catalog, from scratch."""
        fields = [read_searchable_fields(tool) for tool in catalog]
        keys = tuple(of_tool.key for of_tool in fields)
        vectors = None
        if vectorizer is not None:
            passages = list(map(build_passage, fields))
            vectors = ToolVectors(
                vectorizer.rough_vectors(passages), vectorizer.exact_vectors(keys)
            )
        contents = IndexContents(keys, Postings.build(map(weigh_terms, fields)), vectors)
        return cls(catalog, contents, vectorizer)

    def restricted_to(self, visible: Catalog) -> SearchIndex:
        """The index of the tools that a caller sees.

        Filtering the answers would not be enough: the rarity of words would still reveal tools that
        the caller may not see. Built again when this index has been replaced, as it is while
        vectors are computed.
        """
        if visible is self.catalog:
            return self
        cached: tuple[ref[SearchIndex], SearchIndex] | None = visible.memo.get(_MEMO_KEY)
        if cached is not None and cached[0]() is self:
            return cached[1]
        part = self.updated(visible)
        visible.memo[_MEMO_KEY] = (ref(self), part)
        return part

    def updated(self, catalog: Catalog) -> SearchIndex:
        """The index of a changed catalog; unchanged tools are not read again."""
        change = CatalogChange.between(self.contents.keys, self.catalog, catalog)
        weights = [(number, weigh_terms(fields)) for number, fields in change.added.items()]
        postings = self.contents.postings.changed(change.moved, weights, len(catalog))
        vectors = None
        if self.contents.vectors is not None and self._vectorizer is not None:
            vectors = change.update_vectors(self.contents.vectors, self._vectorizer)
        return SearchIndex(catalog, IndexContents(change.keys, postings, vectors), self._vectorizer)

    def refreshed(self) -> SearchIndex:
        """The index with the exact vectors available by now; itself if there is nothing new."""
        vectors = self.contents.vectors
        missing = self._missing
        if vectors is None or self._vectorizer is None or not len(missing):
            return self
        new = self._vectorizer.exact_vectors([self.contents.keys[n] for n in missing])
        if not new.scales.any():
            return self
        # Copies, since searches may be running on this index in other threads.
        rows, scales = vectors.exact.rows.copy(), vectors.exact.scales.copy()
        rows[missing], scales[missing] = new
        better = ToolVectors(vectors.rough, QuantizedVectors(rows, scales))
        return SearchIndex(self.catalog, replace(self.contents, vectors=better), self._vectorizer)

    def tools_without_vector(self) -> list[tuple[bytes, Tool]]:
        """Key and tool of everything that has no exact vector yet, each key once."""
        if self.contents.vectors is None:
            return []
        found = {self.contents.keys[n]: self.catalog.tools[n] for n in self._missing}
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
        boosts: Boosts | None = None,
    ) -> list[Match]:
        """The tools that fit a query, best first; empty when nothing is relevant.

        Args:
            query: what is wanted, in any words; or a tool's name; or "everything about" a category.
            limit: the maximum number of matches.
            category: only tools of this category.
            server: only tools of this server.
            group: only tools of this category, server, or group as it is shown.
            risk: only tools of this risk.
            include_disabled: find disabled tools as well.
            include_deprecated: find deprecated tools as well.
            allowed: whether the caller may see a tool.
            boosts: what was learned from earlier calls (see `learning`).
        """
        chosen = SearchFilter(category, server, group, risk, include_disabled, include_deprecated)
        if allowed is None and boosts is None:
            return list(self._cached_answer(query, limit, chosen))
        return list(self._answer(query, limit, chosen, allowed, boosts))  # not cached: functions

    def embed(self, query: str) -> Floats | None:
        """The vector of a query as it is searched for; `None` if the index has no vectors."""
        if self._vectorizer is None or self.contents.vectors is None:
            return None
        original = clean_text(query, QUERY_LIMIT)
        everything = self._cached_filter(SearchFilter())
        return self._vectorizer.embed_query(original, self._in_english(original, everything)).exact

    def explain(self, query: str, tool_ids: Sequence[str]) -> list[ScoreParts]:
        """Why these tools have their places for a query; tools of other catalogs are left out.

        Of a query with several needs, this is about the whole.
        """
        original = clean_text(query, QUERY_LIMIT)
        visible = self._cached_filter(SearchFilter())
        numbers = [n for tool in tool_ids if (n := self._numbers.get(tool)) is not None]
        if not visible.any() or not numbers:
            return []
        text = self._in_english(original, visible)
        found = self._score_text(text, visible, original)
        relevant = self._find_relevant(found, visible)
        meanings = np.zeros(len(numbers), np.float32)
        if self.contents.vectors is not None and self._vectorizer is not None:
            vectors = self._vectorizer.embed_query(original, text)
            meanings = self.contents.vectors.exact_cosines(vectors, np.array(numbers))
        return [
            ScoreParts(
                tool=self.catalog.tools[n],
                rank=int((found.scores[visible] > found.scores[n]).sum()) + 1,
                is_relevant=bool(relevant[n]),
                score=relevance.display_score(float(found.scores[n])),
                meaning=round(float(meaning), 4),
                words=round(float(found.lexical.scores[n]), 4),
                why=self._explain(n, found.words),
            )
            for n, meaning in zip(numbers, meanings, strict=True)
        ]

    def find_group(self, query: str) -> ToolGroup | None:
        """The category or server that a query asks for in full ("everything about milestones")."""
        return self._group_names.find_requested(query)

    def find_topic(self, query: str) -> ToolGroup | None:
        """The group that a query asks for as a whole, or just names."""
        return self.find_group(query) or self._group_names.find_topic(query)

    def _answer(
        self,
        query: str,
        limit: int,
        chosen: SearchFilter,
        allowed: Callable[[Tool], bool] | None = None,
        boosts: Boosts | None = None,
    ) -> tuple[Match, ...]:
        original = clean_text(query, QUERY_LIMIT)
        if not original or limit <= 0:
            return ()
        visible = self._cached_filter(chosen)
        if allowed is not None:
            visible = visible & self._mask(allowed)
        text = self._in_english(original, visible)
        group = self.find_group(text)
        if group is not None:
            visible = visible & self._mask(group.holds)
        if not visible.any():
            return ()
        found = self._score_text(text, visible, original)
        learned = self._add_boosts(found, original, text, visible, boosts)
        if not found.words and group is None and not any(found.named):
            return ()  # stop words and punctuation: near to everything, about nothing
        best_for: Mapping[int, str] = {}
        if group is not None:
            numbers = _rank(found.order, visible, limit)
        else:
            # Line breaks separate sentences, and `clean_text` removes them.
            whole = query if text == original else text
            numbers, best_for = self._rank_needs(whole, found, visible, limit)
        matches: list[Match] = []
        # With several needs, the best of each come first, whatever their scores: no tool is shown
        # with a lower score than one that comes after it.
        shown = np.maximum.accumulate(found.scores[numbers][::-1])[::-1]
        for n, raw in zip(numbers, shown.tolist(), strict=True):
            score = 1.0 if n in found.named.exactly else relevance.display_score(raw)
            why = self._explain(n, found.words)
            why = (*why, "learned from use") if n in learned else why
            matches.append(Match(self.catalog.tools[n], score, why, best_for.get(n)))
        return tuple(matches)

    def _add_boosts(
        self,
        found: _Scored,
        original: str,
        text: str,
        visible: NDArray[np.bool_],
        boosts: Boosts | None,
    ) -> frozenset[int]:
        """Raise the tools that were called after similar queries; returns their numbers."""
        if boosts is None or self._vectorizer is None or self.contents.vectors is None:
            return frozenset()
        vector = self._vectorizer.embed_query(original, text).exact
        numbers: set[int] = set()
        for tool, boost in () if vector is None else boosts(vector).items():
            number = self._numbers.get(tool)
            if number is not None and visible[number]:
                found.scores[number] += boost
                numbers.add(number)
        return frozenset(numbers)

    def _rank_needs(
        self, query: str, found: _Scored, visible: NDArray[np.bool_], limit: int
    ) -> tuple[list[int], Mapping[int, str]]:
        """The best tools for a query, and the needs that some are the best for, if it has several.

        `queries.split_needs` tells which queries have several.
        """
        if sentences := split_sentences(query):
            by_sentence = [self._score_text(sentence, visible).scores for sentence in sentences]
            found.scores[:] = (found.scores + np.max(by_sentence, axis=0)) / 2
        needs = split_needs(query)
        if not needs and not sentences and (clauses := split_clauses(query)):
            return self._rank_clauses(clauses, found, visible, limit)
        whole = _rank(found.order, self._find_relevant(found, visible), limit)
        if not needs or not whole:
            return whole, {}
        each, bonus = self._score_parts(needs, found, visible)
        rankings: list[list[int]] = []
        best_for: dict[int, str] = {}
        for need, one in zip(needs, each, strict=True):
            if ranking := _rank(one.order + bonus, self._find_relevant(one, visible), limit):
                rankings.append(ranking)
                # If the best tool was already chosen for an earlier need, a close second is chosen
                # for this one.
                close = SECOND_BEST * one.scores[ranking[0]]
                free = (n for n in ranking if n not in best_for and one.scores[n] >= close)
                if (best := next(free, None)) is not None:
                    best_for[best] = need
        return _take_turns(rankings or [whole], limit), best_for

    def _rank_clauses(
        self, clauses: Sequence[str], found: _Scored, visible: NDArray[np.bool_], limit: int
    ) -> tuple[list[int], Mapping[int, str]]:
        """The best tools for a request with several clauses, and the clauses that some are for.

        A clause is often part of a single need, so the whole request decides the order. But up to
        `CLAUSE_PLACES` of the first places go to tools that are the best for one clause.
        """
        each, bonus = self._score_parts(clauses, found, visible)
        relevant = self._find_relevant(found, visible)
        ranking = _rank(found.order + bonus, relevant, limit)
        if not ranking:
            return [], {}
        places = max(1, min(FIRST_PLACES, limit) - CLAUSE_PLACES)
        close = CLAUSE_SHARE * found.scores[ranking[0]]
        chosen: dict[int, tuple[float, str]] = {}
        for clause, one in zip(clauses, each, strict=True):
            for n in _rank(one.order + bonus, relevant, 1):
                if n not in ranking[:places] and one.scores[n] >= close:
                    chosen[n] = max((float(one.scores[n]), clause), chosen.get(n, (0.0, "")))
        best = sorted(chosen, key=lambda n: -chosen[n][0])[:CLAUSE_PLACES]
        numbers = list(dict.fromkeys((*ranking[:places], *best, *ranking)))[:limit]
        return numbers, {n: chosen[n][1] for n in best}

    def _score_parts(
        self, parts: Sequence[str], found: _Scored, visible: NDArray[np.bool_]
    ) -> tuple[list[_Scored], Floats]:
        """The scores of the parts of a query, and the bonus for the server that meets all best."""
        each = [self._score_text(part, visible) for part in parts]
        for one in each:
            # The whole query is the context: "labels" in "list projects, labels" are to be listed.
            one.scores[:] = (one.scores + found.scores) / 2
        bonus = self._same_server_bonus([np.where(visible, one.scores, 0) for one in each])
        return each, bonus

    def _same_server_bonus(self, needs: Sequence[Floats]) -> Floats:
        """What is added to the tools of the server that meets all needs of a query best.

        Steps of one task are usually done in one place: of "create a page; list its backlinks", the
        page is to be created where backlinks can be listed.
        """
        servers = self._server_numbers
        met = np.zeros(servers.max() + 1, np.float32)
        for scores in needs:
            best = np.zeros_like(met)
            np.maximum.at(best, servers, scores)
            met += best
        met[0] = 0  # tools without a server have no place in common
        return relevance.SAME_SERVER_BONUS * (servers == met.argmax()) * bool(met.any())

    def _find_relevant(self, found: _Scored, visible: NDArray[np.bool_]) -> NDArray[np.bool_]:
        has_vectors = self.contents.vectors is not None
        return visible & relevance.find_relevant(
            found.scores, found.lexical, visible, has_vectors=has_vectors
        )

    def _score_text(
        self, text: str, visible: NDArray[np.bool_], original: str | None = None
    ) -> _Scored:
        """The score of each tool; `original` is the text as written where it was translated."""
        original = original or text
        words = {term: word for word in WORD.findall(text) for term in word_terms(word)}
        postings = self.contents.postings
        if len(words) > TERM_LIMIT:  # a whole document: its rarest words say what it is about
            rarest = sorted(words, key=postings.rarity, reverse=True)[:TERM_LIMIT]
            words = {term: words[term] for term in rarest}
        named = self._tool_names.find(original)
        lexical = postings.score(words)
        vectors = self.contents.vectors
        if vectors is None or self._vectorizer is None:
            scores = lexical.scores + relevance.FULL_NAME_BONUS * lexical.named
        else:
            query = self._vectorizer.embed_query(original, text)
            scores = relevance.fuse_scores(lexical, vectors, query, visible)
        # Tools whose names are the words of the query, among the best that have all of them.
        in_names = name_words(text)
        candidates = _rank(scores, lexical.named & visible, NAME_MATCH_LIMIT)
        spelled = [n for n in candidates if matches_name(self.catalog.tools[n], in_names)]
        # Named tools come before all others, each group in the order of its scores.
        scores[list({*spelled, *named.otherwise})] += 1
        scores[named.exactly] += 2
        return _Scored(
            words, named, lexical, scores, self._named_server_bonus(words.keys(), visible)
        )

    def _in_english(self, query: str, visible: NDArray[np.bool_]) -> str:
        """The query in English, unless tools in its own language have more of its words."""
        translation = translate(query)
        if translation is None:
            return query
        english, original = (
            self.contents.postings.score(set(extract_terms(text))).scores[visible].max(initial=0)
            for text in (translation.text, query)
        )
        return query if original > english else translation.text

    def _filter_mask(self, chosen: SearchFilter) -> NDArray[np.bool_]:
        return self._mask(chosen.admits)

    def _mask(self, holds: Callable[[Tool], bool]) -> NDArray[np.bool_]:
        return np.fromiter(map(holds, self.catalog.tools), np.bool_, len(self.catalog))

    def _explain(self, number: int, words: Mapping[str, str]) -> tuple[str, ...]:
        """The words of the query with the fields that have them, as `name: create, issue`."""
        fields_of = self.contents.postings.places_of
        hits = [(word, fields_of(term, number)) for term, word in words.items()]
        reasons = tuple(
            f"{label}: {', '.join(dict.fromkeys(found))}"
            for field, label in _FIELD_LABELS
            if (found := [word for word, fields in hits if fields & field])
        )
        return reasons or ("meaning",)

    @cached_property
    def _group_names(self) -> GroupNames:
        return GroupNames(self.catalog)

    @cached_property
    def _tool_names(self) -> ToolNames:
        return ToolNames(self.catalog.tools)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {tool.id: number for number, tool in enumerate(self.catalog.tools)}

    @cached_property
    def _server_names(self) -> dict[int, frozenset[str]]:
        """The terms of each server's name, by the number of the server."""
        servers = {
            n: tool.server for n, tool in zip(self._server_numbers, self.catalog.tools, strict=True)
        }
        return {int(n): server_terms(server) for n, server in servers.items() if server}

    def _named_server_bonus(self, terms: Set[str], visible: NDArray[np.bool_]) -> Floats:
        """What is added to the tools of the servers that a query with these terms names.

        A server is left out if tools of others have the same words in their names: "files" rarely
        means the server of that name. Descriptions must not be able to switch the bonus off.
        """
        bonus = np.zeros(len(visible), np.float32)
        for server, name in self._server_names.items():
            if name and name <= terms:
                own = visible & (self._server_numbers == server)
                others = visible & ~own & self.contents.postings.score(name).named
                if own.sum() >= MIN_NAME_SHARE * (own.sum() + others.sum()):
                    bonus[own] = relevance.NAMED_SERVER_BONUS
        return bonus

    @cached_property
    def _server_numbers(self) -> NDArray[np.intp]:
        """A number for the server of each tool; 0 for none."""
        numbers: dict[str | None, int] = {None: 0}
        found = [numbers.setdefault(tool.server, len(numbers)) for tool in self.catalog.tools]
        return np.array(found, np.intp)

    @cached_property
    def _missing(self) -> NDArray[np.intp]:
        vectors = self.contents.vectors
        return np.flatnonzero(vectors.exact.scales == 0) if vectors else np.empty(0, np.intp)


def _cache_weakly(size: int, method: Callable[..., T]) -> Callable[..., T]:
    """The method with a cache of its last results that does not keep its object alive.

    `lru_cache` on the bound method would form a reference cycle: a replaced index would stay in
    memory, with its catalog and megabytes of vectors, until the garbage collector finds it.
    """
    weak = WeakMethod(method)

    @lru_cache(maxsize=size)
    def cached(*arguments: Hashable) -> T:
        bound = weak()
        if bound is None:
            raise ReferenceError("the index is gone")
        return bound(*arguments)

    return cached


def _rank(scores: Floats, wanted: NDArray[np.bool_], limit: int) -> list[int]:
    """The best of the wanted tools; equal scores keep the order of the catalog."""
    numbers = np.flatnonzero(wanted)
    if len(numbers) > 4 * limit:  # sorting thousands for the first ten would dominate a search
        least = np.partition(scores[numbers], len(numbers) - limit)[len(numbers) - limit]
        numbers = numbers[scores[numbers] >= least]
    return numbers[np.argsort(-scores[numbers], kind="stable")][:limit].tolist()


def _take_turns(rankings: Sequence[Sequence[int]], limit: int) -> list[int]:
    """The best of each ranking, then the second of each, and so on, none twice."""
    turns = chain.from_iterable(zip_longest(*rankings))
    return list(dict.fromkeys(n for n in turns if n is not None))[:limit]
