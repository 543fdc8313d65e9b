"""The fields of a result as people look them up."""

from __future__ import annotations

from typing import Any

from pegboard.core.results.output_fields import list_field_entries, render_fields_page
from pegboard.core.tools import Tool, constant_definition

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "integer", "description": "Its number."},
                    "state": {"enum": ["open", "done"]},
                    "title": {"type": "string"},
                    "owner": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                },
            },
        },
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "size": {"type": "integer", "examples": [12]},
    },
}
SAMPLE = {"items": [{"id": 7, "owner": None}, {"title": "x" * 100}], "counts": {"a|b": 1}}


def _tool(name: str, output: Any, **more: Any) -> Tool:
    definition = constant_definition({"type": "object"}, output)
    return Tool(name, definition, summary=f"The {name}", category="c", **more)


def test_each_field_has_path_type_description_and_example() -> None:
    entries = list_field_entries(_tool("list", SCHEMA), SAMPLE)
    found = {e.path: (e.type, e.description, e.example) for e in entries}
    assert found == {
        "items": ("object[]", "", ""),
        "items[].id": ("int", "Its number.", "7"),
        "items[].state": ('"open"|"done"', "", '"open"'),
        "items[].title": ("str", "", '"' + "x" * 37 + '..."'),
        "items[].owner": ("str|null", "", ""),
        "counts": ("{[key]: int}", "", '{"a|b":1}'),
        "size": ("int", "", "12"),
    }


def test_a_tool_without_output_schema_has_no_fields() -> None:
    assert list_field_entries(_tool("mute", None), {"a": 1}) == []


def test_what_the_author_says_of_fields_fills_in_what_the_schema_does_not() -> None:
    said = {
        "id": "not shown: the schema has its own words",
        "title": "In one line",
        "items.owner": "Who has it",
        "owner": "less exact than the path",
        "list.size": "Of this tool only",
    }
    entries = list_field_entries(_tool("list", SCHEMA, field_descriptions=said))
    found = {e.path: e.description for e in entries if e.description}
    assert found == {
        "items[].id": "Its number.",
        "items[].title": "In one line",
        "items[].owner": "Who has it",
        "size": "Of this tool only",
    }
    assert "size" not in {
        e.path
        for e in list_field_entries(_tool("get", SCHEMA, field_descriptions=said))
        if e.description
    }


def test_descriptions_of_fields_are_not_sent_and_do_not_change_the_digest() -> None:
    plain, explained = _tool("list", SCHEMA), _tool("list", SCHEMA, field_descriptions={"id": "x"})
    assert explained.wire() == plain.wire()
    assert explained.digest == plain.digest


def test_a_page_has_a_table_per_tool_and_borrows_examples_of_like_fields() -> None:
    one = {"type": "object", "properties": {"id": {"type": "integer"}}}
    tools = [_tool("list", SCHEMA), _tool("get", one), _tool("mute", None)]
    page = render_fields_page("shop", tools, {"c.list": SAMPLE, "list": SAMPLE})
    assert page.index("### get") < page.index("### list") < page.index("### mute")
    assert '| `counts` | `{[key]: int}` |  | `{"a\\|b":1}` |' in page
    assert page.count("| `7` |") == 2
    assert "Does not declare the fields of its result." in page
