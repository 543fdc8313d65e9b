"""Search over a real catalog: requests in everyday words, judged by hand, beside the peers."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.peer_rankers import fastmcp_rankers

from examples.tracker import build_board
from pegboard import Pegboard
from pegboard.core.search import SearchIndex
from pegboard.embed.vectorizer import LocalVectorizer
from pegboard.measure.search_quality import (
    JudgedQuery,
    QualityMetrics,
    evaluate_rankers,
    pegboard_ranker,
    plain_bm25,
    read_queries,
    resolve_judgments,
)


@pytest.fixture(scope="module")
def board() -> Pegboard:
    board = build_board(seeded=False)
    board.prepare()
    return board


@pytest.fixture(scope="module")
def requests(board: Pegboard) -> list[JudgedQuery]:
    """Fifty requests as people put them, with few words of the tools in them."""
    return resolve_judgments(
        read_queries(Path(__file__).with_name("requests.jsonl")), board.catalog
    )


@pytest.fixture(scope="module")
def figures(board: Pegboard, requests: list[JudgedQuery]) -> dict[str, QualityMetrics]:
    at_once = SearchIndex.build(board.catalog, LocalVectorizer())  # no exact vector of any tool
    rankers = {
        "ours": pegboard_ranker(board.index),
        "at once": pegboard_ranker(at_once),
        "plain BM25": plain_bm25(board.catalog),
        **fastmcp_rankers(board.catalog),
    }
    return evaluate_rankers(requests, rankers)


def test_judgements_name_tools_that_exist(board: Pegboard, requests: list[JudgedQuery]) -> None:
    known = {tool.id for tool in board.catalog}
    assert len(requests) == 50
    assert all(one.relevant <= known for one in requests)


def test_everyday_requests_find_their_tools(figures: dict[str, QualityMetrics]) -> None:
    assert figures["ours"].recall_5 >= 0.86
    assert figures["ours"].recall_10 >= 0.92
    assert figures["ours"].ndcg_10 >= 0.78


@pytest.mark.parametrize("peer", ["FastMCP BM25", "FastMCP regex", "plain BM25"])
def test_far_more_is_found_than_by_words_alone(
    peer: str, figures: dict[str, QualityMetrics]
) -> None:
    assert figures["ours"].recall_5 >= figures[peer].recall_5 + 0.4
    assert figures["ours"].ndcg_10 >= figures[peer].ndcg_10 + 0.4


def test_the_first_answers_come_before_the_vectors_and_are_good_already(
    figures: dict[str, QualityMetrics],
) -> None:
    assert figures["at once"].recall_5 >= figures["FastMCP BM25"].recall_5 + 0.3
    assert figures["at once"].recall_5 <= figures["ours"].recall_5


@pytest.mark.parametrize(
    ("query", "category", "size"),
    [
        ("everything about milestones", "milestones", 9),
        ("all milestone tools", "milestones", 9),
        ("all tools for the calendar", "calendar", 9),
        ("everything about time tracking", "time_tracking", 11),
        ("show me all the storage tools", "storage", 10),
        ("list all notification tools", "notifications", 11),
    ],
)
def test_asking_for_a_category_returns_it(
    query: str, category: str, size: int, board: Pegboard
) -> None:
    found = board.search(query, 50)
    assert [match.tool.category for match in found] == [category] * size


def test_a_task_that_mentions_a_category_is_no_question_for_all_of_it(board: Pegboard) -> None:
    found = board.search("are we on time with the next milestone")
    assert len({match.tool.id for match in found}) == len(found)
    assert any(match.tool.category != "milestones" for match in found)


@pytest.mark.parametrize("tool", ["create_issue", "log_time", "find_free_slots", "empty_trash"])
def test_a_tool_is_found_by_its_own_name(tool: str, board: Pegboard) -> None:
    assert board.search(tool)[0].tool.name == tool
    assert board.search(tool.replace("_", " "))[0].tool.name == tool
