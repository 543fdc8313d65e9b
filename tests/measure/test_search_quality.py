"""The metrics of rankings, computed by hand where that is possible."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from benchmarks.peer_rankers import fastmcp_rankers
from hypothesis import given
from hypothesis import strategies as st
from tests.boards import office_board

from pegboard.errors import ConfigError
from pegboard.measure.search_quality import (
    JudgedQuery,
    evaluate_rankers,
    plain_bm25,
    read_queries,
    resolve_judgments,
    score_ranking,
)

tools = st.sampled_from("abcdefghijklmno")


def test_the_metrics_of_one_ranking() -> None:
    found = score_ranking(["x", "a", "y", "b"], frozenset("ab"))
    assert (found["recall_1"], found["recall_3"], found["recall_5"]) == (0, 0.5, 1)
    assert found["mrr"] == 0.5
    best = 1 + 1 / math.log2(3)
    assert found["ndcg_10"] == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / best)


def test_nothing_found_is_zero_everywhere() -> None:
    assert set(score_ranking([], frozenset("a")).values()) == {0.0}


@given(st.lists(tools, unique=True), st.frozensets(tools, min_size=1))
def test_metrics_lie_between_zero_and_one_and_grow_with_depth(
    ranking: list[str], relevant: frozenset[str]
) -> None:
    found = score_ranking(ranking, relevant)
    assert all(0 <= value <= 1 for value in found.values())
    assert found["recall_1"] <= found["recall_3"] <= found["recall_5"] <= found["recall_10"]
    ideal = score_ranking(sorted(relevant), relevant)
    assert ideal["ndcg_10"] == ideal["mrr"] == 1
    assert found["ndcg_10"] <= ideal["ndcg_10"]


def test_every_ranker_gets_every_query_and_progress_is_reported() -> None:
    asked: list[str] = []
    told: list[tuple[int, int]] = []

    def ranker(query: str) -> list[str]:
        asked.append(query)
        return ["a"]

    def progress(done: int, total: int) -> None:
        told.append((done, total))

    queries = [JudgedQuery("one", frozenset("a")), JudgedQuery("two", frozenset("b"))]
    figures = evaluate_rankers(queries, {"first": ranker, "second": ranker}, progress)
    assert [q for q in asked if q != "warm up"] == ["one", "two"] * 2
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert figures["first"].recall_1 == figures["second"].recall_1 == 0.5
    assert figures["first"].as_json()["recall@1"] == 0.5


def test_the_peers_find_a_tool_by_its_own_words() -> None:
    catalog = office_board().catalog
    rankers = {"plain": plain_bm25(catalog), **fastmcp_rankers(catalog)}
    assert set(rankers) == {"plain", "FastMCP BM25", "FastMCP regex"}
    for rank in rankers.values():
        assert "storage.disk_usage" in rank("Say how full the disk is")
        assert rank("xyzzy plugh") == []


def test_names_count_as_ids_where_they_are_clear() -> None:
    judged = [JudgedQuery("x", frozenset({"create_issue", "search", "gone"}))]
    (one,) = resolve_judgments(judged, office_board().catalog)
    assert one.relevant == {"issues.create_issue", "search", "gone"}


def test_queries_may_hold_any_text_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    text = '\ufeff{"query": "a\u2028b", "relevant": ["t"]}\r\n\n{"query": "c", "relevant": ["t"]}'
    path.write_bytes(text.encode())
    assert [(one.query, one.line) for one in read_queries(path)] == [("a\u2028b", 1), ("c", 3)]
    path.write_text("[1]")
    with pytest.raises(ConfigError, match=r"q\.jsonl:1 is not a judged query"):
        read_queries(path)
