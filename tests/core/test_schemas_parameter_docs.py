"""The parameters of a tool in lines: a type is said once."""

from __future__ import annotations

import pytest

from pegboard.core.json import JsonObject
from pegboard.core.schemas import describe_parameters

HOURS: JsonObject = {
    "type": "number", "exclusiveMinimum": 0, "maximum": 1000, "description": "Expected effort",
}  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "line"),
    [
        ({"anyOf": [HOURS, {"type": "null"}]}, "effort?: number >0..1000|null - Expected effort"),
        (
            {"anyOf": [HOURS, {"type": "null"}], "default": None},
            "effort?: number >0..1000 - Expected effort",
        ),
        (
            {"anyOf": [HOURS, {"type": "string", "description": "A word"}]},
            "effort?: number >0..1000|str - number >0..1000: Expected effort; str: A word",
        ),
    ],
)
def test_the_description_of_a_nullable_parameter_does_not_repeat_its_type(
    schema: JsonObject, line: str
) -> None:
    assert describe_parameters({"type": "object", "properties": {"effort": schema}}).text == line
