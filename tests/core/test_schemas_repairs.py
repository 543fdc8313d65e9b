"""Repairs by example; that they change nothing is a law of its own."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.core.schemas import relax_output_schema, repair_schema


def test_a_schema_without_faults_is_returned_itself() -> None:
    schema = {"type": "object", "properties": {"a": {"anyOf": [{}, {}]}}, "$defs": {"A": {}}}
    assert repair_schema(schema).schema is schema


def test_branches_at_the_root_move_into_a_condition_that_always_holds() -> None:
    either = {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    schema = {"type": "object", "properties": {"a": {}, "b": {}}}
    assert repair_schema({**schema, **either}) == ({**schema, "if": {}, "then": either}, True)


def test_properties_of_closed_branches_are_shown_at_the_root() -> None:
    branches = [
        {
            "type": "object",
            "properties": {"kind": {"const": kind}, kind: {"type": "string"}},
            "required": ["kind"],
            "additionalProperties": False,
        }
        for kind in ("url", "path")
    ]
    made = repair_schema({"oneOf": branches}).schema
    assert made["properties"] == {
        "kind": {"anyOf": [{"const": "url"}, {"const": "path"}]},
        "url": {"type": "string"},
        "path": {"type": "string"},
    }
    assert made["required"] == ["kind"]
    assert made["then"] == {"oneOf": branches}


def test_plain_parts_of_all_of_become_one_object() -> None:
    schema = {
        "allOf": [
            {"$ref": "#/$defs/Base"},
            {"properties": {"b": {"type": "integer"}}, "required": ["b"]},
        ],
        "$defs": {"Base": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
    made = repair_schema(schema).schema
    assert made["properties"] == {"a": {"type": "string"}, "b": {"type": "integer"}}
    assert made["required"] == ["b"]
    assert not made.keys() & {"allOf", "then"}


def test_a_reference_at_the_root_is_replaced_by_what_it_leads_to() -> None:
    point = {"type": "object", "properties": {"x": {"type": "number"}}}
    schema = {"$ref": "#/$defs/Point", "$defs": {"Point": point}, "description": "where"}
    assert repair_schema(schema).schema == {
        **point,
        "$defs": {"Point": point},
        "description": "where",
    }


def test_definitions_below_the_root_move_to_it_and_are_still_found() -> None:
    inner = {
        "type": "object",
        "properties": {"c": {"$ref": "#/properties/a/$defs/Color"}},
        "$defs": {"Color": {"enum": ["red"]}},
    }
    made = repair_schema(
        {"type": "object", "properties": {"a": inner}, "$defs": {"Color": {"type": "string"}}}
    )
    assert made.exact
    assert made.schema["$defs"] == {"Color": {"type": "string"}, "Color_2": {"enum": ["red"]}}
    assert made.schema["properties"]["a"]["properties"]["c"] == {"$ref": "#/$defs/Color_2"}


def test_a_pasted_schema_finds_the_definitions_that_it_brought_along() -> None:
    pasted = {
        "type": "object",
        "properties": {"c": {"$ref": "#/$defs/Color"}},
        "$defs": {"Color": {"enum": ["red"]}},
    }
    made = repair_schema({"type": "object", "properties": {"a": pasted}})
    assert made.schema["$defs"] == {"Color": {"enum": ["red"]}}
    assert made.schema["properties"]["a"]["properties"]["c"] == {"$ref": "#/$defs/Color"}
    assert not made.exact  # as it stood, the reference led nowhere


def test_identifiers_go_and_references_to_them_become_pointers() -> None:
    schema = {
        "$id": "https://example.test/tool",
        "type": "object",
        "properties": {
            "a": {"$id": "color", "$anchor": "c", "type": "string"},
            "b": {"$ref": "color"},
            "c": {"$ref": "https://example.test/color#c"},
        },
    }
    same = {"$ref": "#/properties/a"}
    assert repair_schema(schema).schema == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": same, "c": same},
    }


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({}, {"type": "object"}),
        (True, {"type": "object"}),
        (False, {"type": "object", "minProperties": 1, "maxProperties": 0}),
        ({"type": ["object", "null"]}, {"type": "object"}),
        (
            {"type": "object", "properties": {"a": True, "b": False}},
            {"type": "object", "properties": {"a": {}, "b": {"not": {}}}},
        ),
    ],
)
def test_a_root_that_is_not_a_plain_object_becomes_one(schema: Any, made: Any) -> None:
    assert repair_schema(schema) == (made, True)


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        (None, {"type": "object"}),
        ({"type": "string"}, {"type": "object"}),
        (
            {"type": "object", "properties": [], "required": True},
            {"type": "object", "properties": {}, "required": []},
        ),
        ({"$ref": "#"}, {"type": "object"}),
    ],
)
def test_a_root_that_is_plainly_wrong_becomes_an_object_and_is_not_called_exact(
    schema: Any, made: Any
) -> None:
    assert repair_schema(schema) == (made, False)


def test_who_refers_to_the_whole_schema_keeps_the_type_that_it_had() -> None:
    schema = {"type": ["object", "null"], "properties": {"next": {"$ref": "#"}}}
    whole = {"type": ["object", "null"], "properties": {"next": {"$ref": "#/$defs/Whole"}}}
    assert repair_schema(schema).schema == {
        "type": "object",
        "properties": whole["properties"],
        "$defs": {"Whole": whole},
    }


def test_a_draft_without_conditions_loses_its_branches_and_says_so() -> None:
    made = repair_schema(
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "object",
            "properties": {"a": {}, "b": {}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        }
    )
    assert not made.exact
    assert not made.schema.keys() & {"anyOf", "if", "then"}


def test_a_relaxed_output_schema_asks_for_nothing_and_keeps_types() -> None:
    schema = {
        "type": "object",
        "required": ["items"],
        "additionalProperties": False,
        "properties": {
            "items": {
                "type": "array",
                "minItems": 1,
                "maxItems": 9,
                "items": {
                    "type": "object",
                    "required": ["id"],
                    "properties": {"id": {"type": "integer"}},
                },
            }
        },
    }
    assert relax_output_schema(schema) == {
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "maxItems": 9,
                "items": {"type": "object", "properties": {"id": {"type": "integer"}}},
            }
        },
    }


def test_an_output_schema_that_asks_for_nothing_is_returned_itself() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert relax_output_schema(schema) is schema
