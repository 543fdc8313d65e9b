"""Who sees what on the dashboard of a board with permissions."""

from __future__ import annotations

import pytest
from tests.dashboard.boards import ada_or_bob, visit

from pegboard import Pegboard, Policy, Rule
from pegboard.core.calls import Caller

ADA, BOB = {"Authorization": "Bearer ada-key"}, {"Authorization": "Bearer bob-key"}


@pytest.fixture
def board() -> Pegboard:
    policy = Policy([Rule(principals=("bob",), tools=("look",))], default="deny")
    board = Pegboard("shop", policy=policy)

    @board.tool(related=("pay_everyone",))
    def look() -> str:
        """Look around."""
        return "all quiet"

    @board.tool
    def pay_everyone() -> str:
        """Pay all salaries."""
        return "paid"

    return board


def test_an_operator_sees_tools_that_the_rules_give_to_others(board: Pegboard) -> None:
    client = visit(board, identify=ada_or_bob)
    assert client.get("/ui/tool?id=pay_everyone", headers=ADA).status_code == 200
    assert "pay_everyone" in client.get("/ui/tools", headers=ADA).text
    assert client.get("/ui/tool?id=pay_everyone", headers=BOB).status_code == 404


def test_a_related_tool_that_is_hidden_is_not_named(board: Pegboard) -> None:
    client = visit(board, identify=ada_or_bob)
    assert "pay_everyone" in client.get("/ui/tool?id=look", headers=ADA).text
    assert "pay_everyone" not in client.get("/ui/tool?id=look", headers=BOB).text


@pytest.mark.anyio
async def test_statistics_of_a_tool_count_only_the_viewers_own_calls(board: Pegboard) -> None:
    board.policy = Policy()
    for who in ("ada", "carol", "bob"):
        await board.call("look", caller=Caller(who))
    client = visit(board, identify=ada_or_bob)
    assert "<dt>Calls</dt><dd>3</dd>" in client.get("/ui/tool?id=look", headers=ADA).text
    assert "<dt>Calls</dt><dd>1</dd>" in client.get("/ui/tool?id=look", headers=BOB).text


@pytest.mark.anyio
async def test_a_busy_neighbour_does_not_push_a_viewers_own_calls_off_the_page(
    board: Pegboard,
) -> None:
    board.policy = Policy()
    await board.call("look", caller=Caller("bob"))
    for _ in range(150):
        await board.call("pay_everyone", caller=Caller("carol"))
    shown = visit(board, identify=ada_or_bob).get("/ui/calls", headers=BOB).text
    assert "/ui/tool?id=look" in shown
    assert "pay_everyone" not in shown


def test_metrics_of_a_board_are_for_operators() -> None:
    client = visit(Pegboard("counted", metrics=True), identify=ada_or_bob)
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers=BOB).status_code == 403
    assert "pegboard_calls" in client.get("/metrics", headers=ADA).text
