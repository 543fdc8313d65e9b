"""Tools called by their own names, in every mode: as before, and with errors that help."""

from __future__ import annotations

from tests.conformance.clients import Transcript

WARNING = "io.github.pegboard/warning"


def test_a_hidden_tool_answers_its_own_name(told: Transcript) -> None:
    """REQUIREMENTS D6: a direct call works as before, without describe first."""
    answer = told["direct"].ok
    assert answer["structuredContent"] == {
        "id": 1,
        "project": "apollo",
        "title": "Door does not open",
        "priority": "medium",
        "status": "open",
    }
    assert told["direct"].json == answer["structuredContent"]


def test_a_name_of_two_tools_is_called_with_its_category(told: Transcript) -> None:
    assert told["direct by category"].ok["structuredContent"] == {"result": ["charter"]}


def test_a_tool_of_a_loader_is_called_like_any_other(told: Transcript) -> None:
    assert told["direct of a loader"].ok["structuredContent"] == {"result": 4.0}


def test_a_tool_learns_who_calls(told: Transcript) -> None:
    assert told["direct whoami"].text == "conformance"


def test_a_deprecated_tool_works_and_warns(told: Transcript) -> None:
    answer = told["deprecated"].ok
    assert answer["structuredContent"] == {"result": "archived apollo"}
    assert "use close_project" in answer["_meta"][WARNING]
    assert "Warning: archive_project is deprecated" in told["deprecated"].text


def test_an_unknown_tool_is_misuse_that_names_the_nearest(told: Transcript) -> None:
    """2026-07-28, tools, error handling: an unknown tool is a protocol error."""
    error = told["unknown"].misuse
    assert "Unknown tool: 'get_isue'" in error["message"]
    assert error["data"]["nearest"][0] == "get_issue"


def test_an_ambiguous_name_is_misuse_that_lists_the_candidates(told: Transcript) -> None:
    error = told["ambiguous"].misuse
    assert sorted(error["data"]["nearest"]) == ["documents.search", "issues.search"]


def test_a_disabled_tool_is_not_callable(told: Transcript) -> None:
    assert told["disabled"].mendable["kind"] == "tool_disabled"


def test_an_argument_of_the_wrong_type_is_named(told: Transcript) -> None:
    error = told["wrong type"].mendable
    assert error["kind"] == "invalid_arguments"
    assert error["tool"] == "get_issue"
    assert "id" in error["message"]
    assert "must be int" in error["message"]


def test_a_missing_argument_is_named(told: Transcript) -> None:
    error = told["missing"].mendable
    assert error["kind"] == "invalid_arguments"
    assert "title" in error["message"]


def test_an_unknown_argument_is_reported_and_never_dropped(told: Transcript) -> None:
    error = told["extra"].mendable
    assert error["kind"] == "invalid_arguments"
    assert "loud" in error["message"]
    assert "text" in error["message"]


def test_what_a_tool_says_of_its_failure_reaches_the_model(told: Transcript) -> None:
    assert told["value error"].mendable["message"] == "That value does not exist."
    assert told["tool error"].mendable["message"] == "The printer has no paper."


def test_the_inside_of_a_crash_does_not(told: Transcript) -> None:
    error = told["crash"].mendable
    assert error["kind"] == "upstream_error"
    assert "secret" not in error["message"]


def test_a_parallel_dispatch_of_another_system_answers_in_order(told: Transcript) -> None:
    first, second, third = told["alias parallel"].json["results"]
    assert (first["ok"], first["result"]) == (True, {"result": "one"})
    assert (second["ok"], second["error"]["kind"]) == (False, "unknown_tool")
    assert (third["ok"], third["result"]["id"]) == (True, 1)


def test_names_of_other_systems_are_callable_although_unlisted(told: Transcript) -> None:
    categories = {c["name"]: c["tool_count"] for c in told["alias categories"].json["categories"]}
    assert categories["storage"] == 4
    assert categories["reports"] == 3
    assert told["alias schema"].json["schema"]["name"] == "get_issue"
    assert told["alias invoke"].ok["structuredContent"] == {"result": "hello"}
    assert not {"list_tool_categories", "invoke_tool", "get_tool_schema"} & set(told["list"].names)
