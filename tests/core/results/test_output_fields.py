"""E2: fields that a known output schema cannot have are refused before the call."""

from typing import Any

import pytest

from pegboard.core.results.projection import validate_fields
from pegboard.core.schemas import list_output_fields
from pegboard.errors import InvalidField

ISSUE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "title": {"type": "string"},
        "user": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/User"}]},
        "labels": {"type": "array", "items": {"type": "object", "properties": {"name": {}}}},
        "parent": {"$ref": "#"},
        "extra": {"type": "object"},
        "by_day": {"type": "object", "additionalProperties": {"$ref": "#/$defs/User"}},
    },
    "$defs": {"User": {"type": "object", "properties": {"login": {"type": "string"}}}},
}


def accepted(schema: Any, *fields: str, root: str | None = None) -> bool:
    try:
        validate_fields(fields, schema, root)
    except InvalidField:
        return False
    return True


def refused(schema: Any, *fields: str, root: str | None = None) -> InvalidField:
    with pytest.raises(InvalidField) as caught:
        validate_fields(fields, schema, root)
    return caught.value


@pytest.mark.parametrize(
    "field",
    [
        "id",
        "user.login",
        "labels[]",
        "labels[].name",
        "labels.name",
        "parent.parent.parent.user.login",
        "extra.whatever.deep",
        "by_day.2026-01-01.login",
        "by_day.*.login",
        "*.login",
        "*",
        "labels[].name.deeper",
    ],
)
def test_what_the_schema_can_have_is_accepted(field: str):
    assert accepted(ISSUE, field)


@pytest.mark.parametrize(
    "field",
    ["nme", "user.name", "id.x", "labels.colour", "by_day.monday.x", "user.*.x"],
)
def test_what_it_cannot_have_is_refused_by_name_with_the_available_fields(field: str):
    error = refused(ISSUE, "id", field)
    assert error.message.startswith(f"Invalid field: {field}.")
    assert "title" in error.message
    assert error.details["field"] == field
    assert "title" in error.details["expected"]


def test_every_field_that_a_schema_lists_is_accepted():
    odd = {"a.b": {}, "*": {}, "x\ny": {}, 'say "hi"': {}, "": {}, "[]": {}, "größe": {}}
    schema = {**ISSUE, "properties": {**ISSUE["properties"], "odd": {"properties": odd}}}
    listed = list(list_output_fields(schema))
    assert len(listed) > 15
    assert [field for field in listed if not accepted(schema, field)] == []


def test_the_nearest_field_is_suggested():
    assert refused(ISSUE, "titel").details["nearest"][0] == "title"


def test_all_wrong_fields_are_named():
    assert "Invalid field: one, two." in refused(ISSUE, "one", "id", "two").message


def test_fields_inside_a_described_envelope_are_accepted():
    wrapped = {"type": "object", "properties": {"result": {"type": "array", "items": ISSUE}}}
    assert accepted(wrapped, "title")
    assert accepted(wrapped, "result.title")
    paged = {
        "type": "object",
        "properties": {"items": {"type": "array", "items": ISSUE}, "total": {"type": "integer"}},
    }
    assert accepted(paged, "title")
    assert refused(paged, "titel").details["field"] == "titel"
    assert not accepted(paged, "items.id", "title")


def test_fields_inside_a_declared_root_are_accepted():
    schema = {
        "type": "object",
        "properties": {
            "data": {"type": "object", "properties": {"rows": {"type": "array", "items": ISSUE}}},
            "log": {"type": "array"},
        },
    }
    assert not accepted(schema, "title")
    assert accepted(schema, "title", root="data.rows")
    assert not accepted(schema, "nope", root="data.rows")


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {"type": "object"},
        {"type": "object", "properties": {"a": {}}, "additionalProperties": True},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "#/$defs/missing"},
        {"type": "array"},
        {"patternProperties": {"(a+)+$": {}}},
        {"prefixItems": [True]},
        {"properties": 7},
        {"type": ["object", "null"]},
        {"allOf": [{"$ref": "#/$defs/A"}, {"required": ["x"]}], "$defs": {"A": {}}},
    ],
)
def test_a_schema_that_leaves_fields_open_refuses_none(schema: dict[str, Any] | None):
    assert accepted(schema, "x.y[].z")


def test_properties_of_every_branch_count():
    schema = {
        "oneOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}],
        "allOf": [{"properties": {"c": {}}}, {"required": ["c"]}],
        "if": {},
        "then": {"properties": {"d": {}}},
        "else": {"properties": {"e": {}}},
    }
    assert accepted(schema, "a", "b", "c", "d", "e")
    assert not accepted(schema, "f")


@pytest.mark.parametrize("reference", ["#/$defs/a%20note", "#/properties/other/anyOf/0"])
def test_references_are_followed_as_in_the_list_of_fields(reference: str):
    note = {"type": "object", "properties": {"title": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {"note": {"$ref": reference}, "other": {"anyOf": [note]}},
        "$defs": {"a note": note},
    }
    validate_fields(["note.title"], schema)
    with pytest.raises(InvalidField, match=r"Available: .*note\.title"):
        validate_fields(["note.text"], schema)


def test_references_in_a_circle_end():
    schema = {
        "$ref": "#/$defs/A",
        "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
    }
    assert not accepted(schema, "x")


@pytest.mark.parametrize("schema", [None, ISSUE])
@pytest.mark.parametrize("field", ["a..b", "", "labels[0].name"])
def test_a_malformed_path_is_refused_with_or_without_a_schema(
    field: str, schema: dict[str, Any] | None
):
    error = refused(schema, field)
    assert error.message.startswith("Invalid field: ")
    assert ("Available" in error.message) == (schema is not None)


def test_a_number_in_a_list_is_answered_with_how_to_write_it():
    assert "labels[].name" in refused(ISSUE, "labels[0].name").message


NAMES = ["id", "user.name", "items[].tag"]


@pytest.mark.parametrize("field", ["id", "user", "user.name", "items.tag", "items[].tag", "*.name"])
def test_a_list_of_names_allows_those_and_what_leads_to_them(field: str):
    assert accepted(NAMES, field)


@pytest.mark.parametrize("field", ["zzz", "user.zzz", "id.deeper", "i"])
def test_a_list_of_names_rejects_every_other(field: str):
    error = refused(NAMES, "id", field)
    assert error.message.startswith(f"Invalid field: {field}.")
    assert "Available: id, user.name, items[].tag." in error.message


def test_fields_in_one_text_are_each_checked():
    validate_fields("id,name", ("id", "name"))
    with pytest.raises(InvalidField, match=r"Invalid field: zzz\."):
        validate_fields("id,zzz", {"id", "name"})


def test_nothing_is_available_in_an_empty_list():
    assert "Invalid field: id." in refused([], "id").message


@pytest.mark.parametrize("available", ["id", 7, object()])
def test_what_is_neither_schema_nor_names_is_a_mistake(available: Any):
    with pytest.raises(TypeError, match="a list of field names"):
        validate_fields(["id"], available)
