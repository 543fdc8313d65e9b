"""Laws of checking and of forgiving reading, over generated schemas and arguments."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pegboard.core.validation import Validator, coerce_arguments
from pegboard.errors import InvalidArguments

laws = settings(max_examples=100, deadline=None)

NAMES = ("a", "b", "c", "name", "arguments")
names = st.sampled_from(NAMES)
leaves: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.sampled_from(["", "x", "5", "true", "[1]"])
)
values = st.recursive(
    leaves, lambda i: st.lists(i, max_size=3) | st.dictionaries(names, i, max_size=3), max_leaves=6
)
arguments = st.dictionaries(names, values, max_size=4)
kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
subschemas: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.just({}),
        st.fixed_dictionaries(
            {"type": kinds | st.lists(kinds, min_size=1, max_size=2, unique=True)}
        ),
        st.fixed_dictionaries({"enum": st.lists(values, min_size=1, max_size=3)}),
        st.just({"$ref": "#"}),
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"properties": st.dictionaries(names, inner, max_size=3)}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=3)}),
    ),
    max_leaves=4,
)
schemas: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"properties": st.dictionaries(names, subschemas, min_size=1, max_size=4)},
    optional={
        "type": st.just("object"),
        "required": st.lists(names, max_size=2, unique=True),
        "additionalProperties": st.booleans(),
        "anyOf": st.lists(subschemas, min_size=1, max_size=2),
    },
)


def refusal(validator: Validator, given_: dict[str, Any]) -> InvalidArguments | None:
    try:
        assert validator.check(given_, "f") is given_
    except InvalidArguments as error:
        return error
    return None


@laws
@given(schemas, arguments)
def test_what_is_accepted_fits_the_schema_and_what_fits_is_accepted_unless_unknown(
    schema: Any, given_: dict[str, Any]
) -> None:
    validator = Validator(schema)
    fits = validator.problem is not None or jsonschema_rs.is_valid(schema, given_)
    if validator.accepts(given_):
        assert fits
    elif fits:
        assert given_.keys() - validator.parameters


@laws
@given(schemas, arguments)
def test_arguments_are_refused_exactly_when_there_is_a_problem(
    schema: Any, given_: dict[str, Any]
) -> None:
    validator = Validator(schema)
    error = refusal(validator, given_)
    assert (error is None) == validator.accepts(given_)
    if error is not None:
        assert error.message.startswith("f: ")
        assert error.details["signature"].startswith("f(")


@laws
@given(schemas, arguments)
def test_arguments_that_fit_are_understood_as_they_are(schema: Any, given_: dict[str, Any]) -> None:
    validator = Validator(schema)
    if validator.accepts(given_):
        assert coerce_arguments("f", given_, validator) is given_
        assert coerce_arguments("f", json.dumps(given_), validator) == given_


@laws
@given(schemas, arguments)
@example({"properties": {"b": {"type": "array"}}}, {"arguments": None, "b": None})
def test_understanding_never_makes_things_worse(schema: Any, given_: dict[str, Any]) -> None:
    validator = Validator(schema)
    before = json.dumps(given_)
    made = coerce_arguments("f", given_, validator)
    assert json.dumps(given_) == before
    # Reading it again finds nothing more: it is as understood as it will ever be.
    assert coerce_arguments("f", made, validator) == made


plain = st.fixed_dictionaries(
    {},
    optional={
        "integer": st.integers(-(10**12), 10**12),
        "number": st.floats(allow_nan=False, allow_infinity=False, width=32),
        "boolean": st.booleans(),
        "array": st.lists(st.integers() | st.text(), max_size=4),
        "object": st.dictionaries(st.text(), st.booleans(), max_size=3),
    },
)
PLAIN = {
    "type": "object",
    "properties": {
        kind: {"type": kind} for kind in ("integer", "number", "boolean", "array", "object")
    },
}


@laws
@given(plain)
def test_values_sent_as_strings_are_coerced_to_what_they_contain(meant: dict[str, Any]) -> None:
    sent = {name: json.dumps(value) for name, value in meant.items()}
    assert coerce_arguments("f", sent, PLAIN) == meant


hostile = st.recursive(
    st.one_of(leaves, st.sampled_from(["#", "#/properties/a", "http://x.test/y", "object"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["type", "properties", "required", "items", "anyOf", "$ref", "enum", "a", "pattern"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=10,
)


@laws
@given(hostile, hostile)
def test_nothing_but_a_refusal_ever_comes_out(schema: Any, given_: Any) -> None:
    validator = Validator(schema)
    try:
        read = coerce_arguments("f", given_, validator)
    except InvalidArguments:
        return
    error = refusal(validator, read)
    assert error is None or error.details["tool"] == "f"
