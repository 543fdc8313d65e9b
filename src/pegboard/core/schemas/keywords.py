"""Where schemas stand inside a schema: the one place that knows the applicator keywords.

Everything that walks or rewrites schemas goes through `children` and `with_children`, so that data
(`default`, `enum`, `examples`) and properties that happen to be *named* `$ref` or `items` are never
taken for schemas. Whatever has the wrong shape for its keyword (`properties` as a list) is data
too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from pegboard.core.json import Json, JsonObject

Path: TypeAlias = tuple[str, ...]

ANNOTATIONS = frozenset(
    {
        "title",
        "description",
        "default",
        "examples",
        "example",
        "deprecated",
        "readOnly",
        "writeOnly",
    }
    | {"$comment", "$schema"}
)
DEFINITIONS = ("$defs", "definitions")

_ONE = frozenset(
    {"items", "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if"}
    | {"not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
)
_MANY = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)


def is_schema(value: Json) -> bool:
    return isinstance(value, (dict, bool))


def as_object(schema: Json) -> JsonObject:
    """The same schema never as a boolean; anything that is no schema accepts everything."""
    if isinstance(schema, dict):
        return schema
    return {"not": {}} if schema is False else {}


def children(schema: JsonObject) -> Iterator[tuple[Path, Json]]:
    """Each subschema directly inside, with the way to it."""
    for keyword, value in schema.items():
        if keyword in _NAMED and isinstance(value, dict):
            yield from (((keyword, name), s) for name, s in value.items() if is_schema(s))
        elif keyword in _MANY and isinstance(value, list):
            yield from (((keyword, str(i)), s) for i, s in enumerate(value) if is_schema(s))
        elif keyword in _ONE and is_schema(value):
            yield (keyword,), value


def with_children(schema: JsonObject, change: Callable[[Json, Path], Json]) -> JsonObject:
    """The same schema with each direct subschema replaced by what `change` makes of it."""
    made: JsonObject = {}
    for keyword, value in schema.items():
        if keyword in _NAMED and isinstance(value, dict):
            made[keyword] = {
                name: change(s, (keyword, name)) if is_schema(s) else s for name, s in value.items()
            }
        elif keyword in _MANY and isinstance(value, list):
            made[keyword] = [
                change(s, (keyword, str(i))) if is_schema(s) else s for i, s in enumerate(value)
            ]
        elif keyword in _ONE and is_schema(value):
            made[keyword] = change(value, (keyword,))
        else:
            made[keyword] = value
    return made


def fits(value: Json, *, depth: int = 100, nodes: int = 50_000) -> bool:
    """Whether a JSON value is small enough to be walked: at most so deep, of so many parts.

    Without recursion, so that a value deeper than the interpreter's stack is measured, not fatal; a
    value that contains itself is deeper than any bound.
    """
    level: list[Json] = [value]
    while level:
        nodes -= len(level)
        if depth < 0 or nodes < 0:
            return False
        depth -= 1
        level = [part for node in level for part in _parts(node)]
    return True


class Size(NamedTuple):
    """How large a JSON value is: its values, names of members included, and their characters."""

    values: int
    characters: int


def measured(value: Json, most: int) -> Size | None:
    """The size of a JSON value; `None` when it has more than so many values."""
    values = characters = 0
    level: list[Json] = [value]
    while level:
        values += len(level)
        if values > most:
            return None
        below: list[Json] = []
        for node in level:
            if isinstance(node, str):
                characters += len(node)
            elif isinstance(node, dict):
                below.extend(node)
                below.extend(node.values())
            elif isinstance(node, list):
                below.extend(node)
            elif isinstance(node, int):
                characters += node.bit_length() >> 5
        level = below
    return Size(values, characters)


def _parts(node: Json) -> list[Json]:
    if isinstance(node, dict):
        return list(node.values())
    return node if isinstance(node, list) else []
