"""Laws of the schema readers, over generated schemas and objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import jsonschema_rs
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from pegboard.core.json import compact
from pegboard.core.schemas import (
    describe_parameters,
    format_field_outline,
    format_signature,
    list_output_fields,
    list_parameters,
    relax_output_schema,
    repair_schema,
    unwrap_root,
)

laws = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)

NAMES = ("a", "b", "c")
DIALECTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema#",
)
REFERENCES = (
    *("#", "#/$defs/A", "#/$defs/B", "#/properties/a", "#/anyOf/0", "#/allOf/0"),
    *("#/then", "http://x.test/doc", "http://x.test/doc#/$defs/A", "inner", "inner#/$defs/A"),
)

names = st.sampled_from(NAMES)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "x", "yy"]))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(names, inner, max_size=3)),
    max_leaves=6,
)
objects = st.dictionaries(names, values, max_size=3)
types = st.sampled_from(["string", "integer", "boolean", "array", "object", "null"])


def _given(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A dictionary with any choice of these keywords."""
    return st.fixed_dictionaries({}, optional=keywords)


def _composite(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        _given(
            type=types | st.lists(types, min_size=1, max_size=2, unique=True),
            properties=st.dictionaries(names, inner, max_size=3),
            required=st.lists(names, max_size=2, unique=True),
            additionalProperties=inner,
            minProperties=st.integers(0, 2),
        ),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        _given(allOf=several, anyOf=several, oneOf=several),
        st.fixed_dictionaries({"not": inner}),
        _given(**{"if": inner, "then": inner, "else": inner}),
        st.fixed_dictionaries(
            {
                "$defs": st.fixed_dictionaries({"A": inner}),
                "properties": st.fixed_dictionaries({"b": inner}),
            }
        ),
        st.fixed_dictionaries(
            {
                "$id": st.just("inner"),
                "$defs": st.fixed_dictionaries({"A": inner}),
                "anyOf": several,
            }
        ),
    )


subschemas: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.booleans(),
        st.just({}),
        st.fixed_dictionaries({"type": types}),
        st.fixed_dictionaries({"const": values}),
        st.fixed_dictionaries({"enum": st.lists(values, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"type": st.just("integer"), "minimum": st.integers(-2, 2)}),
        st.fixed_dictionaries({"$ref": st.sampled_from(REFERENCES)}),
    ),
    _composite,
    max_leaves=6,
)
several = st.lists(subschemas, min_size=1, max_size=3)
roots: st.SearchStrategy[Any] = (
    st.fixed_dictionaries(
        {"$defs": st.fixed_dictionaries({"A": subschemas, "B": subschemas})},
        optional={
            "$schema": st.sampled_from(DIALECTS),
            "$id": st.just("http://x.test/doc"),
            "$ref": st.sampled_from(REFERENCES),
            "type": st.sampled_from(["object", ["object", "null"]]),
            "properties": st.dictionaries(names, subschemas, max_size=3),
            "required": st.lists(names, max_size=2, unique=True),
            "additionalProperties": subschemas,
            "unevaluatedProperties": st.just(False),
            "allOf": several,
            "anyOf": several,
            "oneOf": several,
            "not": subschemas,
            "if": subschemas,
            "then": subschemas,
            "else": subschemas,
        },
    )
    | st.booleans()
)


def compiled(schema: Any) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(schema, offline=True, validate_formats=False)


def compiled_or_skipped(schema: Any) -> jsonschema_rs.Validator:
    try:
        return compiled(schema)
    except ValueError:
        assume(False)
        raise


