"""Does search find the right tool, and return nothing if there is none?

Every set is judged by `pegboard.measure.search_quality`; all rankers get the same queries. Sets
that our models did not learn from are reported apart from those that they did. Intervals are 95% of 2,000 paired bootstraps of the difference to FastMCP's BM25.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from benchmarks.contestants import VECTORS
from benchmarks.data import data
from benchmarks.peer_rankers import fastmcp_rankers
from benchmarks.plots import bars
from benchmarks.runner import Missing, Profile, say
from benchmarks.tables import table
from pegboard.adapters.catalog_file import CatalogFile
from pegboard.core.search import SearchIndex
from pegboard.core.search.relevance import is_near_miss, match_confidence
from pegboard.core.tools import Catalog
from pegboard.embed.live_index import LiveIndex
from pegboard.embed.vectorizer import LocalVectorizer
from pegboard.measure.search_quality import (
    JudgedQuery,
    Ranker,
    pegboard_ranker,
    plain_bm25,
    read_queries,
    sample_queries,
    score_ranking,
)

VALIDATE = ("mcpproxy_golden", "azure_mcp", "dust_mcp", "everyday", "agents")
TRAINED = ("toollinkos_main", "metatool_single", "bfcl_v3", "sealtools_dev")
KINDS = {"never learned from": VALIDATE, "may be learned from": TRAINED}
MEASURES = {
    "recall@1": "recall_1",
    "recall@5": "recall_5",
    "recall@10": "recall_10",
    "hit@5": "hit_5",
    "ndcg@10": "ndcg_10",
}
BASE = "FastMCP BM25"
FASTMCP = (BASE, "FastMCP regex")
PUBLISHED = {"mcpproxy_golden": {"recall@1": 42, "recall@5": 68, "recall@10": 79}}
"""What mcpproxy-go says of itself on its own set; we did not run it."""
DRAWS = 2_000
FLAGGED = "pegboard, empty or flagged"
REFUSED = 150
"""At most so many queries of each kind when refusals are counted."""
NEAR_MISS_SET = "everyday"
OFF_TOPIC = (  # queries of one set over the tools of another, which cannot answer them
    ("metatool_single", "azure_mcp"),
    ("toollinkos_main", "azure_mcp"),
    ("bfcl_v3", "mcpproxy_golden"),
)

Rows = np.ndarray[Any, Any]


def measure(profile: Profile) -> dict[str, Any]:
    found: dict[str, Any] = {}
    indexes: dict[str, SearchIndex] = {}
    began = time.perf_counter()
    for name in profile.sets:
        try:
            indexes[name] = index_of(name)
        except Missing as exc:
            found[name] = {"missing": str(exc)}
    seconds = time.perf_counter() - began
    say(f"  all vectors after {seconds:.0f} s")
    rows: dict[str, dict[str, Rows]] = {}
    for name, index in indexes.items():
        say(f"  {name}")
        queries = asked(name, profile.queries)
        rows[name] = {who: per_query(rank, queries) for who, rank in rankers(index).items()}
        found[name] = _figures(rows[name]) | {"tools": len(index.catalog), "queries": len(queries)}
    return {
        "vectors_s": round(seconds, 1),
        "sets": {name: found[name] for name in profile.sets},
        "means": _means(rows),
        "refusals": refusals(indexes),
        "near_misses": near_misses(indexes),
    }


def index_of(name: str) -> SearchIndex:
    catalog = Catalog(CatalogFile.read(data(f"sets/{name}/tools.jsonl")).tools)
    return LiveIndex(LocalVectorizer(VECTORS)).prepare(catalog)


def asked(name: str, most: int) -> list[JudgedQuery]:
    return sample_queries(read_queries(data(f"sets/{name}/queries.jsonl")), most)


def rankers(index: SearchIndex) -> dict[str, Ranker]:
    without = SearchIndex.build(index.catalog, LocalVectorizer())
    return {
        "pegboard": pegboard_ranker(index),
        "pegboard, no vectors yet": pegboard_ranker(without),
        **fastmcp_rankers(index.catalog),
        "plain BM25": plain_bm25(index.catalog),
    }


def per_query(ranker: Ranker, queries: Sequence[JudgedQuery]) -> Rows:
    judged = [score_ranking(ranker(q.query), q.relevant) for q in queries]
    return 100 * np.array([[one[key] for key in MEASURES.values()] for one in judged])


def interval(gain: Rows) -> list[float]:
    """Where the mean gain lies, 95% of the draws."""
    draws = np.random.default_rng(0).integers(0, len(gain), (DRAWS, len(gain)))
    low, high = np.percentile(gain[draws].mean(axis=1), [2.5, 97.5])
    return [round(float(low), 1), round(float(high), 1)]


def _figures(rows: Mapping[str, Rows]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for who, row in rows.items():
        found[who] = dict(zip(MEASURES, row.mean(axis=0).round(1).tolist(), strict=True))
        if BASE in rows and who != BASE:
            gain = row - rows[BASE]
            for at, name in enumerate(MEASURES):
                if name in ("recall@5", "ndcg@10"):
                    found[who][f"{name} gain"] = interval(gain[:, at])
    for who in FASTMCP:
        found.setdefault(who, {"missing": "fastmcp is not installed beside pegboard"})
    return {"rankers": found}


def _means(rows: Mapping[str, Mapping[str, Rows]]) -> dict[str, Any]:
    """The mean of the sets' means, for each kind of set."""
    found: dict[str, Any] = {}
    for kind, names in {**KINDS, "all": (*VALIDATE, *TRAINED)}.items():
        there = [rows[name] for name in names if name in rows]
        whos = there[0] if len(there) == len(names) else {}  # a mean of some would mislead
        found[kind] = {
            who: dict(
                zip(
                    MEASURES,
                    np.mean([one[who].mean(axis=0) for one in there], axis=0).round(1).tolist(),
                    strict=True,
                )
            )
            for who in whos
        }
    return found


