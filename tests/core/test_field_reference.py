"""The fields of a result as people look them up."""

from __future__ import annotations

from typing import Any

from pegboard.core.field_reference import field_entries, fields_page
from pegboard.core.tools import Tool, constant

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


def test_each_field_has_path_type_description_and_example() -> None:
    found = {e.path: (e.type, e.description, e.example) for e in field_entries(SCHEMA, SAMPLE)}
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
    assert field_entries(None, {"a": 1}) == []


def test_a_page_has_a_table_per_tool_and_borrows_examples_of_like_fields() -> None:
    def tool(name: str, output: Any) -> Tool:
        return Tool(name, constant({"type": "object"}, output), summary=f"The {name}", category="c")

    one = {"type": "object", "properties": {"id": {"type": "integer"}}}
    tools = [tool("list", SCHEMA), tool("get", one), tool("mute", None)]
    page = fields_page("shop", tools, {"c.list": SAMPLE, "list": SAMPLE})
    assert page.index("### get") < page.index("### list") < page.index("### mute")
    assert '| `counts` | `{[key]: int}` |  | `{"a\\|b":1}` |' in page
    assert page.count("| `7` |") == 2
    assert "Says nothing of its result." in page
