"""Reading what weak models send."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pegboard.core.validation import Validator, coerce_arguments
from pegboard.errors import InvalidArguments

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "limit": {"type": "integer"},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "level": {"enum": [1, 2, 3]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "counts": {"type": "array", "items": {"type": "integer"}},
        "filter": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "q": {"type": "string"}},
            "required": ["n"],
        },
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"type": ["string", "integer"]},
        "one": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
    },
    "required": ["title"],
}
FITTING = {"title": "5", "limit": 5, "either": "7"}


def read(given: Any, **options: Any) -> Any:
    return coerce_arguments("create_issue", given, Validator(SCHEMA), **options)


def test_arguments_that_fit_are_not_touched() -> None:
    assert read(FITTING) is FITTING


@pytest.mark.parametrize(
    "given",
    [
        json.dumps(FITTING),
        json.dumps(json.dumps(FITTING)),
        f"```json\n{json.dumps(FITTING)}\n```",
        {"create_issue": FITTING},
        {"create_issue": json.dumps(FITTING)},
        {"arguments": FITTING},
        {"name": "create_issue", "arguments": FITTING},
        {"tool_name": "tracker.create_issue", "parameters": json.dumps(FITTING)},
        {"type": "function", "name": "create_issue", "args": FITTING},
    ],
)
def test_a_second_wrapping_is_taken_off(given: Any) -> None:
    assert read(given) == FITTING


@pytest.mark.parametrize("given", [None, "", "  ", "null"])
def test_nothing_is_no_arguments(given: Any) -> None:
    assert read(given) == {}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"limit": "5"}, {"limit": 5}),
        ({"limit": " -12 "}, {"limit": -12}),
        ({"limit": "5.0"}, {"limit": 5}),
        ({"ratio": "0.5"}, {"ratio": 0.5}),
        ({"ratio": "3"}, {"ratio": 3}),
        ({"flag": "true"}, {"flag": True}),
        ({"flag": "False"}, {"flag": False}),
        ({"level": "2"}, {"level": 2}),
        ({"tags": '["a", "b"]'}, {"tags": ["a", "b"]}),
        ({"counts": ["1", "2"]}, {"counts": [1, 2]}),
        ({"counts": '["1"]'}, {"counts": [1]}),
        ({"filter": '{"n": "1"}'}, {"filter": {"n": 1}}),
        ({"maybe": "4"}, {"maybe": 4}),
        ({"one": "true"}, {"one": True}),
        ({"one": "1"}, {"one": 1}),
        ({"limit": None}, {}),
        ({"filter": {"n": 1, "q": None}}, {"filter": {"n": 1}}),
    ],
)
def test_a_value_that_can_mean_one_thing_only_is_taken_to_mean_it(given: Any, meant: Any) -> None:
    assert read({"title": "t", **given}) == {"title": "t", **meant}


@pytest.mark.parametrize(
    "given",
    [
        {"limit": "five"},
        {"limit": "5.5"},
        {"limit": "0x5"},
        {"limit": "1_000"},
        {"flag": "yes"},
        {"flag": "1"},
        {"level": "9"},
        {"tags": "a, b"},
        {"tags": '{"a": 1}'},
        {"filter": "[1]"},
        {"filter": {"n": None}},
        {"limit": [5]},
        {"title": None},
        {"title": 5},
    ],
)
def test_a_value_that_could_mean_something_else_stays_as_it_is(given: Any) -> None:
    assert read({"title": "t", **given}) == {"title": "t", **given}


def test_a_text_stays_a_text_where_a_text_will_do() -> None:
    given = {"title": "5", "either": "7", "limit": "1"}
    assert read(given) == {"title": "5", "either": "7", "limit": 1}


def test_what_was_given_is_never_changed_in_place() -> None:
    given = {"title": "t", "filter": {"n": "1"}, "counts": ["2"]}
    read(given)
    assert given == {"title": "t", "filter": {"n": "1"}, "counts": ["2"]}


def test_strings_stay_strings_without_coercion() -> None:
    assert read({"title": "t", "limit": "5", "flag": None}, coerce=False) == {
        "title": "t",
        "limit": "5",
    }


def test_a_parameter_named_like_a_wrapping_is_a_parameter() -> None:
    schema = {"properties": {"name": {"type": "string"}, "arguments": {"type": "object"}}}
    given = {"name": "create_issue", "arguments": {"a": 1}}
    assert coerce_arguments("create_issue", given, schema) is given


def test_a_wrapping_that_names_another_tool_stays() -> None:
    given = {"name": "delete_issue", "arguments": FITTING}
    assert read(given) == given


def test_values_are_read_inside_the_alternative_that_was_meant() -> None:
    schema = {
        "properties": {
            "source": {
                "oneOf": [
                    {"properties": {"kind": {"const": "id"}, "id": {"type": "integer"}}},
                    {"properties": {"kind": {"const": "url"}, "id": {"type": "boolean"}}},
                ]
            }
        }
    }
    made = coerce_arguments("f", {"source": {"kind": "id", "id": "12"}}, schema)
    assert made == {"source": {"kind": "id", "id": 12}}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ('{"title": "t",', "not JSON: Expecting property name"),
        ('{"title": "t" "limit": 5}', "at line 1 column 15, near"),
        ("title=t", "not JSON: Expecting value at line 1 column 1, near 'title=t'"),
        ('{"limit": NaN}', "NaN is not a JSON number"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "must be an object, not a list"),
        ("5", "must be an object, not a number"),
        (5, "must be an object, not a number"),
        ([FITTING], "must be an object, not a list"),
        (True, "must be an object, not a boolean"),
    ],
)
def test_a_string_without_an_object_is_refused_with_the_place(given: Any, said: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        read(given)
    assert caught.value.message.startswith("create_issue: the arguments ")
    assert said in caught.value.message
    assert len(caught.value.message) < 200


def test_a_tool_with_a_wrong_schema_gets_its_arguments_as_they_came() -> None:
    given = {"name": "f", "arguments": {"a": "1"}}
    assert coerce_arguments("f", given, {"properties": {"a": {"type": "int"}}}) is given
    assert coerce_arguments("f", '{"a": "1"}', {"properties": {"a": {"type": "int"}}}) == {"a": "1"}


def test_a_second_layer_is_taken_off_although_other_parameters_may_be_given() -> None:
    schema = Validator({"type": "object", "properties": {"a": {"type": "integer"}}}, closed=False)
    assert coerce_arguments("add", {"name": "add", "arguments": {"a": "1"}}, schema) == {"a": 1}
    assert coerce_arguments("add", {"a": 1, "more": {"a": 2}}, schema) == {"a": 1, "more": {"a": 2}}