def refusals(indexes: Mapping[str, SearchIndex]) -> dict[str, Any]:
    """Empty answers in percent: to what can be answered, to near misses, to what is elsewhere."""
    cases: dict[str, tuple[str, list[str]]] = {
        f"answerable: {name}": (name, [q.query for q in asked(name, REFUSED)]) for name in indexes
    }
    for name in (name for name in ("everyday", "agents") if name in indexes):
        cases[f"not answerable, near misses: {name}"] = (name, _unanswerable(name))
    for source, target in OFF_TOPIC:
        if source in indexes and target in indexes:
            queries = [q.query for q in asked(source, REFUSED)]
            cases[f"not answerable: {source} over {target}"] = (target, queries)
    return {case: _empty(indexes[name], queries) for case, (name, queries) in cases.items()}


def _unanswerable(name: str) -> list[str]:
    lines = data(f"sets/{name}/unanswerable.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["query"] for line in lines]


def _empty(index: SearchIndex, queries: Sequence[str]) -> dict[str, float]:
    rank: dict[str, Callable[[str], Sequence[Any]]] = {
        "pegboard": index.search,
        **{w: r for w, r in fastmcp_rankers(index.catalog).items() if w == BASE},
    }
    shares = {
        who: round(100 * sum(not search(q) for q in queries) / len(queries), 1)
        for who, search in rank.items()
    }
    flagged = sum(_is_flagged(index, query) for query in queries)
    return shares | {FLAGGED: round(100 * flagged / len(queries), 1)}


def _is_flagged(index: SearchIndex, query: str) -> bool:
    """Whether a model is told that no tool does it, or that none clearly does."""
    best = next(iter(index.search(query, 1)), None)
    return best is None or is_near_miss(query, best.tool, best.score)


def near_misses(indexes: Mapping[str, SearchIndex]) -> dict[str, float]:
    """How well the confidence in the best match separates answerable requests from others.

    The value is the area under the ROC curve; 0.5 is chance. The others are unanswerable requests that were
    written for the set, and its own requests with the right tools removed.
    """
    if NEAR_MISS_SET not in indexes:
        return {}
    index, queries = indexes[NEAR_MISS_SET], asked(NEAR_MISS_SET, REFUSED)
    answerable = [_confidence(index, q.query) for q in queries]
    others = {
        "not answerable": [_confidence(index, query) for query in _unanswerable(NEAR_MISS_SET)],
        "right tools removed": [_confidence(index, q.query, q.relevant) for q in queries],
    }
    return {kind: round(_auc(answerable, values), 3) for kind, values in others.items()}


def _confidence(index: SearchIndex, query: str, removed: Set[str] = frozenset()) -> float:
    matches = index.search(query, 1, allowed=lambda tool: tool.id not in removed)
    return match_confidence(query, matches[0].tool, matches[0].score) if matches else 0.0


def _auc(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """How often a positive is larger than a negative; a tie counts half."""
    pairs = np.subtract.outer(positives, negatives)
    return float(np.mean((pairs > 0) + (pairs == 0) / 2))


def section(figures: dict[str, Any]) -> str:
    parts = [
        "Percentages, averaged over queries. Recall is the share of the right tools among the first k; hit means that any of them"
        " is. Brackets show the gain over FastMCP's BM25 (paired bootstrap, 95%). *No vectors yet* is our result in the first"
        " seconds of a new catalog, before the model has read it. A regex consists of the words of a query with more than three"
        " letters.",
        _means_table(figures["means"]),
    ]
    for kind, names in KINDS.items():
        there = {name: figures["sets"][name] for name in names if name in figures["sets"]}
        parts.append(f"**Data sets that our models {_kind(kind)}**\n\n{_sets_table(there)}")
    parts.append(
        "Empty results, in percent: there should be few if a tool answers the query, and many if none"
        " does. A flagged result names the nearest tools and says that none clearly does it."
        f"\n\n{_refusal_table(figures['refusals'])}"
    )
    if near := figures.get("near_misses"):
        found = ", ".join(f"{value} ({kind})" for kind, value in near.items())
        parts.append(
            f"Near misses: how well the confidence in the best match separates the requests of `{NEAR_MISS_SET}` from requests that"
            f" no tool answers, as the area under the ROC curve (0.5 is chance): {found}."
        )
    return "\n\n".join(parts)


def _kind(kind: str) -> str:
    return "were not trained on" if kind == "never learned from" else "may have been trained on"


def _means_table(means: dict[str, Any]) -> str:
    rows = [
        [f"sets {kind}" if kind != "all" else "all sets", who, *(f[key] for key in MEASURES)]
        for kind, by in means.items()
        for who, f in by.items()
    ]
    return "Mean over the data sets:\n\n" + table(["mean of", "ranker", *MEASURES], rows, words=2)


def _sets_table(sets: dict[str, Any]) -> str:
    rows: list[list[Any]] = []
    for name, one in sets.items():
        if one.get("missing"):
            rows.append([name, one["missing"], *[None] * len(MEASURES)])
            continue
        title = f"{name} ({one['tools']:,} tools, {one['queries']} queries)"
        rows += [[title, who, *_cells(f)] for who, f in one["rankers"].items()]
        if name in PUBLISHED:
            cells = (PUBLISHED[name].get(key) for key in MEASURES)
            rows.append([title, "mcpproxy-go (published, not run)", *cells])
    return table(["set", "ranker", *MEASURES], rows, words=2)


def _cells(f: dict[str, Any]) -> list[Any]:
    if "missing" in f:
        return [f"not run: {f['missing']}", *[None] * (len(MEASURES) - 1)]
    return [
        f"{f[key]} ({f[f'{key} gain'][0]:+} to {f[f'{key} gain'][1]:+})"
        if f"{key} gain" in f
        else f[key]
        for key in MEASURES
    ]


def _refusal_table(found: dict[str, Any]) -> str:
    rows = [[case, f["pegboard"], f.get(FLAGGED), f.get(BASE)] for case, f in found.items()]
    return table(["queries", "pegboard", FLAGGED, BASE], rows)


def plots(figures: dict[str, Any]) -> dict[str, str]:
    groups = {
        name: {who: f["recall@5"] for who, f in one["rankers"].items() if "recall@5" in f}
        for name, one in figures["sets"].items()
        if "rankers" in one
    }
    return {"retrieval": bars("The right tool among the first five", groups, unit="recall@5, %")}
