"""Parity: what a mode lists is what it describes and what can be called."""

from __future__ import annotations

from typing import Any

import pytest
from tests.boards import office_board
from tests.conformance.clients import Era, Step, play_python
from tests.conformance.scenarios import call, request, shown_mode

from pegboard.core.options import MODES, ModeName
from pegboard.server.serving import build_server

ARGUMENTS: dict[str, dict[str, Any]] = {
    "create_event": {"title": "lunch", "attendees": [{"name": "Ada"}]},
    "cancel_event": {"title": "lunch"},
    "list_events": {"day": "monday"},
    "documents.search": {"query": "build"},
    "read_document": {"name": "charter"},
    "write_document": {"name": "notes", "text": "Be kind."},
    "delete_document": {"name": "notes"},
    "create_issue": {"project": "apollo", "title": "Lamp is dark"},
    "get_issue": {"id": 1},
    "close_issue": {"id": 1},
    "issues.search": {"query": "door"},
    "delete_issue": {"id": 1},
    "create_project": {"name": "mercury"},
    "archive_project": {"name": "apollo"},
    "close_project": {"name": "apollo"},
    "upload_file": {"name": "a.txt", "content": "a"},
    "delete_file": {"name": "a.txt"},
    "echo": {"text": "hi"},
    "burndown": {"project": "apollo"},
    "workload": {"person": "Ada"},
}
"""What each tool is called with; those that are not here need nothing. In an order that works."""
FAILING = {"fail": {"how": "tool"}}


def _ordered(names: list[str]) -> list[str]:
    return [*(n for n in ARGUMENTS if n in names), *sorted(set(names) - set(ARGUMENTS))]


def listed_by(mode: ModeName, era: Era) -> list[str]:
    """Every real tool, as the mode itself names it."""
    shown = shown_mode(mode, era)
    server = build_server(office_board(mode=mode), environ={})
    steps: dict[str, Step] = {
        "list": {"do": "list"},
        "index": call("list_available_tools"),
        "categories": call("tools_list_categories"),
        "eager": request("tools/list", lazy=False),
    }
    keep = {"eager": "list", "stub": "list", "index": "index"}.get(shown, "eager")
    told = play_python(server, era, {keep: steps[keep]})[keep]
    return told.names if keep != "index" else [t["name"] for t in told.json["tools"]]


def through(mode: ModeName, name: str, arguments: dict[str, Any]) -> Step:
    """One call in the way of a mode: by its meta-tool where it has one, else by name."""
    match mode:
        case "proxy":
            return call("call_destructive_tool", name=name, arguments=arguments)
        case "dynamic":
            return call("call_tool", name=name, arguments=arguments)
        case "hierarchy":
            return call("tools_dispatch", tool=name, params=arguments)
        case _:
            return call(name, **arguments)


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("mode", MODES)
def test_every_tool_that_a_mode_shows_is_described_and_callable(mode: ModeName, era: Era) -> None:
    names = _ordered(listed_by(mode, era))
    assert len(names) == 29
    arguments = {name: ARGUMENTS.get(name, FAILING.get(name, {})) for name in names}
    steps: dict[str, Step] = {f"describe {n}": request("tools/describe", name=n) for n in names}
    # In two offices, since some calls undo what others need.
    direct = {f"call {n}": call(n, **arguments[n]) for n in names}
    by_mode = {f"call {n}": through(shown_mode(mode, era), n, arguments[n]) for n in names}
    one = play_python(build_server(office_board(mode=mode), environ={}), era, {**steps, **direct})
    two = play_python(build_server(office_board(mode=mode), environ={}), era, by_mode)
    for name in names:
        assert one[f"describe {name}"].ok["tool"]["name"] == name
        for told in (one, two):
            answer = told[f"call {name}"]
            if name in FAILING:
                assert answer.mendable["message"] == "The printer has no paper."
            else:
                assert answer.ok["content"] is not None, name


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("mode", MODES)
def test_a_tool_switched_off_is_neither_listed_nor_found_nor_callable(
    mode: ModeName, era: Era
) -> None:
    board = office_board(mode=mode)
    board.disable("echo")
    board.disable("calendar")
    told = play_python(
        build_server(board, environ={}),
        era,
        {
            "list": request("tools/list", lazy=False),
            "manifest": request("tools/manifest"),
            "search": call("search_tools", query="echo")
            if shown_mode(mode, era) in ("proxy", "dynamic")
            else call("list_tool_categories"),
            "call": call("echo", text="hi"),
            "call of category": call("find_slot"),
        },
    )
    assert not {"echo", "find_slot", "create_event"} & set(told["list"].names)
    assert "echo" not in [entry["name"] for entry in told["manifest"].ok["entries"]]
    assert "echo(" not in told["search"].text
    assert told["call"].mendable["kind"] == "tool_disabled"
    assert told["call of category"].mendable["kind"] == "tool_disabled"
    board.enable("echo")
    assert "echo" in [tool.name for tool in board.tools()]
