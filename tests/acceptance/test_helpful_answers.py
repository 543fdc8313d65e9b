"""Answers that say what a caller needs next: a tool that is off, a wrong category, a limit."""

from __future__ import annotations

from typing import Any

import pytest
from tests.acceptance.support import ask, call, in_both_eras, play, tracker_board
from tests.conformance.clients import Era

from pegboard import Pegboard, ToolNotFound


@in_both_eras
def test_a_tool_that_is_switched_off_is_marked_where_it_is_described(era: Era) -> None:
    board = tracker_board()
    board.disable("issues.delete_issue")
    steps = {
        "off": call("get_tool_description", tool_name="delete_issue"),
        "on": call("get_tool_description", tool_name="get_issue"),
    }
    told = play(board, era, steps, mode="index")
    assert told["off"].json["enabled"] is False
    assert "enabled" not in told["on"].json
    pair: dict[str, Any] = {"category": "issues", "tool": "delete_issue"}
    schema = play(board, era, {"s": call("tools_get_schema", **pair)}, mode="hierarchy")["s"]
    assert schema.json["schema"]["enabled"] is False


@in_both_eras
def test_a_wrong_category_for_a_real_tool_is_answered_with_the_right_one(era: Era) -> None:
    wrong: dict[str, Any] = {"category": "projects", "tool": "get_issue"}
    told = play(
        tracker_board(),
        era,
        {
            "schema": call("tools_get_schema", **wrong),
            "dispatch": call("tools_dispatch", **wrong, params={}),
            "several": call("tools_dispatch", calls=[{**wrong, "params": {}}]),
        },
        mode="hierarchy",
    )
    errors = [told["schema"].mendable, told["dispatch"].mendable]
    errors.append(told["several"].json["results"][0]["error"])
    for error in errors:
        assert error["kind"] == "unknown_tool"
        assert error["message"] == (
            "The category 'projects' has no tool 'get_issue': it is in issues."
        )
        assert error["nearest"] == ["get_issue"]


def test_so_it_is_in_process() -> None:
    with pytest.raises(ToolNotFound) as caught:
        tracker_board().describe("projects.get_issue")
    assert caught.value.nearest[0] == "get_issue"


def test_nobody_is_told_of_a_tool_that_is_hidden_from_them() -> None:
    from pegboard.core.policy import Policy, Rule

    board = Pegboard("hidden", mode="hierarchy")
    for category in ("open", "secret"):
        board.category(category).tool(name=f"read_{category}")(read)
    board.policy = Policy([Rule(effect="deny", categories=("secret",))])
    told = play(
        board,
        "modern",
        {
            "hidden": call("tools_get_schema", category="open", tool="read_secret"),
            "unknown": call("tools_get_schema", category="open", tool="read_zecret"),
        },
    )
    texts = [str(told[key].mendable).replace(name, "NAME") for key, name in NAMES.items()]
    assert texts[0] == texts[1]
    assert "secret" not in texts[0]


NAMES = {"hidden": "read_secret", "unknown": "read_zecret"}


def read() -> str:
    """Read it."""
    return "read"


@in_both_eras
def test_two_hundred_names_are_described_at_once_and_no_more(era: Era) -> None:
    many = ["get_issue"] * 200
    told = play(
        tracker_board(),
        era,
        {
            "most": ask("tools/describe", names=many),
            "more": ask("tools/describe", names=[*many, "get_issue"]),
            "batch": ask("tools/describe_batch", tool_names=[*many, "get_issue"]),
        },
    )
    assert len(told["most"].ok["tools"]) == 200
    assert told["more"].misuse["data"] == {"maxNames": 200}
    assert told["batch"].misuse["data"] == {"maxNames": 200}
