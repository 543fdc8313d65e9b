"""The fifth earlier system: a category is loaded when it is used, and no other with it.

Its catalog has 48 categories; a board with as many loaders says which of them ran.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.acceptance.support import ask, call, in_both_eras, play
from tests.conformance.clients import Era, Step

from pegboard import Call, Pegboard, ToolNotFound
from pegboard.core.calls import Caller
from pegboard.core.policy import Policy, Rule

CATEGORIES = 48


class Board:
    """A board of 48 loaders and one decorated category, and the categories whose loader ran."""

    def __init__(self, **options: Any) -> None:
        self.ran: list[str] = []
        self.board = Pegboard("large", **options)
        for number in range(CATEGORIES):
            self.board.load(f"c{number:02}", self._loader(number), description=f"Part {number}")
        self.board.category("plain", description="Decorated").tool(double)

    def _loader(self, number: int) -> Callable[[], list[Any]]:
        def load() -> list[Any]:
            self.ran.append(f"c{number:02}")

            def report(day: str) -> str:
                return f"{number} on {day}"

            report.__name__ = f"report_{number:02}"
            report.__doc__ = f"Report of part {number}."
            return [report]

        return load


def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


PAIR: dict[str, Any] = {"category": "c07", "tool": "report_07"}
DECORATED: dict[str, Any] = {"category": "plain", "tool": "double"}
DAY: dict[str, Any] = {"day": "Monday"}


@in_both_eras
@pytest.mark.parametrize(
    "step",
    [
        call("tools_dispatch", **PAIR, params=DAY),
        call("tools_dispatch", calls=[{**PAIR, "params": DAY}]),
        call("tools_dispatch_parallel", calls=[{**PAIR, "params": DAY}]),
        call("tools_get_schema", **PAIR),
        call("tools_list_tools", category="c07"),
        call("get_tool_schema", toolName="c07.report_07"),
        call("invoke_tool", toolName="c07/report_07", args=DAY),
        call("c07.report_07", **DAY),
        ask("tools/describe", names=["c07.report_07"]),
        ask("tools/describe", tool_name="c07.report_07"),
        ask("tools/describe_batch", tool_names=["c07.report_07"]),
    ],
    ids=lambda step: step.get("name") or step["method"],
)
def test_only_the_category_that_is_named_is_loaded(step: Step, era: Era) -> None:
    made = Board(mode="hierarchy")
    told = play(made.board, era, {"step": step})["step"]
    assert "report_07" in str(told.ok) or "7 on Monday" in str(told.ok)
    assert made.ran == ["c07"]


@pytest.mark.parametrize(
    ("mode", "step"),
    [
        ("proxy", call("call_tool", name="c07.report_07", arguments=DAY)),
        ("proxy", call("call_tools", calls=[{"name": "c07.report_07", "arguments": DAY}])),
        ("proxy", call("describe_tools", names=["c07.report_07"])),
        ("index", call("get_tool_description", tool_name="c07.report_07")),
    ],
)
def test_meta_tools_of_other_modes_load_the_named_category_alone(mode: str, step: Step) -> None:
    made = Board(mode=mode)
    told = play(made.board, "modern", {"step": step})["step"]
    assert "report_07" in told.text or "7 on Monday" in told.text
    assert made.ran == ["c07"]


@in_both_eras
@pytest.mark.parametrize(
    "step",
    [
        call("tools_dispatch", **DECORATED, params={"number": 2}),
        call("tools_get_schema", **DECORATED),
        call("tools_list_tools", category="plain"),
        ask("tools/describe", names=["plain.double"]),
    ],
    ids=lambda step: step.get("name") or step["method"],
)
def test_a_decorated_category_loads_nothing(step: Step, era: Era) -> None:
    made = Board(mode="hierarchy")
    assert play(made.board, era, {"step": step})["step"].ok
    assert made.ran == []


@pytest.mark.anyio
async def test_a_board_in_process_loads_the_named_category_alone() -> None:
    made = Board()
    assert made.board.describe("c07.report_07")[0].input_schema["required"] == ["day"]
    assert (await made.board.call("c09.report_09", DAY)).structured == {"result": "9 on Monday"}
    outcomes = await made.board.call_many([Call("c11/report_11", DAY)])
    assert outcomes[0].ok
    assert made.board.describe("plain.double")[0].name == "double"
    assert made.ran == ["c07", "c09", "c11"]


@pytest.mark.anyio
async def test_so_it_does_for_somebody_who_may_see_only_some_categories() -> None:
    allowed = Rule(principals=("ann",), categories=("c07", "c08"))
    made = Board(policy=Policy([allowed], default="deny"))
    result = await made.board.call("c07.report_07", DAY, caller=Caller("ann"))
    assert result.structured == {"result": "7 on Monday"}
    assert made.ran == ["c07"]


def test_a_tool_that_the_named_category_lacks_loads_no_other() -> None:
    made = Board(mode="hierarchy")
    step = call("tools_dispatch", category="c07", tool="report_08", params=DAY)
    told = play(made.board, "modern", {"step": step})["step"]
    assert told.mendable["kind"] == "unknown_tool"
    assert made.ran == ["c07"]


def test_a_bare_name_is_looked_for_everywhere() -> None:
    made = Board()
    assert made.board.describe("report_47")[0].category == "c47"
    assert len(made.ran) == CATEGORIES
    with pytest.raises(ToolNotFound):
        made.board.describe("c07.report_99")


def test_a_dotted_name_that_only_looks_like_a_category_is_found() -> None:
    made = Board()

    def load() -> list[Any]:
        from pegboard.core.tools import Tool, constant_definition

        return [Tool("c07.special", constant_definition({"type": "object"}))]

    made.board.load("dotted", load)
    assert made.board.describe("c07.special")[0].category == "dotted"


@in_both_eras
def test_a_category_whose_loader_fails_is_named_with_the_reason(era: Era) -> None:
    made = Board(mode="hierarchy")

    def load() -> list[Any]:
        raise OSError("no such disk")

    made.board.load("broken", load)
    told = play(
        made.board,
        era,
        {
            "list": call("tools_list_tools", category="broken"),
            "call": call("tools_dispatch", category="broken", tool="report", params={}),
            "other": call("tools_list_tools", category="c07"),
        },
    )
    listed = told["list"].json
    assert listed["tools"] == []
    assert "'broken'" in listed["note"]
    assert "no such disk" in listed["note"]
    assert "'broken'" in told["call"].mendable["message"]
    assert "note" not in told["other"].json
    assert made.ran == ["c07"]
