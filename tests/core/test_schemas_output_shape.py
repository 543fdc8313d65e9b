"""The shape of a result on one line: what it names, and that it is bounded whatever comes."""

from __future__ import annotations

import pytest

from pegboard.core.json import Json
from pegboard.core.schemas import format_result_shape
from pegboard.core.schemas.output_shape import SHAPE_LIMIT


def _object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


TEXT: Json = {"type": "string"}
ISSUE = _object(key=TEXT, title=TEXT, assignee={"anyOf": [TEXT, {"type": "null"}]})


@pytest.mark.parametrize(
    ("schema", "shape"),
    [
        (
            _object(issues=_list(ISSUE), total={"type": "integer"}),
            "{issues[]{key, title, assignee}, total}",
        ),
        (_object(episode=_object(tags=_list(TEXT))), "{episode{tags[]}}"),
        (_list(ISSUE), "[]{key, title, assignee}"),
        (_object(cells=_list(_list(TEXT))), "{cells[][]}"),
        ({"type": "object", "additionalProperties": ISSUE}, "{*{key, title, assignee}}"),
        (_object(**{"two words": TEXT}), '{"two words"}'),
        ({"type": "object"}, ""),
        (_list(TEXT), ""),
        (None, ""),
        (True, ""),
    ],
)
def test_a_shape_names_the_fields_of_a_result(schema: Json, shape: str) -> None:
    assert format_result_shape(schema) == shape


def test_a_long_shape_closes_the_deepest_and_largest_objects_first() -> None:
    small, large = _object(a=TEXT), _object(**{f"field_{n}": TEXT for n in range(20)})
    schema = _object(id=TEXT, small=small, large=large)
    assert format_result_shape(schema, limit=60) == "{id, small{a}, large{…}}"


def test_the_envelope_of_a_wide_result_stays_open() -> None:
    wide = _object(episode=_object(**{f"field_{n}": TEXT for n in range(200)}))
    shape = format_result_shape(wide)
    assert shape.startswith("{episode{field_0, field_1, ")
    assert shape.endswith(", …}}")
    assert SHAPE_LIMIT - 20 < len(shape) <= SHAPE_LIMIT


def test_recursion_and_depth_end_in_a_mark() -> None:
    tree = {
        "$defs": {"Node": _object(name=TEXT, children=_list({"$ref": "#/$defs/Node"}))},
        "$ref": "#/$defs/Node",
    }
    assert format_result_shape(tree) == "{name, children[]{…}}"
    deep: Json = TEXT
    for _ in range(30):
        deep = _object(x=deep)
    assert format_result_shape(deep) == "{x{x{x{x{…}}}}}"


@pytest.mark.parametrize(
    "schema",
    [
        _object(**{f"name_{n}" * 20: TEXT for n in range(1_000)}),
        _object(**{"x" * 100_000: TEXT}),
        _object(**{f"n{n}": _object(**{f"m{m}": TEXT for m in range(40)}) for n in range(40)}),
        {"type": "object", "properties": 7},
        {"$ref": "#"},
    ],
)
def test_a_hostile_schema_gets_a_short_shape(schema: Json) -> None:
    assert len(format_result_shape(schema)) <= SHAPE_LIMIT
