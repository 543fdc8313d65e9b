"""The extension's methods, raw: `tools/describe`, `tools/describe_batch`, `tools/manifest`."""

from __future__ import annotations

import re

from tests.conformance.clients import Transcript


def test_describe_answers_in_the_order_of_the_names(told: Transcript) -> None:
    assert told["describe"].names == ["issues.search", "get_issue"]
    assert "outputSchema" in told["describe"].ok["tools"][1]


def test_describe_takes_one_name(told: Transcript) -> None:
    tool = told["describe one"].ok["tool"]
    assert tool["name"] == "create_issue"
    assert tool["inputSchema"]["required"] == ["project", "title"]


def test_describe_takes_the_earlier_tool_name(told: Transcript) -> None:
    answer = told["describe tool_name"].ok
    assert answer["tool_name"] == "create_issue"
    assert set(answer["schema"]) == {"name", "description", "inputSchema", "outputSchema"}
    assert "Create an issue" in answer["schema"]["description"]


def test_an_unknown_name_fails_with_what_was_perhaps_meant(told: Transcript) -> None:
    data = told["describe unknown"].misuse["data"]
    assert data["unknownNames"] == ["get_isue"]
    assert data["nearest"]["get_isue"][0] == "get_issue"


def test_partial_describes_what_it_can(told: Transcript) -> None:
    answer = told["describe partly"].ok
    assert [tool["name"] for tool in answer["tools"]] == ["echo"]
    assert [missing["name"] for missing in answer["missing"]] == ["get_isue"]


def test_describe_without_names_is_misuse(told: Transcript) -> None:
    assert "`names` must be a list" in told["describe nothing"].misuse["message"]


def test_a_batch_never_fails_as_a_whole_and_never_drops_a_name(told: Transcript) -> None:
    answer = told["batch"].ok
    assert [tool["tool_name"] for tool in answer["tools"]] == ["echo", "burndown"]
    missing = {entry["name"]: entry["nearest"] for entry in answer["missing"]}
    assert list(missing) == ["get_isue", "search"]
    assert missing["get_isue"][0] == "get_issue"
    assert sorted(missing["search"]) == ["documents.search", "issues.search"]
    assert told["batch of names"].ok["tools"][0]["schema"]["inputSchema"]["required"] == ["text"]


def test_a_manifest_tells_what_changed_without_sending_it(told: Transcript) -> None:
    entries = told["manifest"].ok["entries"]
    for entry in entries:
        assert re.fullmatch(r"[0-9a-f]{64}", entry["digest"])
        assert entry["size"] > 0
    assert len({entry["digest"] for entry in entries}) == len(entries)
    by_name = {entry["name"]: entry for entry in entries}
    assert by_name["delete_issue"]["annotations"] == {"destructiveHint": True}
