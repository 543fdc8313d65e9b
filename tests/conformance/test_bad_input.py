"""Bad input, line by line: each a clear error that says what would be right, and nothing half-done.

What a person writes is refused when it is written or when the board starts; what a client sends is
in the scenarios of every client (`test_calling`, `test_meta_tools`) and, for single cases, here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.boards import office_board
from tests.conformance.clients import Era, play_python
from tests.conformance.scenarios import LISTING, call, request

from pegboard import AmbiguousName, ConfigError, Example, Pegboard, Tool, ToolNotFound
from pegboard.core.tools import constant_definition
from pegboard.server.serving import build_server

ERAS: tuple[Era, ...] = ("legacy", "modern")


def note(text: str) -> str:
    """Take a note."""
    return text


# What a person writes ----------------------------------------------------------------------------


def test_an_unknown_tool_lists_the_nearest() -> None:
    with pytest.raises(ToolNotFound, match="Nearest: get_issue") as caught:
        office_board().describe("get_isue")
    assert caught.value.nearest[0] == "get_issue"


def test_an_ambiguous_tool_lists_an_address_for_each() -> None:
    with pytest.raises(AmbiguousName, match=r"use one of documents\.search, issues\.search"):
        office_board().describe("search")


def test_an_unknown_category_lists_the_nearest() -> None:
    board = office_board()
    for ask in (board.tools, board.is_loaded):
        with pytest.raises(ToolNotFound, match=r"Unknown category: 'isues'. Nearest: issues"):
            ask("isues")


def test_switching_an_unknown_or_ambiguous_tool_changes_nothing() -> None:
    board = office_board()
    before = board.catalog.hash
    with pytest.raises(ToolNotFound, match="get_issue"):
        board.disable("get_isue")
    with pytest.raises(AmbiguousName):
        board.disable("search")
    assert board.catalog.hash == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "prox"}, "Unknown mode 'prox'. Did you mean 'proxy'"),
        ({"client_modes": {"cursor-vscode": "dynamik"}}, "Unknown mode 'dynamik'.*'dynamic'"),
        ({"risk": "splitt"}, "risk is 'splitt'; it must be one of auto, split, single"),
        ({"risk_rules": {"delete_*": "dangerous"}}, "not one of read, write, destructive"),
        ({"session_cap": 0}, "session_cap is 0; it must be at least 1"),
        ({"eager_budgt": 1}, "Unknown option 'eager_budgt'. Did you mean 'eager_budget'"),
    ],
)
def test_a_wrong_option_says_what_would_be_right(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Pegboard("board", **options)


def test_a_summary_over_80_characters_says_how_long_it_is() -> None:
    board = Pegboard("board")
    with pytest.raises(ConfigError, match="'note' has 81 characters; at most 80"):
        board.tool(summary="x" * 81)(note)
    assert board.tools() == []
    board.tool(summary="x" * 80)(note)
    assert [t.summary for t in board.tools()] == ["x" * 80]


def test_an_unknown_keyword_of_the_decorator_names_the_nearest() -> None:
    anything: dict[str, Any] = {"sumary": "x"}
    with pytest.raises(ConfigError, match=r"Unknown keyword 'sumary'. Did you mean 'summary'"):
        Pegboard("board").tool(**anything)


def test_a_related_tool_that_does_not_exist_stops_the_board_when_it_starts() -> None:
    board = Pegboard("board")
    board.tool(related=["nota"])(note)  # not at import: the other may be registered later
    with pytest.raises(ConfigError, match=r"'note' names a related tool that does not exist.*note"):
        board.check()
    with pytest.raises(ConfigError, match="related tool"):
        build_server(board, environ={})


@pytest.mark.parametrize(
    ("invocation", "message"),
    [
        ({"txt": "hi"}, "text"),
        ({"text": 5}, "must be str, not 5"),
        ({}, "text"),
    ],
)
def test_an_example_that_is_not_a_valid_call_stops_the_board_when_it_starts(
    invocation: dict[str, Any], message: str
) -> None:
    board = Pegboard("board")
    board.tool(examples=[Example("A note", invocation)])(note)
    with pytest.raises(ConfigError, match=message) as caught:
        board.check()
    assert "note" in caught.value.message
    assert "A note" in caught.value.message


def test_an_example_without_its_parts_says_which_there_are() -> None:
    with pytest.raises(ConfigError, match="description, invocation and optionally expected_output"):
        Pegboard("board").tool(examples=[{"call": {}}])(note)


def test_a_second_tool_of_the_same_name_and_category_is_refused() -> None:
    board = Pegboard("board")
    board.tool(note)
    with pytest.raises(ConfigError, match="'note' is registered already: give one another"):
        board.tool(description="Another note.")(note)
    assert [t.description for t in board.tools()] == ["Take a note."]


def test_the_first_of_two_registrations_still_answers() -> None:
    def louder(text: str) -> str:
        return text.upper()

    board = Pegboard("board")
    board.tool(note)
    with pytest.raises(ConfigError):
        board.tool(name="note")(louder)
    told = play_python(build_server(board, environ={}), "modern", {"call": call("note", text="x")})
    assert told["call"].text == "x"


@pytest.mark.parametrize("era", ERAS)
def test_a_loader_that_raises_is_reported_and_poisons_nothing(era: Era) -> None:
    def broken() -> list[Callable[..., Any]]:
        raise OSError("the disk is gone")

    board = office_board(mode="proxy")
    board.load("graphs", broken)
    told = play_python(
        build_server(board, environ={}),
        era,
        {
            "list": LISTING,
            "search": call("search_tools", query="burndown"),
            "call": call("echo", text="hi"),
            "unknown": call("draw_graph"),
        },
    )
    assert "burndown" in told["search"].text
    assert "'graphs' could not be loaded (OSError: the disk is gone)" in told["search"].text
    assert told["call"].text == "hi"
    assert "Unknown tool" in told["unknown"].misuse["message"]
    assert not board.is_loaded("graphs")
    with pytest.raises(ConfigError, match="tried again after 10 s"):
        board.tools("graphs")


@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": "string"}, [], "object", 5])
def test_a_schema_that_is_not_an_object_is_refused_by_a_catalog(schema: Any) -> None:
    from pegboard.core.tool_parser import tool_from_wire

    with pytest.raises(ConfigError, match="object"):
        tool_from_wire({"name": "odd", "inputSchema": schema})


def test_a_tool_of_ones_own_with_a_schema_that_is_not_an_object_is_refused() -> None:
    with pytest.raises(ConfigError, match="must be a JSON Schema object with type 'object'"):
        Tool("odd", constant_definition({"type": "array"}))


def test_type_hints_that_make_no_schema_are_refused_by_name() -> None:
    class Opaque: ...

    def odd(thing: Opaque) -> str:
        return str(thing)

    board = Pegboard("board")
    board.tool(odd)
    with pytest.raises(
        ConfigError, match="No schema can be generated from the type hints of 'odd'"
    ):
        _ = board.describe("odd")[0].input_schema


# What a client sends -----------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
def test_too_many_names_at_once_are_misuse_that_says_how_many_may_be(era: Era) -> None:
    names = [f"tool_{n}" for n in range(201)]
    server = build_server(office_board(), environ={})
    told = play_python(server, era, {"describe": request("tools/describe", names=names)})
    assert told["describe"].misuse["data"] == {"maxNames": 200}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", ["proxy", "hierarchy", "index", "dynamic"])
def test_a_tool_with_the_name_of_a_meta_tool_does_not_hide_it(mode: str, era: Era) -> None:
    """The name stays the mode's; the tool is reached through a meta-tool or its category."""
    board = office_board(mode=mode)
    board.tool(name="list_tool_categories")(note)
    told = play_python(
        build_server(board, environ={}), era, {"own": call("list_tool_categories", text="mine")}
    )
    assert told["own"].text == "mine"  # an unlisted name of another system yields to a real tool


@pytest.mark.parametrize("era", ERAS)
def test_a_policy_by_risk_refuses_inside_dispatch(era: Era) -> None:
    """CONTRACT: in the hierarchy mode one name carries all risks, so `dispatch_risk` decides."""
    steps = {
        "read": call("tools_dispatch", tool="echo", params={"text": "hi"}),
        "write": call("tools_dispatch", tool="create_project", params={"name": "x"}),
        "destroy": call("tools_dispatch", tool="cancel_event", params={"title": "x"}),
    }
    refuse = office_board(mode="hierarchy", dispatch_risk="refuse")
    told = play_python(build_server(refuse, environ={}), era, steps)
    assert told["read"].ok
    assert told["write"].ok
    assert told["destroy"].mendable["kind"] == "not_permitted"
    strict = office_board(mode="hierarchy", dispatch_risk="read-only")
    told = play_python(build_server(strict, environ={}), era, steps)
    assert told["read"].ok
    assert told["write"].mendable["kind"] == "not_permitted"
    assert "directly by its name" in told["destroy"].mendable["message"]
