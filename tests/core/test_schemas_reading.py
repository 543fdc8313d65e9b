"""Parameters one by one, parameters in full, and the fields of a result."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.core.schemas import (
    describe_parameters,
    format_field_outline,
    format_signature,
    list_output_fields,
    list_parameters,
    unwrap_root,
)

ISSUES = {
    "type": "object",
    "properties": {
        "project": {"type": "string", "description": "Key of the project"},
        "filter": {
            "type": "object",
            "description": "Which issues",
            "properties": {
                "status": {
                    "type": "array",
                    "items": {"enum": ["open", "done"]},
                    "description": "Any of these",
                },
                "assignee": {"type": ["string", "null"], "description": "Nobody when null"},
            },
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
    },
    "required": ["project"],
}


def test_parameters_have_type_description_required_default_and_enum() -> None:
    schema = {
        "properties": {
            "priority": {"enum": ["low", "high"], "default": "low", "description": "How urgent"},
            "title": {"type": "string"},
        },
        "required": ["title"],
    }
    assert list_parameters(schema) == {
        "title": {"type": "string", "description": "", "required": True},
        "priority": {
            "type": "string",
            "description": "How urgent",
            "required": False,
            "default": "low",
            "enum": ["low", "high"],
        },
    }


@pytest.mark.parametrize(
    ("schema", "type_", "accepts"),
    [
        ({"type": "integer"}, "integer", None),
        ({"type": "integer", "minimum": 1}, "integer", "int 1.."),
        ({"type": "array", "items": {"type": "string"}}, "array", "str[]"),
        ({"properties": {"id": {"type": "string"}}}, "object", "{id?: str}"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string|null", None),
        ({"enum": [1, "a"]}, "string|integer", None),
        ({"anyOf": [{"type": "string"}, {}]}, "any", "str|any"),
        ({}, "any", None),
    ],
)
def test_what_the_type_of_a_parameter_does_not_tell_is_in_accepts(
    schema: Any, type_: str, accepts: str | None
) -> None:
    made = list_parameters({"properties": {"x": schema}})["x"]
    assert made["type"] == type_
    assert made.get("accepts") == accepts


def test_nested_members_with_descriptions_get_lines_of_their_own() -> None:
    assert describe_parameters(ISSUES).text == (
        "project: str - Key of the project\n"
        "filter?: object - Which issues\n"
        '  status?: ("open"|"done")[] - Any of these\n'
        "  assignee?: str|null - Nobody when null\n"
        "limit?: int 1..100 = 20"
    )
    assert describe_parameters(ISSUES).complete


def test_nested_members_without_descriptions_stay_on_one_line() -> None:
    schema = {"properties": {"at": {"properties": {"x": {"type": "number"}}, "required": ["x"]}}}
    assert describe_parameters(schema).text == "at?: {x: number}"


def test_a_description_keeps_the_lines_that_people_wrote() -> None:
    schema = {"properties": {"q": {"type": "string", "description": "One:\n- a\n\n- b"}}}
    assert describe_parameters(schema).text == "q?: str - One:\n  - a\n  - b"


def test_descriptions_of_items_alternatives_and_examples_are_included() -> None:
    schema = {
        "properties": {
            "ids": {"type": "array", "items": {"type": "string", "description": "a user"}},
            "when": {
                "anyOf": [{"type": "string", "description": "a day"}, {"type": "integer"}],
                "examples": ["today"],
                "deprecated": True,
            },
        }
    }
    assert describe_parameters(schema).text == (
        'ids?: str[] - each: a user\nwhen?: str|int - str: a day; e.g. "today"; deprecated'
    )


def test_described_alternatives_are_written_out_one_after_the_other() -> None:
    schema = {
        "properties": {
            "source": {
                "oneOf": [
                    {
                        "type": "object",
                        "description": "on the web",
                        "properties": {"url": {"type": "string", "description": "address"}},
                    },
                    {"type": "object", "properties": {"path": {"type": "string"}}},
                ]
            }
        }
    }
    text = describe_parameters(schema).text
    assert "  either: on the web\n    url?: str - address\n  or\n    path?: str" in text


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ({"anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}]}, "At least one of: a; b + c"),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, "Exactly one of: a; b"),
        ({"not": {"required": ["a", "b"]}}, "Not together: a, b"),
        ({"dependentRequired": {"a": ["b"]}}, "a needs b"),
        ({"minProperties": 1}, "At least 1 parameters"),
    ],
)
def test_conditions_between_parameters_become_a_sentence(rules: Any, sentence: str) -> None:
    made = describe_parameters(
        {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, **rules}
    )
    assert made.text.splitlines()[-1] == sentence
    assert made.complete


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#"}}},
        {"properties": {"a": {}}, "if": {"required": ["a"]}, "then": {"required": ["b"]}},
        {"properties": {"a": {"type": "object", "minProperties": 1}}},
        {"properties": {"a": {"$ref": "#/nowhere"}}},
        {"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
    ],
)
def test_a_description_that_leaves_something_out_is_not_complete(schema: Any) -> None:
    assert not describe_parameters(schema).complete


def test_output_fields_go_through_objects_lists_maps_and_alternatives() -> None:
    schema = {
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "items": {
                    "properties": {
                        "user": {"anyOf": [{"properties": {"name": {}}}, {"type": "null"}]},
                        "tags": {"type": "array", "items": {"type": "string"}},
                    }
                },
            },
            "by_id": {"additionalProperties": {"properties": {"size": {}}}},
            "odd.name": {"type": "string"},
        },
    }
    assert list(list_output_fields(schema)) == [
        "items",
        "items[].user",
        "items[].user.name",
        "items[].tags",
        "by_id",
        "by_id.*.size",
        '"odd.name"',
    ]
    assert format_field_outline(schema) == 'items[]{user{name}, tags[]}, by_id{*{size}}, "odd.name"'


def test_output_fields_of_a_list_begin_with_the_list() -> None:
    schema = {"type": "array", "items": {"properties": {"id": {}}}}
    assert list(list_output_fields(schema)) == ["[].id"]
    assert format_field_outline(schema) == "[]{id}"


def test_output_fields_end_where_a_schema_returns_to_itself() -> None:
    node = {"properties": {"id": {}, "children": {"items": {"$ref": "#/$defs/Node"}}}}
    schema = {"$ref": "#/$defs/Node", "$defs": {"Node": node}}
    assert list(list_output_fields(schema)) == ["id", "children"]
    assert format_field_outline(schema) == "id, children[]{…}"


def test_output_fields_are_bounded_and_the_outline_says_so() -> None:
    schema = {"properties": {f"f{n}": {} for n in range(50)}}
    assert len(list(list_output_fields(schema, most=10))) == 10
    assert format_field_outline(schema, most=2) == "f0, f1, …"


def test_the_root_is_found_behind_references_and_all_of() -> None:
    schema = {
        "allOf": [{"$ref": "#/$defs/A"}],
        "$defs": {"A": {"type": "object", "properties": {"a": {}}}},
    }
    assert unwrap_root(schema)["type"] == "object"
    assert unwrap_root(schema)["properties"] == {"a": {}}


def test_references_are_read_from_the_document_that_they_stand_in() -> None:
    inner = {
        "$id": "https://example.test/inner",
        "$defs": {"A": {"type": "integer"}},
        "properties": {"x": {"$ref": "#/$defs/A"}},
    }
    schema = {"properties": {"inner": inner}, "$defs": {"A": {"type": "string"}}}
    assert format_signature("f", schema) == "f(inner?: {x?: int})"


def test_a_property_named_like_a_keyword_is_a_property() -> None:
    schema = {"properties": {"$ref": {"type": "string"}, "properties": {"type": "integer"}}}
    assert format_signature("f", schema) == "f($ref?: str, properties?: int)"


def _doubling(times: int) -> dict[str, Any]:
    twice = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(times)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**twice, f"d{times}": {"properties": {"a": {}}}}}


def _nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def _containing_itself() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema, "b": schema}
    return schema


@pytest.mark.parametrize(
    "schema",
    [_doubling(60), _nested(100_000), _containing_itself()],
    ids=["doubling", "deep", "loop"],
)
def test_a_schema_that_unfolds_without_end_is_read_in_few_steps_and_marked(schema: Any) -> None:
    # Reading it whole would take longer than anybody lives.
    assert "…" in format_signature("f", schema)
    assert not describe_parameters(schema).complete
    assert len(list(list_output_fields(schema))) <= 1_000
    assert isinstance(list_parameters(schema), dict)
