"""How a caller wants a result, read from the arguments in which models say so.

`include_fields` is accepted on every tool. A call meta-tool has it beside the tool's arguments;
on a direct call it stands among them, and it is taken off before they are checked.
"""

from __future__ import annotations

import json
from dataclasses import replace

from pegboard.core.calls import Shape
from pegboard.core.json import Json, JsonObject, whole_number
from pegboard.core.paths import parse_fields
from pegboard.core.tools import Tool
from pegboard.errors import InvalidArguments

FIELDS = "include_fields"


def requested_shape(given: JsonObject) -> Shape:
    """The shape that a call meta-tool's arguments ask for.

    Raises:
        InvalidField: `include_fields` is no list of paths, nor a text that spells one.
        InvalidArguments: `select` or `max_tokens` is of another kind than it must be.
    """
    return Shape(
        include_fields=parse_fields(given.get(FIELDS)),
        select=_expression(given.get("select")),
        raw=given.get("raw") in (True, "true"),
        max_tokens=_budget(given.get("max_tokens")),
    )


def fields_taken_off(tool: Tool, arguments: Json, shape: Shape) -> tuple[Json, Shape]:
    """The arguments without `include_fields`, and the shape with them.

    A tool that has a parameter of that name keeps it; what the shape asks for already stays.
    """
    given = _spelt(arguments)
    if not isinstance(given, dict) or FIELDS not in given:
        return arguments, shape
    if FIELDS in tool.input_schema.get("properties", {}):
        return arguments, shape
    fields = shape.include_fields or parse_fields(given[FIELDS])
    rest = {key: value for key, value in given.items() if key != FIELDS}
    return rest, replace(shape, include_fields=fields)


def _spelt(arguments: Json) -> Json:
    """The object that a text of JSON spells; anything else as it came."""
    if not isinstance(arguments, str) or FIELDS not in arguments:
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _expression(given: Json) -> str | None:
    if given is None or isinstance(given, str):
        return given or None
    raise InvalidArguments("`select` must be a text: a JMESPath expression.", field="select")


def _budget(given: Json) -> int | None:
    if given is None:
        return None
    given = given if (number := whole_number(given)) is None else number
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    raise InvalidArguments(
        "`max_tokens` must be a whole number; 0 keeps nothing back.", field="max_tokens"
    )
