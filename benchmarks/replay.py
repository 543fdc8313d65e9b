"""Does search get better by being used, and only where it was used?

    python -m benchmarks.replay

A stream of requests is split in time. In the first part, a user searches and calls the right tools
among the first eight matches. In the second part, requests are answered without and with what was
learned: those about tools that were used, and those about other tools.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

import numpy as np

from benchmarks.data import data, records
from benchmarks.retrieval import MEASURES, index_of
from benchmarks.runner import say
from pegboard.core.search import SearchIndex
from pegboard.core.search.learning import LearnedUses, Use, merge_uses, pack_vector
from pegboard.core.search.search_index import Boosts
from pegboard.dispatch.learned_searches import MAX_FOUND
from pegboard.measure.search_quality import DEPTH, JudgedQuery, read_queries, score_ranking

NOW = 0.0
STREAM = 1_800
PAST = 1_000
LEARNED = 3_000
"""Requests of `metatool_single` that the models learn from, in the order of `training/corpus.py`."""


def unseen_requests(name: str) -> list[JudgedQuery]:
    """Requests of a set that the models did not learn from, in random order."""

    def share(key: str) -> float:
        return int.from_bytes(hashlib.sha256(key.encode()).digest()[:6]) / 2**48

    rows = [q for q in records(data(f"sets/{name}/queries.jsonl")) if share(name + q["id"]) >= 0.15]
    rows.sort(key=lambda q: share(name + q["query"]))
    left = [JudgedQuery(q["query"], frozenset(q["relevant"])) for q in rows[LEARNED:]]
    random.Random(1).shuffle(left)
    return left[:STREAM]


def learn(index: SearchIndex, past: Sequence[JudgedQuery]) -> list[Use]:
    """What is learned from a user who calls the right tools among those found."""
    uses: list[Use] = []
    for one in past:
        vector = index.embed(one.query)
        assert vector is not None
        found = [match.tool.id for match in index.search(one.query, MAX_FOUND)]
        uses += [Use(t, pack_vector(vector), NOW) for t in found if t in one.relevant]
    return merge_uses(uses)


def figures(index: SearchIndex, later: Sequence[JudgedQuery], boosts: Boosts | None) -> list[float]:
    rows = [
        score_ranking(
            [match.tool.id for match in index.search(one.query, DEPTH, boosts=boosts)], one.relevant
        )
        for one in later
    ]
    return [100 * float(np.mean([row[key] for row in rows])) for key in MEASURES.values()]


def replay(
    title: str, index: SearchIndex, past: Sequence[JudgedQuery], later: Sequence[JudgedQuery]
) -> None:
    uses = learn(index, past)
    learned = LearnedUses(uses, len(uses[0].vector))
    used = {use.tool for use in uses}
    say(f"{title}: {len(past)} searches, {len(uses)} uses")
    related = [one for one in later if one.relevant & used]
    unrelated = [one for one in later if not one.relevant & used]
    for kind, queries in (("related", related), ("unrelated", unrelated)):
        if queries:
            before = figures(index, queries, None)
            after = figures(index, queries, lambda query: learned.boosts(query, NOW))
            cells = ", ".join(
                f"{name} {a:.1f} -> {b:.1f}"
                for name, a, b in zip(MEASURES, before, after, strict=True)
            )
            say(f"  {len(queries)} {kind}: {cells}")


def main() -> None:
    index, stream = index_of("metatool_single"), unseen_requests("metatool_single")
    tools = sorted({tool for one in stream for tool in one.relevant})
    random.Random(0).shuffle(tools)
    half = set(tools[: len(tools) // 2])  # otherwise every tool would have been used
    past = [one for one in stream[:PAST] if one.relevant & half]
    replay("metatool_single", index, past, stream[PAST:])
    index, stream = index_of("agents"), read_queries(data("sets/agents/queries.jsonl"))
    middle = len(stream) // 2
    replay("agents", index, stream[:middle], stream[middle:])
    replay("agents, the same again", index, stream[:middle], stream[:middle])


if __name__ == "__main__":
    main()
