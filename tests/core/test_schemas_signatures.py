"""Signatures: what they say, what they mark, and how little they cost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema_rs import validator_for

from pegboard.core.schemas import format_signature

OBJECT = {"type": "object"}


def of(schema: Any, **root: Any) -> str:
    """How a single required parameter of this schema is spelled."""
    made = {"type": "object", "properties": {"x": schema}, "required": ["x"], **root}
    return format_signature("f", made).removeprefix("f(x: ").removesuffix(")")


def test_a_signature_names_parameters_types_defaults_and_what_is_optional() -> None:
    schema = {
        "type": "object",
        "properties": {
            "priority": {"enum": ["low", "medium", "high"], "default": "medium"},
            "project": {"type": "string"},
            "title": {"type": "string", "description": "never shown"},
        },
        "required": ["project", "title"],
    }
    assert format_signature("create_issue", schema) == (
        'create_issue(project: str, title: str, priority?: "low"|"medium"|"high" = "medium")'
    )


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "str"),
        ({"type": "integer"}, "int"),
        ({"type": "number"}, "number"),
        ({"type": "boolean"}, "bool"),
        ({"type": "null"}, "null"),
        ({}, "any"),
        (True, "any"),
        ({"type": "str"}, "str"),
        ({"type": "dict"}, "object"),
        ({"const": "a"}, '"a"'),
        ({"enum": [1, None, "b"]}, '1|"b"|null'),
        ({"enum": [True, False]}, "bool"),
        ({"type": ["string", "null"]}, "str|null"),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, "int|null"),
        ({"type": "array", "items": {"type": "string"}}, "str[]"),
        ({"type": "array"}, "any[]"),
        ({"type": "array", "items": {"type": ["string", "integer"]}}, "(str|int)[]"),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 9},
            "str[] 1..9",
        ),
        ({"type": "array", "uniqueItems": True, "items": {"type": "string"}}, "str[] unique"),
        ({"prefixItems": [{"type": "number"}, {"type": "string"}]}, "[number, str]"),
        ({"type": "array", "items": [{"type": "number"}]}, "[number]"),
        ({"type": "object"}, "object"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "{[key]: int}"),
        ({"patternProperties": {"^x-": {"type": "string"}}}, "{[/^x-/]: str}"),
        ({"type": "integer", "minimum": 1, "maximum": 100}, "int 1..100"),
        ({"type": "integer", "exclusiveMinimum": 0}, "int 1.."),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, "number >0..1"),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, "number >0.."),
        ({"type": "integer", "minimum": -(2**53), "maximum": 2**53}, "int"),
        ({"type": "integer", "multipleOf": 5}, "int step 5"),
        ({"type": "string", "format": "date-time"}, "str date-time"),
        ({"type": "string", "format": "uuid", "pattern": "^[0-9a-f-]{36}$"}, "str uuid"),
        ({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}, "str date"),
        ({"type": "string", "pattern": "^0x"}, "str /^0x/"),
        ({"type": "string", "minLength": 1}, "str"),
        ({"type": "string", "minLength": 3, "maxLength": 64}, "str 3..64"),
    ],
)
def test_every_kind_of_schema_has_a_short_notation(schema: Any, text: str) -> None:
    assert of(schema) == text


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string", "pattern": "x" * 200}, "str…"),
        ({"type": "string", "not": {"const": "a"}}, "str…"),
        ({"type": "array", "contains": {"const": 1}}, "any[]…"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "int|number…"),
        ({"$ref": "#/$defs/nowhere"}, "any…"),
        ({"$ref": "http://elsewhere.test/schema.json"}, "any…"),
    ],
)
def test_what_the_notation_cannot_express_is_marked(schema: Any, text: str) -> None:
    assert of(schema) == text


def test_alternatives_that_a_required_constant_tells_apart_need_no_mark() -> None:
    kinds = [
        {"properties": {"kind": {"const": kind}, kind: {"type": "string"}}, "required": ["kind"]}
        for kind in ("url", "path")
    ]
    assert of({"oneOf": kinds}) == '{kind: "url", url?: str}|{kind: "path", path?: str}'


def test_nested_objects_are_written_out() -> None:
    user = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "tags": {"items": {"type": "string"}}},
        "required": ["id"],
    }
    assert of({"type": "array", "items": user}) == "{id: str, tags?: str[]}[]"


def test_references_are_followed_with_the_keywords_beside_them() -> None:
    level = {"enum": ["low", "high"], "description": "how much"}
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/Level", "default": "low"}},
        "$defs": {"Level": level},
    }
    assert format_signature("f", schema) == 'f(x?: "low"|"high" = "low")'


def test_recursion_ends_with_a_mark() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    assert of({"$ref": "#/$defs/Node"}, **{"$defs": {"Node": node}}) == "{next?: …}"


def test_all_parts_of_all_of_are_merged() -> None:
    parts = [{"properties": {"a": {"type": "string"}}}, {"required": ["a"]}]
    assert of({"type": "object", "allOf": parts}) == "{a: str}"


def test_null_as_default_of_an_optional_parameter_is_left_out() -> None:
    schema = {
        "properties": {"x": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}}
    }
    assert format_signature("f", schema) == "f(x?: str)"


def test_a_parameter_that_may_never_be_given_is_left_out() -> None:
    assert format_signature("f", {"properties": {"a": {"not": {}}, "b": {}}}) == "f(b?: any)"


def test_branches_at_the_root_contribute_their_parameters_and_a_mark() -> None:
    schema = {
        "type": "object",
        "anyOf": [
            {"properties": {"id": {"type": "integer"}}, "required": ["id"]},
            {"properties": {"name": {"type": "string"}}, "required": ["name"]},
        ],
    }
    assert format_signature("f", schema) == "f(id?: int, name?: str, …)"


def test_a_condition_between_parameters_is_marked() -> None:
    schema = {"properties": {"a": {}, "b": {}}, "not": {"required": ["a", "b"]}}
    assert format_signature("f", schema) == "f(a?: any, b?: any, …)"


def test_other_parameters_are_mentioned_where_the_schema_allows_them_in_words() -> None:
    schema = {"properties": {"a": {}}, "additionalProperties": {"type": "string"}}
    assert format_signature("f", schema) == "f(a?: any, [key]: str)"
    assert format_signature("f", {"properties": {"a": {}}}) == "f(a?: any)"


def test_a_long_enum_is_cut_and_counted() -> None:
    text = of({"enum": [f"value-{n}" for n in range(30)]})
    assert text.startswith('"value-0"|"value-1"|')
    assert text.endswith("|…14 more")


def test_the_mark_inside_a_name_or_value_is_escaped() -> None:
    assert "…" not in format_signature("f", {"properties": {"a…b": {"const": "more…"}}})


def test_a_name_that_could_be_misread_is_quoted() -> None:
    assert format_signature("f", {"properties": {"a, b: str": {}}}) == 'f("a, b: str"?: any)'


def test_a_long_signature_says_less_of_its_longest_parameters_first() -> None:
    deep = {"type": "object", "properties": {f"field_{n}": {"enum": ["a", "b"]} for n in range(40)}}
    schema = {"properties": {"short": {"enum": ["x", "y", "z"]}, "long": deep}}
    assert format_signature("f", schema) == 'f(short?: "x"|"y"|"z", long?: {…})'


def test_a_signature_that_is_still_too_long_counts_the_optional_parameters_it_leaves_out() -> None:
    names = [f"parameter_{n}" for n in range(100)]
    schema = {"properties": {n: {"type": "string"} for n in names}, "required": [names[99]]}
    text = format_signature("f", schema)
    assert text.startswith("f(parameter_99: str, parameter_0?: str, ")
    assert text.endswith("more)")
    assert len(text) <= 400
    shown = text.count(": str")
    assert f"…{100 - shown} more" in text


def test_required_parameters_are_named_however_many_there_are() -> None:
    names = [f"parameter_{n}" for n in range(100)]
    text = format_signature("f", {"properties": {name: {} for name in names}, "required": names})
    assert all(f"{name}: any" in text for name in names)


letters: st.SearchStrategy[str] = st.sampled_from("ab")
limits = st.integers(0, 4)
scalars = st.sampled_from([None, True, 0, 1, 2, 3, 4, 5, -1, 1.5, "", "a", "ab", "abc", "abcd"])


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={
                "minItems": st.integers(1, 2),
                "maxItems": limits,
                "uniqueItems": st.just(True),
                "contains": inner,
            },
        ),
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(letters, inner),
            },
            optional={"required": st.lists(letters, min_size=1, unique=True)},
        ),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)}),
    )


parts: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.one_of(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["integer", "number"])},
            optional={
                "minimum": limits,
                "maximum": limits,
                "exclusiveMinimum": limits,
                "exclusiveMaximum": limits,
                "multipleOf": st.sampled_from([2, 3]),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.just("string")},
            optional={
                "minLength": st.integers(2, 3),
                "maxLength": limits,
                "pattern": st.sampled_from(["^a", "b$"]),
                "not": st.just({"const": "ab"}),
            },
        ),
        st.fixed_dictionaries({"enum": st.lists(scalars, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"const": scalars}),
    ),
    _larger,
    max_leaves=4,
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(letters, inner),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(parts, st.data(), st.lists(values, min_size=8, max_size=20))
def test_two_schemas_that_accept_different_values_differ_in_notation_or_are_marked(
    schema: dict[str, Any], data: st.DataObject, instances: list[Any]
) -> None:
    dropped = data.draw(st.sampled_from(sorted(schema)))
    # A type that is not written is guessed from the rest, as any reader would.
    assume(dropped not in ("type", "items", "properties"))
    other = {keyword: value for keyword, value in schema.items() if keyword != dropped}
    before, after = validator_for(schema), validator_for(other)
    assume(any(before.is_valid(one) != after.is_valid(one) for one in instances))
    assert "…" in of(schema) or of(schema) != of(other)
