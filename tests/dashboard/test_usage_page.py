"""The usage page: charts of calls and saved tokens, by time, server and tool."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from starlette.testclient import TestClient
from tests.dashboard.boards import ada_or_bob, large_board, visit

from pegboard import Pegboard
from pegboard.core.events import CallFinished, CallRejected, ListAnswered
from pegboard.core.tools import Tool
from pegboard.dashboard.usage_page import Bar, bar_chart, day_intervals, hour_intervals

DAY = 86_400


def called(board: Pegboard) -> list[Tool]:
    """One tool of each of two servers."""
    return [t for t in board.tools() if t.name in ("create_issue_0", "list_issue_1")]


@pytest.fixture
def board() -> Pegboard:
    """A board with calls of the last days, as its history would have them."""
    board = large_board(40)
    now = time.time()
    for days_ago in (0, 1, 1, 3, 20):
        for tool in called(board):
            board.parts.history.record(
                CallFinished(
                    at=now - days_ago * DAY, id="1", tool=tool.id, upstream=tool.server,
                    duration=0.1, outcome="failed" if days_ago == 3 else "ok",
                    tokens_out_before=1_000, tokens_out=100,
                )
            )  # fmt: skip
    board.parts.history.record(ListAnswered(at=now, mode="proxy", tools=5, duration=0.1))
    board.parts.history.record(
        CallRejected(at=now, name="guess", error="unknown_tool", arguments="")
    )
    return board


@pytest.fixture
def client(board: Pegboard) -> TestClient:
    return visit(board)


def test_the_days_of_a_chart_cover_all_hours_once() -> None:
    now = datetime(2026, 3, 30, 15, 20, tzinfo=UTC)
    days = day_intervals(7, now)
    assert [d.label for d in days] == [
        "Mar 24", "Mar 25", "Mar 26", "Mar 27", "Mar 28", "Mar 29", "Mar 30",
    ]  # fmt: skip
    assert all(a.end == b.begin for a, b in pairwise(days))
    assert days[-1].begin <= now.timestamp() < days[-1].end
    hours = hour_intervals(now)
    assert len(hours) == 24
    assert hours[-1].begin <= now.timestamp() < hours[-1].end
    assert hours[0].begin == (now - timedelta(hours=23, minutes=20)).timestamp()


def test_the_page_counts_calls_failures_and_tokens(client: TestClient) -> None:
    week = client.get("/ui/usage").text
    # 8 calls within a week and a rejected one; the calls of 20 days ago only within a month.
    assert 'aria-label="Calls: 9 in total' in week
    assert 'aria-label="Calls: 11 in total' in client.get("/ui/usage?period=month").text
    saved = re.search(r'aria-label="Tokens saved: ([\d,]+) in total', week)
    assert saved
    assert int(saved[1].replace(",", "")) > 8 * 900  # results, and the list


def test_one_server_or_tool_is_shown_alone(board: Pegboard, client: TestClient) -> None:
    tool = called(board)[0]
    shown = client.get("/ui/usage", params={"tool": tool.id}).text
    assert 'aria-label="Calls: 4 in total' in shown
    assert 'aria-label="Tokens saved: 3,600 in total' in shown
    assert f"Only {tool.name}" in shown
    shown = client.get("/ui/usage", params={"server": tool.server}).text
    assert 'aria-label="Calls: 4 in total' in shown
    assert "Show everything" in shown


@pytest.mark.parametrize(
    "query", ["period=year", "server=%22%3E%3Cscript%3E", f"tool={'x' * 5000}", "period=day"]
)
def test_an_address_that_makes_no_sense_shows_a_page(client: TestClient, query: str) -> None:
    answer = client.get(f"/ui/usage?{query}")
    assert answer.status_code == 200
    assert "<script>" not in answer.text


def test_before_the_first_call_there_is_no_empty_chart() -> None:
    client = visit(Pegboard("empty"))
    assert "<svg" not in client.get("/").text
    assert "No calls have been recorded" in client.get("/ui/usage").text


def test_usage_is_for_operators(board: Pegboard) -> None:
    client = visit(board, identify=ada_or_bob)
    bob = {"Authorization": "Bearer bob-key"}
    assert client.get("/ui/usage", headers=bob).status_code == 403
    overview = client.get("/", headers=bob).text
    assert "Usage" not in overview
    assert "<svg" in client.get("/", headers={"Authorization": "Bearer ada-key"}).text


def test_one_failed_call_beside_a_thousand_is_visible() -> None:
    drawn = bar_chart("Calls", [Bar("Mon", 1_000), Bar("Tue", 1, failed=1)], "calls")
    assert "Tue: 1 calls, 1 failed" in drawn
    assert re.search(r'height="2" class="failed"', drawn)
    assert "style=" not in drawn
