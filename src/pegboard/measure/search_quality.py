"""How well search finds the right tool, compared with a textbook baseline.

    queries = read_queries(path)
    metrics = evaluate_rankers(queries, build_rankers(board.index))

A ranker is a function from a query to tool ids, best first, so any other can be compared too.
"""

from __future__ import annotations

import json
import math
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeAlias

from pegboard.core.json import JsonObject
from pegboard.core.search import SearchIndex
from pegboard.core.search.searchable_fields import read_searchable_fields
from pegboard.core.tools import Catalog
from pegboard.errors import ConfigError

Ranker: TypeAlias = Callable[[str], Sequence[str]]
"""From a query to the ids of tools, best first."""

DEPTH = 10
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A query, the ids of the tools that answer it, and its line in the file.

    If no tool answers it, search should find nothing.
    """

    query: str
    relevant: frozenset[str]
    line: int = 0


@dataclass(frozen=True, slots=True)
class QualityMetrics:
    """Means over the queries that a tool answers: quality from 0 to 1, time in milliseconds.

    Queries that no tool answers are counted separately: `unanswerable` is their number, `refused`
    the number of those for which nothing was found.
    """

    queries: int
    recall_1: float
    recall_3: float
    recall_5: float
    recall_10: float
    hit_5: float
    ndcg_10: float
    mrr: float
    p50_ms: float
    p95_ms: float
    unanswerable: int = 0
    refused: int = 0

    def as_json(self) -> JsonObject:
        """The metrics with their usual names, rounded."""
        names = {"ndcg_10": "ndcg@10", "hit_5": "hit@5"}
        return {
            names.get(name, name.replace("recall_", "recall@")): round(value, 4)
            for name, value in asdict(self).items()
        }


def read_queries(path: Path) -> list[JudgedQuery]:
    """The judged queries of a file of JSON lines: `{"query": ..., "relevant": [ids]}`.

    `relevant` is empty for a query that no tool answers.

    Raises:
        ConfigError: The file cannot be read, or a line is not a judged query.
    """
    try:
        # Not `splitlines`: a query may contain U+2028 and other characters that it splits at.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as exc:
        why = getattr(exc, "strerror", None) or exc
        raise ConfigError(f"The queries in {path} cannot be read: {why}.") from exc
    found: list[JudgedQuery] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            entry = json.loads(line)
            query, relevant = entry["query"], entry["relevant"]
        except (ValueError, KeyError, TypeError) as exc:
            raise ConfigError(
                f'{where} is not a judged query such as {{"query": "...", "relevant": ["id"]}}.'
            ) from exc
        are_ids = isinstance(relevant, list) and all(isinstance(one, str) for one in relevant)
        if not isinstance(query, str) or not are_ids:
            raise ConfigError(f"{where}: `query` must be text and `relevant` a list of tool ids.")
        found.append(JudgedQuery(query, frozenset(relevant), number))
    if not found:
        raise ConfigError(f"There are no queries in {path}.")
    if not any(one.relevant for one in found):
        raise ConfigError(
            f"Every query in {path} has an empty `relevant`: add one that a tool answers."
        )
    return found


def resolve_judgments(queries: Iterable[JudgedQuery], catalog: Catalog) -> list[JudgedQuery]:
    """The queries with tool ids in place of names that only one tool of the catalog has."""

    def resolve(name: str) -> str:
        tools = catalog.matching(name)
        return tools[0].id if len(tools) == 1 else name

    return [replace(one, relevant=frozenset(map(resolve, one.relevant))) for one in queries]


def sample_queries(queries: Sequence[JudgedQuery], most: int) -> list[JudgedQuery]:
    """At most `most` of the queries, drawn at random with a fixed seed.

    At least one of them is a query that a tool answers.
    """
    if len(queries) <= most:
        return list(queries)
    # A fixed seed, so that two runs over the same file can be compared.
    drawn = random.Random(0).sample(queries, most)
    if not any(one.relevant for one in drawn):
        drawn[0] = next(one for one in queries if one.relevant)
    return drawn


def find_misses(
    queries: Iterable[JudgedQuery], ranker: Ranker
) -> Iterator[tuple[JudgedQuery, Sequence[str]]]:
    """The queries without a relevant tool among the first five, and the tools found instead.

    For a query that no tool answers, every tool that is found is a miss.
    """
    for judged in queries:
        ranking = ranker(judged.query)
        if not judged.relevant & set(ranking[:5]) and (judged.relevant or ranking):
            yield judged, ranking[:5]


def evaluate_rankers(
    queries: Sequence[JudgedQuery],
    rankers: Mapping[str, Ranker],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, QualityMetrics]:
    """The metrics of each ranker over the same queries.

    Args:
        queries: At least one that a tool answers.
        rankers: By name.
        progress: Called with the number of queries done and the total, over all rankers.
    """
    done, total = 0, len(queries) * len(rankers)
    metrics: dict[str, QualityMetrics] = {}
    for name, ranker in rankers.items():
        ranker("warm up")  # the first search of an index may have to build parts of it
        rows: list[dict[str, float]] = []
        times: list[float] = []
        refusals: list[bool] = []
        for judged in queries:
            start = time.perf_counter()
            ranking = ranker(judged.query)
            times.append((time.perf_counter() - start) * 1e3)
            if judged.relevant:
                rows.append(score_ranking(ranking, judged.relevant))
            else:
                refusals.append(not ranking)
            done += 1
            progress(done, total)
        # `quantiles` needs at least two values.
        p95 = statistics.quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
        metrics[name] = QualityMetrics(
            len(rows),
            **{metric: statistics.fmean(row[metric] for row in rows) for metric in rows[0]},
            p50_ms=statistics.median(times),
            p95_ms=p95,
            unanswerable=len(refusals),
            refused=sum(refusals),
        )
    return metrics


def score_ranking(ranking: Sequence[str], relevant: frozenset[str]) -> dict[str, float]:
    """The metrics of one ranking: which relevant tools it has, and how early."""
    hits = [tool in relevant for tool in ranking[:DEPTH]]
    gain = sum(hit / math.log2(at + 2) for at, hit in enumerate(hits))
    # The gain of an ideal ranking, which has all relevant tools first.
    best = sum(1 / math.log2(at + 2) for at in range(min(DEPTH, len(relevant))))
    first = hits.index(True) + 1 if any(hits) else 0
    recalls = {f"recall_{k}": sum(hits[:k]) / len(relevant) for k in (1, 3, 5, 10)}
    return {
        **recalls,
        "hit_5": float(any(hits[:5])),
        "ndcg_10": gain / best,
        "mrr": 1 / first if first else 0.0,
    }


def build_rankers(index: SearchIndex) -> dict[str, Ranker]:
    """Our ranker over this index, and plain BM25 over the same catalog as a baseline."""
    return {"pegboard": pegboard_ranker(index), "plain BM25": plain_bm25(index.catalog)}


def pegboard_ranker(index: SearchIndex) -> Ranker:
    """The search that clients get."""
    return lambda query: [match.tool.id for match in index.search(query, DEPTH)]


def plain_bm25(catalog: Catalog) -> Ranker:
    """Textbook BM25 over the words as they are written: no stemming, no split identifiers."""
    ids: list[str] = []
    texts: list[Counter[str]] = []
    for tool in catalog:
        # The same texts that our index reads, so that only the ranking is compared.
        one = read_searchable_fields(tool)
        parts = (one.server, one.name, one.description, one.parameters, one.parameter_text)
        ids.append(tool.id)
        texts.append(Counter(_words(" ".join(parts))))
    lengths = [text.total() for text in texts]
    average = statistics.fmean(lengths) if lengths else 1.0
    holding = Counter(word for text in texts for word in text)

    def rank(query: str) -> Sequence[str]:
        scores = [0.0] * len(ids)
        for word in _words(query):
            if not holding[word]:
                continue
            rarity = math.log1p((len(ids) - holding[word] + 0.5) / (holding[word] + 0.5))
            for at, text in enumerate(texts):
                if count := text[word]:
                    # The usual constants: k1 = 1.5, b = 0.75.
                    usual = 1.5 * (0.25 + 0.75 * lengths[at] / average)
                    scores[at] += rarity * count * 2.5 / (count + usual)
        best = sorted(range(len(ids)), key=lambda at: -scores[at])[:DEPTH]
        return [ids[at] for at in best if scores[at] > 0]

    return rank


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
