"""The meta-tools of each mode: search, describe, call, and what they say when a call is wrong."""

from __future__ import annotations

import json

import pytest
from tests.conformance.cases import cases_of, only
from tests.conformance.clients import Transcript

from pegboard.core.json import compact

NOTIFICATION = "notifications/tools/list_changed"
SEARCHING = cases_of("proxy", "dynamic")


@only(SEARCHING)
def test_a_search_answers_one_signature_a_line(told: Transcript) -> None:
    first, *_ = told["search"].text.split("\n")
    assert first.startswith("create_issue(")
    assert "Create an issue" in first
    assert 'priority?: "low"|"medium"|"high"' in first
    assert "structuredContent" not in told["search"].ok


@only(SEARCHING)
def test_a_search_is_structured_when_it_is_asked(told: Transcript) -> None:
    answer = told["search structured"].ok["structuredContent"]
    first = answer["matches"][0]
    assert first["name"] == "create_issue"
    assert first["category"] == "issues"
    assert first["risk"] == "write"
    assert first["score"] > 0
    assert answer["total"] >= len(answer["matches"]) == 3


@only(SEARCHING)
def test_the_detail_of_a_search_is_chosen(told: Transcript) -> None:
    assert told["search by name"].text.split("\n")[0] == "echo"
    assert "email" in told["search full"].text


@only(SEARCHING)
def test_a_search_stays_in_its_category(told: Transcript) -> None:
    assert "delete_file" in told["search category"].text
    assert "delete_issue" not in told["search category"].text


@only(SEARCHING)
def test_a_search_that_finds_nothing_says_so_with_the_categories(told: Transcript) -> None:
    text = told["search nothing"].text
    assert text.startswith("No tool does this")
    assert "calendar" in text
    assert "reports" in text


@only(SEARCHING)
def test_a_wrong_search_says_what_would_be_right(told: Transcript) -> None:
    assert told["search bad category"].mendable["nearest"] == ["issues"]
    error = told["search without query"].mendable
    assert error["kind"] == "invalid_arguments"
    assert "query" in error["message"]


@only(cases_of("proxy"))
def test_describe_tools_tells_all_and_names_what_is_missing(told: Transcript) -> None:
    text = told["describe_tools"].text
    assert "create_event [write]" in text
    assert "email" in text
    assert "get_isue: unknown. Nearest: get_issue" in text
    assert "empty" in told["describe_tools none"].mendable["message"]


@only(SEARCHING)
def test_a_tool_called_through_the_meta_tool_gives_its_own_result(told: Transcript) -> None:
    # The same JSON; what a model reads through a meta-tool is not indented.
    assert told["call_tool"].text == compact(json.loads(told["direct"].text))
    assert told["call_tool"].ok["structuredContent"] == told["direct"].ok["structuredContent"]


@only(SEARCHING)
@pytest.mark.parametrize("key", ["call_tool as text", "call_tool beside", "call_tool loaded"])
def test_weak_ways_to_call_are_understood(told: Transcript, key: str) -> None:
    assert told[key].ok["content"]


@only(SEARCHING)
def test_a_wrong_call_is_an_answer_that_the_model_can_mend(told: Transcript) -> None:
    assert told["call_tool unknown"].mendable["nearest"][0] == "get_issue"
    assert told["call_tool ambiguous"].mendable["kind"] == "ambiguous_name"
    assert told["call_tool invalid"].mendable["kind"] == "invalid_arguments"
    assert told["call_tool disabled"].mendable["kind"] == "tool_disabled"


@only(SEARCHING)
def test_search_also_works_through_a_call_tool(told: Transcript) -> None:
    assert "get_issue" in told["call_tool search"].text


@only(SEARCHING)
def test_a_call_tool_is_not_called_through_itself(told: Transcript) -> None:
    error = told["call_tool itself"].mendable
    assert "call it directly" in error["message"]


@only(cases_of("proxy"))
@pytest.mark.parametrize(
    ("key", "right"),
    [
        ("read calls write", "call_write_tool"),
        ("read calls destructive", "call_destructive_tool"),
        ("write calls destructive", "call_destructive_tool"),
    ],
)
def test_a_call_tool_refuses_what_is_above_its_risk(told: Transcript, key: str, right: str) -> None:
    error = told[key].mendable
    assert error["kind"] == "not_permitted"
    assert error["expected"] == right


@only(cases_of("proxy"))
def test_a_call_tool_takes_its_own_risk_and_lower(told: Transcript) -> None:
    assert told["write"].ok["structuredContent"] == {"result": "mercury"}
    assert told["write calls read"].ok["structuredContent"] == {"result": "hi"}
    assert told["destructive"].ok["structuredContent"] == {"result": "cancelled x"}


@only(cases_of("proxy"))
def test_a_fan_out_gives_each_call_its_own_outcome_in_order(told: Transcript) -> None:
    results = told["fan out"].json["results"]
    assert [r["ok"] for r in results] == [True, False, False, True, False]
    kinds = [r["error"]["kind"] for r in results if not r["ok"]]
    assert kinds == ["unknown_tool", "not_permitted", "invalid_arguments"]
    assert [r["name"] for r in results[:4]] == ["get_issue", "get_isue", "cancel_event", "echo"]
    assert results[0]["result"]["id"] == 1
    assert "one or more" in told["fan out of nothing"].mendable["message"]


