"""What each mode lists, and that what is listed is what is described and what can be called."""

from __future__ import annotations

from copy import deepcopy

from tests.boards import office_board
from tests.conformance.cases import Case, cases_of, only
from tests.conformance.clients import Transcript

from pegboard.core.options import ModeName

META_TOOLS: dict[ModeName, list[str]] = {
    "proxy": ["search_tools", "call_tool", "call_write_tool", "call_destructive_tool"],
    "index": ["list_available_tools", "get_tool_description"],
    "hierarchy": [
        "tools_list_categories",
        "tools_list_tools",
        "tools_get_schema",
        "tools_dispatch",
    ],
    "dynamic": ["search_tools", "call_tool"],
}
EVERY_TOOL = [office_board().catalog.address(t) for t in office_board().catalog.enabled]


def test_the_office_has_two_tools_of_one_name_under_their_categories() -> None:
    assert len(EVERY_TOOL) == len(set(EVERY_TOOL)) == 29
    assert {"issues.search", "documents.search"} <= set(EVERY_TOOL)
    assert "shred_file" not in EVERY_TOOL


@only(cases_of("proxy", "index", "hierarchy", "dynamic"))
def test_a_lazy_mode_lists_its_meta_tools_and_nothing_else(case: Case, told: Transcript) -> None:
    assert told["list"].names == META_TOOLS[case.shown]


@only(cases_of("proxy", "index", "hierarchy", "dynamic"))
def test_meta_tools_ask_not_to_be_deferred(told: Transcript) -> None:
    for tool in told["list"].ok["tools"]:
        assert tool["_meta"]["anthropic/alwaysLoad"] is True
        assert tool["inputSchema"]["type"] == "object"
        assert isinstance(tool["annotations"].get("readOnlyHint"), bool)


@only(cases_of("eager", "stub"))
def test_eager_and_stub_list_every_enabled_tool(told: Transcript) -> None:
    assert sorted(told["list"].names) == sorted(EVERY_TOOL)


@only(cases_of("stub"))
def test_a_stub_is_a_name_a_summary_and_any_object(told: Transcript) -> None:
    for tool in told["list"].ok["tools"]:
        assert set(tool) == {"name", "description", "inputSchema"}
        assert tool["inputSchema"] == {"type": "object"}
        assert 0 < len(tool["description"]) <= len("[deprecated] ") + 80


def test_every_mode_lists_stubs_and_everything_when_it_is_asked(told: Transcript) -> None:
    for key in ("lazy", "lazy by meta", "eager", "eager by meta"):
        assert sorted(told[key].names) == sorted(EVERY_TOOL), key
    assert told["lazy"].ok["tools"] == told["lazy by meta"].ok["tools"]
    assert told["eager"].ok["tools"] == told["eager by meta"].ok["tools"]


def test_parity_what_is_listed_is_what_is_described_and_in_the_manifest(told: Transcript) -> None:
    """REQUIREMENTS A8; that each of them can be called is in `test_parity`."""
    by_name = {tool["name"]: tool for tool in told["eager"].ok["tools"]}
    manifest = [entry["name"] for entry in told["manifest"].ok["entries"]]
    assert sorted(manifest) == sorted(by_name) == sorted(told["lazy"].names)
    for tool in deepcopy(told["describe"].ok["tools"]):
        schema = tool["inputSchema"]
        declared = schema["properties"].pop("include_fields")
        assert declared["items"] == {"type": "string"}
        listed = deepcopy(by_name[tool["name"]])
        # Only the whole list of a server of stubs declares it too: see `docs/decisions/modes.md`.
        listed["inputSchema"].get("properties", {}).pop("include_fields", None)
        assert tool == listed


def test_deprecated_tools_say_so_where_they_are_listed(told: Transcript) -> None:
    full = {tool["name"]: tool for tool in told["eager"].ok["tools"]}
    stub = {tool["name"]: tool for tool in told["lazy"].ok["tools"]}
    assert full["archive_project"]["description"].startswith("[deprecated: use close_project]")
    assert stub["archive_project"]["description"].startswith("[deprecated]")


def test_annotations_and_output_schemas_pass_through(told: Transcript) -> None:
    full = {tool["name"]: tool for tool in told["eager"].ok["tools"]}
    assert full["delete_issue"]["annotations"] == {"destructiveHint": True}
    assert "id" in full["get_issue"]["outputSchema"]["properties"]
    assert full["create_issue"]["inputSchema"]["properties"]["title"] == {
        "type": "string",
        "description": "One line that says what is wrong.",
    }
