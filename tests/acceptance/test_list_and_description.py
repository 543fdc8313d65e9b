"""The fourth earlier system: tools register themselves; one call lists them, one describes one.

Theirs: `register_tool`, `ToolMetadata`, `ParameterSpec`, `ToolExample`, `list_all_tools(category)`,
`get_tool_metadata`, `list_available_tools`, `get_tool_description`.
"""

from __future__ import annotations

from typing import Literal

import pytest
from tests.acceptance.support import (
    LIST,
    as_read,
    call,
    in_both_eras,
    play,
    play_on_stdio,
    twelve_tools,
)
from tests.acceptance.support import tracker_board as tracker
from tests.conformance.clients import Era, Scenario, Transcript

from pegboard import ConfigError, Example, Pegboard
from pegboard.tokens import count_tokens

READ = {"readOnlyHint": True}
STEPS: Scenario = {
    "list": LIST,
    "available": call("list_available_tools"),
    "issues": call("list_available_tools", category="issues"),
    "description": call("get_tool_description", tool_name="create_issue"),
    "brief": call("get_tool_description", tool_name="create_issue", include_examples=False),
    "unknown": call("get_tool_description", tool_name="create_isue"),
    "call": call("list_projects"),
}


@pytest.fixture(scope="module", params=["legacy", "modern", "stdio"])
def told(request: pytest.FixtureRequest) -> Transcript:
    if request.param == "stdio":
        return play_on_stdio("examples.tracker", "modern", STEPS, mode="index")
    return play(tracker(), request.param, STEPS, mode="index")


def test_two_tools_and_the_pins_are_all_that_is_listed(told: Transcript) -> None:
    assert {"list_available_tools", "get_tool_description"} < set(told["list"].names)
    assert len(told["list"].names) == 4


def test_a_large_listing_pages_by_category_and_does_not_flood(told: Transcript) -> None:
    available = told["available"].json
    assert available["total"] > 100
    assert len(available["categories"]) == 15
    assert count_tokens(told["available"].text) <= 1_600
    rows = told["issues"].json["tools"]
    assert {"name", "summary", "category", "enabled"} == set(rows[0])
    assert {row["category"] for row in rows} == {"issues"}


@in_both_eras
def test_a_listing_of_twelve_tools_costs_at_most_500_tokens(era: Era) -> None:
    told = play(twelve_tools(), era, {"available": call("list_available_tools")})
    assert told["available"].json["total"] == 12
    assert len(told["available"].json["tools"]) == 12
    assert count_tokens(told["available"].text) <= 500


def test_a_description_has_parameters_examples_and_related_tools(told: Transcript) -> None:
    answer = told["description"].json
    title = answer["parameters"]["title"]
    assert (title["type"], title["required"]) == ("string", True)
    assert title["description"]
    assert answer["examples"][0]["invocation"]
    assert answer["related_tools"]
    assert "examples" not in told["brief"].json
    assert count_tokens(told["brief"].text) < count_tokens(told["description"].text)


def test_list_describe_and_call_cost_less_than_half_of_listing_everything(told: Transcript) -> None:
    whole = play(tracker(), "modern", {"list": LIST}, mode="eager")["list"].ok["tools"]
    way = as_read(told["list"].ok["tools"]) + sum(
        count_tokens(told[key].text) for key in ("available", "issues", "description")
    )
    assert way < 0.5 * as_read(whole)


def test_a_listed_tool_is_called_by_its_name(told: Transcript) -> None:
    assert told["call"].ok["structuredContent"]


def test_an_unknown_tool_is_answered_with_the_nearest(told: Transcript) -> None:
    error = told["unknown"].mendable
    assert error["kind"] == "unknown_tool"
    assert error["nearest"][0] == "create_issue"


@in_both_eras
def test_a_registered_function_brings_its_metadata(era: Era) -> None:
    board = Pegboard("desk", mode="index")

    @board.tool(
        category="notes",
        summary="Keep a note",
        related=["read_note"],
        examples=[Example("A short one", {"title": "todo"}, "kept")],
    )
    def keep_note(title: str, colour: Literal["red", "blue"] = "red") -> str:
        """Keep a note under its title.

        Args:
            title: What to find it by.
            colour: Of the paper.
        """
        return f"kept {title} on {colour}"

    @board.tool(category="notes", annotations=READ)
    def read_note(title: str) -> str:
        """Read a note."""
        return title

    assert [tool.name for tool in board.tools("notes")] == ["keep_note", "read_note"]
    told = play(board, era, {"told": call("get_tool_description", tool_name="keep_note")})
    answer = told["told"].json
    assert answer["parameters"]["colour"] == {
        "type": "string",
        "description": "Of the paper.",
        "required": False,
        "default": "red",
        "enum": ["red", "blue"],
    }
    assert answer["examples"] == [
        {
            "description": "A short one",
            "invocation": {"title": "todo"},
            "expected_output": "kept",
        }
    ]


def test_what_a_registration_gets_wrong_is_said_before_anybody_connects() -> None:
    board = Pegboard("desk")
    with pytest.raises(ConfigError, match="80"):
        board.tool("note", summary="x" * 81)(lambda: None)
    board.tool("note", related=["nowhere"])(lambda: None)
    with pytest.raises(ConfigError, match="nowhere"):
        board.check()