@only(cases_of("proxy"))
def test_a_handle_that_nobody_gave_is_a_mendable_error(told: Transcript) -> None:
    assert told["read nothing"].mendable["field"] == "handle"


@only(cases_of("index"))
def test_the_index_lists_names_summaries_and_categories(told: Transcript) -> None:
    answer = told["available"].json
    assert answer["total"] == 29
    assert {"name": "reports", "description": "Figures over time", "tool_count": 3} in answer[
        "categories"
    ] or "reports" in answer["categories"]
    row = next(t for t in answer["tools"] if t["name"] == "issues.search")
    assert row == {
        "name": "issues.search",
        "summary": "Find issues whose title has these words",
        "category": "issues",
        "enabled": True,
    }


@only(cases_of("index"))
def test_the_index_filters_by_category_and_shows_disabled_tools_on_request(
    told: Transcript,
) -> None:
    enabled = [t["name"] for t in told["available in category"].json["tools"]]
    everything = [t["name"] for t in told["available with disabled"].json["tools"]]
    assert set(everything) - set(enabled) == {"shred_file"}
    assert told["available in bad category"].mendable["nearest"] == ["storage"]


@only(cases_of("index"))
def test_a_description_has_parameters_examples_and_related_tools(told: Transcript) -> None:
    answer = told["description"].json
    assert answer["parameters"]["title"]["required"] is True
    assert answer["parameters"]["title"]["description"] == "One line that says what is wrong."
    assert (
        answer["parameters"]["priority"] | {"required": False, "default": "medium"}
        == answer["parameters"]["priority"]
    )
    assert answer["parameters"]["priority"]["enum"] == ["low", "medium", "high"]
    assert answer["examples"][0]["invocation"] == {"project": "apollo", "title": "Lamp is dark"}
    assert answer["related_tools"] == ["get_issue", "issues.search"]
    assert "examples" not in told["description short"].json


@only(cases_of("index"))
def test_a_description_of_no_tool_is_mendable(told: Transcript) -> None:
    assert told["description unknown"].mendable["nearest"][0] == "get_issue"
    assert "call it directly" in told["description of meta"].mendable["message"]


@only(cases_of("hierarchy"))
def test_the_hierarchy_leads_from_categories_to_one_call(told: Transcript) -> None:
    categories = {c["name"]: c for c in told["categories"].json["categories"]}
    assert categories["documents"] == {
        "name": "documents",
        "description": "Texts that people write together",
        "tool_count": 5,
    }
    tools = told["tools"].json
    assert tools["category"] == "documents"
    assert {"name": "search", "summary": "Find documents that contain these words"} in tools[
        "tools"
    ]
    schema = told["schema"].json["schema"]
    assert (schema["name"], schema["category"]) == ("search", "documents")
    assert schema["inputSchema"]["required"] == ["query"]
    for key in ("dispatch", "dispatch as text"):
        assert told[key].ok["structuredContent"] == {"result": ["charter"]}, key


@only(cases_of("hierarchy"))
def test_the_hierarchy_holds_loaded_and_loose_tools_too(told: Transcript) -> None:
    assert len(told["tools of a loader"].json["tools"]) == 3
    assert told["dispatch loose"].ok["structuredContent"] == {"result": "hi"}


@only(cases_of("hierarchy"))
def test_a_wrong_turn_in_the_hierarchy_is_mendable(told: Transcript) -> None:
    assert told["tools of bad category"].mendable["nearest"] == ["documents"]
    assert told["schema unknown"].mendable["nearest"][0] == "read_document"
    assert told["dispatch in wrong category"].mendable["kind"] == "unknown_tool"
    assert told["dispatch invalid"].mendable["kind"] == "invalid_arguments"
    assert "call it directly" in told["dispatch meta"].mendable["message"]


@only(cases_of("dynamic"))
def test_a_search_announces_its_matches_once_before_it_answers(told: Transcript) -> None:
    assert told["found"].notifications == (NOTIFICATION,)
    assert told["found again"].notifications == ()
    assert told["found category"].notifications == (NOTIFICATION,)


@only(cases_of("dynamic"))
def test_found_tools_are_listed_whole_and_called_by_name(told: Transcript) -> None:
    listed = {tool["name"]: tool for tool in told["list after search"].ok["tools"]}
    assert list(listed)[:2] == ["search_tools", "call_tool"]
    assert "get_issue" in listed
    assert listed["get_issue"]["inputSchema"]["required"] == ["id"]
    assert told["call found"].ok["structuredContent"]["id"] == 1


@only(cases_of("dynamic"))
def test_a_search_about_a_category_enables_all_of_it_and_keeps_what_was_found(
    told: Transcript,
) -> None:
    names = set(told["list after category"].names)
    assert {"list_events", "create_event", "cancel_event", "find_slot"} <= names
    assert "get_issue" in names


@only(cases_of("eager", "stub", "index", "hierarchy", "proxy"))
def test_no_other_mode_announces_a_changed_list(told: Transcript) -> None:
    assert {key: a.notifications for key, a in told.answers.items() if a.notifications} == {}
