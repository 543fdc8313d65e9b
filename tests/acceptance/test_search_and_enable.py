"""The third earlier system: search enables tools of a session, some are always there.

Theirs: `search_tools`, `enabledTools`, `ALWAYS_AVAILABLE_TOOLS`, `sendToolListChanged`; and for
clients without sessions `list_tool_categories`, `get_tool_schema`, `invoke_tool`.
"""

from __future__ import annotations

import pytest
from tests.acceptance.support import (
    LIST,
    as_read,
    call,
    in_both_eras,
    play,
    play_on_stdio,
    tracker_board,
)
from tests.conformance.clients import Era, Scenario, Transcript, play_python

from pegboard.server.serving import build_server
from pegboard.tokens import count_tokens

CHANGED = ("notifications/tools/list_changed",)
PINS = {"list_projects", "fulltext_search"}
STEPS: Scenario = {
    "start": LIST,
    "search": call("search_tools", query="file a bug report", limit=5),
    "after": LIST,
    "again": call("search_tools", query="file a bug report", limit=5),
    "other": call("search_tools", query="who works on what this week", limit=3),
    "later": LIST,
    "nothing": call("search_tools", query="zebra"),
    "hidden": call("list_documents"),
    "unknown": call("call_tool", name="creat_issue", arguments={}),
}


@pytest.fixture(scope="module", params=["memory", "stdio"])
def told(request: pytest.FixtureRequest) -> Transcript:
    if request.param == "stdio":
        return play_on_stdio("examples.tracker", "legacy", STEPS, mode="dynamic")
    return play(tracker_board(), "legacy", STEPS, mode="dynamic")


def test_at_first_there_are_the_pins_and_a_search(told: Transcript) -> None:
    assert set(told["start"].names) == {"search_tools", "call_tool", *PINS}
    assert as_read(told["start"].ok["tools"]) <= 2_000


def test_a_search_enables_what_it_finds_and_says_so_once(told: Transcript) -> None:
    assert told["search"].notifications == CHANGED
    new = set(told["after"].names) - set(told["start"].names)
    assert "create_issue" in new
    listed = {tool["name"]: tool for tool in told["after"].ok["tools"]}
    assert "title" in listed["create_issue"]["inputSchema"]["properties"]
    assert told["again"].notifications == ()


def test_a_search_costs_little(told: Transcript) -> None:
    assert count_tokens(told["search"].text) <= 2_000


def test_enabled_tools_accumulate_and_pins_stay(told: Transcript) -> None:
    assert set(told["later"].names) >= set(told["after"].names) >= PINS
    assert told["other"].notifications == CHANGED


def test_what_is_not_enabled_is_callable_all_the_same(told: Transcript) -> None:
    assert "list_documents" not in told["later"].names
    assert told["hidden"].ok["structuredContent"]


def test_a_search_without_matches_says_what_there_is(told: Transcript) -> None:
    assert told["nothing"].text.startswith("No tool does this")
    assert "issues" in told["nothing"].text
    assert told["nothing"].notifications == ()


def test_an_unknown_tool_is_answered_with_help(told: Transcript) -> None:
    assert told["unknown"].mendable["nearest"][0] == "create_issue"


def test_always_available_tools_come_from_the_environment() -> None:
    environ = {"PEGBOARD_MODE": "dynamic", "ALWAYS_AVAILABLE_TOOLS": "list_members, create_issue"}
    server = build_server(tracker_board(), environ=environ)
    names = play_python(server, "legacy", {"list": LIST})["list"].names
    assert {"list_members", "create_issue"} <= set(names)


@in_both_eras
def test_the_names_of_the_earlier_system_work_in_every_session(era: Era) -> None:
    told = play(
        tracker_board(),
        era,
        {
            "categories": call("list_tool_categories"),
            "schema": call("get_tool_schema", toolName="list_projects"),
            "invoke": call("invoke_tool", toolName="list_projects", args={}),
            "fields": call("invoke_tool", toolName="list_projects", args={"include_fields": "key"}),
            "unknown": call("invoke_tool", toolName="list_project", args={}),
            "wrong": call("invoke_tool", toolName="create_issue", args={"project": "WEB"}),
        },
        mode="proxy",
    )
    categories = {c["name"]: c for c in told["categories"].json["categories"]}
    assert len(categories) == 15
    assert all(c["tool_count"] > 0 and c["description"] for c in categories.values())
    assert told["schema"].json["schema"]["inputSchema"]["type"] == "object"
    assert told["invoke"].ok["content"]
    assert told["unknown"].mendable["nearest"][0] == "list_projects"
    assert "title" in told["wrong"].mendable["message"]
    assert count_tokens(told["fields"].text) < count_tokens(told["invoke"].text)


def test_in_the_modern_era_the_list_does_not_change_with_use() -> None:
    told = play(
        tracker_board(),
        "modern",
        {"before": LIST, "search": call("search_tools", query="issues"), "after": LIST},
        mode="dynamic",
    )
    assert told["before"].ok == told["after"].ok
    assert told["search"].notifications == ()
