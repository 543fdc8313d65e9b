"""Outlines: the field paths of a value with their types, for whoever cannot see the value whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pegboard.core.json import Json
from pegboard.core.paths import quote_key

MORE = "…"
"""The key under which an outline or a preview says how much it leaves out."""

_ELEMENTS = 50
_MEMBERS = 200
_DEPTH = 10


def outline(value: Json, limit: int = 40) -> dict[str, str]:
    """Paths and types, outermost first: `{"items": "array[900]", "items[].id": "integer", …}`.

    Types come from the first elements of each list. Beyond `limit` paths the rest is counted under
    `MORE`, as far as it was looked at.
    """
    found: dict[str, str] = {}
    level: list[tuple[str, list[Json]]] = [("", [value])]
    left_out = 0
    depth = 0
    while level:
        depth += 1
        following: dict[str, list[Json]] = {}
        for path, values in level:
            if path and any(not isinstance(v, dict) or not v for v in values):
                if len(found) < limit:
                    found[path] = _type_of(values)
                else:
                    left_out += 1
            for inner, item in _inner(path, values):
                following.setdefault(inner, []).append(item)
        level = list(following.items()) if left_out == 0 and depth < _DEPTH else []
        left_out += 0 if level else len(following)
    if left_out:
        found[MORE] = f"at least {left_out:,} more"
    return found


def field_paths(value: Json, limit: int = 40) -> list[str]:
    """The paths alone, as `include_fields` takes them."""
    return [path for path in outline(value, limit) if path != MORE]


def _inner(path: str, values: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    """What one level further in holds, under the path that leads there."""
    for value in values[:_ELEMENTS]:
        if isinstance(value, dict):
            for key in list(value)[:_MEMBERS]:
                name = quote_key(str(key))
                yield (f"{path}.{name}" if path else name), value[key]
        elif isinstance(value, list):
            for item in value[:_ELEMENTS]:
                if isinstance(item, (dict, list)):
                    yield f"{path}[]", item


def _type_of(values: Sequence[Json]) -> str:
    lists = [v for v in values if isinstance(v, list)]
    names = dict.fromkeys(type_name(v) for v in values if not isinstance(v, list))
    if lists:
        longest = max(map(len, lists))
        inner = dict.fromkeys(type_name(item) for v in lists for item in v[:_ELEMENTS])
        scalars = [name for name in inner if name not in ("object", "array")]
        names[f"array[{longest}]" + (f" of {'|'.join(scalars)}" if scalars else "")] = None
    return "|".join(names)


def type_name(value: Json) -> str:
    """The JSON Schema word for the type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