def _every_node(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from _every_node(value)
    if isinstance(schema, list):
        for value in schema:
            yield from _every_node(value)


@laws
@given(roots, st.lists(objects, min_size=5, max_size=15))
@example({"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"}, [{}, {"a": 1}])
@example({"type": ["object", "null"], "properties": {"a": {"$ref": "#"}}}, [{"a": None}, {"a": 1}])
@example({"allOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"required": ["a"]}}}, [{}, {"a": 1}])
def test_a_repaired_schema_accepts_exactly_the_same_objects(
    schema: Any, instances: list[dict[str, Any]]
) -> None:
    before = compiled_or_skipped(schema)
    made, exact = repair_schema(schema)
    assume(exact)
    after = compiled(made)
    for instance in instances:
        assert after.is_valid(instance) == before.is_valid(instance)


@laws
@given(roots, st.lists(objects, min_size=5, max_size=15))
def test_a_repair_that_is_not_exact_only_ever_accepts_more(
    schema: Any, instances: list[dict[str, Any]]
) -> None:
    if isinstance(schema, dict):  # without `if`, most repairs cannot be exact
        schema = {**schema, "$schema": "http://json-schema.org/draft-06/schema#"}
    # Which of two documents with one name is meant, nobody can say.
    assume("inner" not in compact(schema))
    before = compiled_or_skipped(schema)
    after = compiled(repair_schema(schema).schema)
    for instance in instances:
        assert after.is_valid(instance) or not before.is_valid(instance)


@laws
@given(roots)
def test_a_repaired_schema_has_nothing_that_providers_refuse(schema: Any) -> None:
    made = repair_schema(schema).schema
    assert made["type"] == "object"
    assert not made.keys() & {"$ref", "anyOf", "oneOf", "allOf", "not", "enum", "const"}
    assert all(isinstance(one, dict) for one in made.get("properties", {}).values())
    below = [node for node in _every_node(made) if node is not made]
    assert not any("$id" in node or "$defs" in node for node in below)


@laws
@given(roots)
@example({"$ref": "#/$defs/B", "$defs": {"B": {"properties": {"b": False}}}})
def test_repairing_twice_changes_nothing_more(schema: Any) -> None:
    made = repair_schema(schema).schema
    assert repair_schema(made).schema is made


@laws
@given(roots, objects, st.randoms(use_true_random=False))
@example(
    {"type": "object", "required": ["a"], "properties": {"a": {"minItems": 1}}},
    {"a": [1]},
    Random(1),
)
def test_any_projection_of_a_valid_result_fits_the_relaxed_schema(
    schema: Any, result: Any, random: Random
) -> None:
    assume(isinstance(schema, dict))
    before = compiled_or_skipped(schema)
    assume(before.is_valid(result))
    after = compiled(relax_output_schema(schema))
    assert after.is_valid(result)
    for _ in range(5):
        assert after.is_valid(_projected(result, random))


def _projected(value: Any, random: Random) -> Any:
    """A part of a value: some members and some items are gone, the rest is as it was."""
    if isinstance(value, dict):
        return {k: _projected(v, random) for k, v in value.items() if random.random() < 0.6}
    if isinstance(value, list):
        return [_projected(v, random) for v in value if random.random() < 0.8]
    return value


def _signature(schema: Any) -> str:
    return format_signature("f", schema)


def _paths(schema: Any) -> list[str]:
    return list(list_output_fields(schema))


READERS: tuple[Callable[[Any], object], ...] = (
    *(_signature, _paths, list_parameters, describe_parameters, format_field_outline),
    *(repair_schema, relax_output_schema, unwrap_root),
)

anything = st.recursive(
    st.one_of(scalars, st.floats(), st.text(max_size=3), st.sampled_from(REFERENCES)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    *("type", "properties", "required", "items", "anyOf", "oneOf", "allOf", "$ref"),
                    *("$defs", "$id", "$anchor", "enum", "const", "default", "minimum", "pattern"),
                    *("additionalProperties", "patternProperties", "not", "if", "then", "format"),
                    *("description", "dependencies", "prefixItems", "$schema", "examples", "a"),
                ]
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=12,
)


@laws
@given(anything)
@example({"properties": [], "required": True})
@example({"properties": {"a": {"type": ["string", 5], "enum": {}, "minimum": "x"}}})
@example({"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}})
@example({"properties": {"a": {"maximum": float("nan"), "exclusiveMinimum": True}}})
@example({"$id": "http://[", "$ref": "http://[#x"})
def test_no_reader_ever_raises_or_changes_what_it_reads(schema: Any) -> None:
    before = repr(schema)
    for read in READERS:
        read(schema)
        assert repr(schema) == before
