"""The third earlier system: a search for a category enables all of it, any other a few tools.

Theirs: `search_tools` scores by category too, and what it enables is paid for with the next list.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.acceptance.support import LIST, as_read, call, play, tracker_board
from tests.conformance.clients import Scenario, Transcript

from pegboard import Pegboard
from pegboard.tokens import count_tokens

ISSUES = {tool.name for tool in tracker_board().tools("issues")}
TASKS = (
    "create an issue",
    "file a bug report",
    "log time on an issue",
    "schedule a meeting with the team",
    "search documents",
    "send a message to the team",
    "upload a file",
    "who works on what this week",
)


def searched(board: Pegboard, query: str, **more: Any) -> Transcript:
    """A session's list before and after one search."""
    steps: Scenario = {
        "before": LIST,
        "search": call("search_tools", query=query, **more),
        "after": LIST,
    }
    return play(board, "legacy", steps, mode="dynamic")


def enabled(told: Transcript) -> list[dict[str, Any]]:
    before = told["before"].names
    return [tool for tool in told["after"].ok["tools"] if tool["name"] not in before]


def cost(told: Transcript) -> int:
    """Tokens of the answer and of the tools that it adds to the list."""
    return count_tokens(told["search"].text) + as_read(enabled(told))


@pytest.mark.parametrize("query", ["issues", "issue management", "Issues", "all issue tools"])
def test_a_search_for_a_category_enables_all_of_it(query: str) -> None:
    told = searched(tracker_board(), query)
    assert {tool["name"] for tool in enabled(told)} == ISSUES
    assert len(ISSUES) == 13
    assert cost(told) <= 4_000
    assert all(name in told["search"].text for name in ISSUES)


@pytest.mark.parametrize("query", TASKS)
def test_any_other_search_enables_at_most_five_tools(query: str) -> None:
    told = searched(tracker_board(), query)
    assert 1 <= len(enabled(told)) <= 5
    assert 300 <= cost(told) <= 2_000


def test_more_matches_can_be_shown_than_are_enabled() -> None:
    told = searched(tracker_board(), "file a bug report", limit=12)
    assert len(enabled(told)) == 5
    shown = [t.name for t in tracker_board().tools() if t.name in told["search"].text]
    assert len(shown) > 5


def test_listed_tools_carry_input_schemas_alone() -> None:
    told = searched(tracker_board(), "issues")
    listed = told["after"].ok["tools"]
    assert all("outputSchema" not in tool for tool in listed)
    assert all("include_fields" in tool["inputSchema"]["properties"] for tool in enabled(told))


def test_a_category_that_costs_too_much_is_not_enabled_whole() -> None:
    board = tracker_board()
    board.reconfigure(replace(board.options, category_tokens=1_000))
    told = searched(board, "issues")
    assert len(enabled(told)) <= 5


def test_a_search_within_another_category_enables_what_it_finds_there() -> None:
    told = searched(tracker_board(), "issues", category="milestones")
    names = {tool["name"] for tool in enabled(told)}
    assert names
    assert not names & ISSUES
