"""How a result is asked for, in whatever form a model says it."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.core.calls import ResultShape
from pegboard.core.results.shapes import extract_fields, parse_shape
from pegboard.core.tools import Tool, constant_definition
from pegboard.errors import InvalidArguments, InvalidField, PegboardError

PLAIN = Tool(
    "get", constant_definition({"type": "object", "properties": {"id": {"type": "integer"}}})
)
OWN = Tool("own", constant_definition({"type": "object", "properties": {"include_fields": {}}}))


@pytest.mark.parametrize("given", [["id", "a.b"], "id, a.b", '["id","a.b"]'])
def test_fields_come_as_a_list_or_as_a_text_that_spells_one(given: Any) -> None:
    assert parse_shape({"include_fields": given}).include_fields == ("id", "a.b")


@pytest.mark.parametrize("given", [None, [], ""])
def test_no_fields_mean_the_whole_result(given: Any) -> None:
    assert parse_shape({"include_fields": given, "select": ""}) == ResultShape()


def test_a_whole_shape_is_read() -> None:
    asked = {"select": "a", "raw": True, "max_tokens": "200"}
    assert parse_shape(asked) == ResultShape(select="a", raw=True, max_tokens=200)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"include_fields": 5}, InvalidField),
        ({"include_fields": [5]}, InvalidField),
        ({"select": 5}, InvalidArguments),
        ({"max_tokens": "many"}, InvalidArguments),
        ({"max_tokens": -1}, InvalidArguments),
        ({"max_tokens": True}, InvalidArguments),
    ],
)
def test_what_cannot_be_meant_is_an_error_that_names_the_parameter(
    asked: dict[str, Any], error: type[PegboardError]
) -> None:
    with pytest.raises(error) as caught:
        parse_shape(asked)
    assert caught.value.details["field"] in (*asked, "5", "[5]")


@pytest.mark.parametrize(
    "arguments", [{"id": 1, "include_fields": ["a"]}, '{"id": 1, "include_fields": "a"}']
)
def test_fields_among_the_arguments_are_taken_off(arguments: Any) -> None:
    assert extract_fields(PLAIN, arguments, ResultShape()) == (
        {"id": 1},
        ResultShape(include_fields=("a",)),
    )


def test_a_tool_with_a_parameter_of_that_name_keeps_it() -> None:
    arguments = {"include_fields": ["a"]}
    assert extract_fields(OWN, arguments, ResultShape()) == (arguments, ResultShape())


def test_fields_beside_the_arguments_win_over_those_among_them() -> None:
    asked = ResultShape(include_fields=("b",))
    assert extract_fields(PLAIN, {"include_fields": ["a"]}, asked) == ({}, asked)


@pytest.mark.parametrize("arguments", [{"id": 1}, "no JSON: include_fields", '["include_fields"]'])
def test_arguments_without_fields_are_left_as_they_are(arguments: Any) -> None:
    assert extract_fields(PLAIN, arguments, ResultShape())[0] is arguments
