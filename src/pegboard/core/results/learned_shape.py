"""Shapes of results, learned from calls of tools that declare no output schema.

A learned shape is a small JSON Schema: names of keys, types, lists and maps. It never holds a value
of a result, and it is bounded however a result looks. `format_result_shape` writes it like a
declared one.

    {"issues": [{"key": "A-1", "votes": 3}], "total": 1}
    {"issues": list of {"key": string, "votes": integer}, "total": integer}     as a schema

Keys are names chosen by a server, and they end up in what a model reads. So a key is recorded only
if it looks like a name in a program. An object whose keys look like data (ids, dates, addresses, or
simply too many) is a map: its values are described, its keys are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from pegboard.core.json import Json, JsonObject
from pegboard.core.sanitization import find_suspicious_phrases

MAX_DEPTH = 5
MAX_KEYS = 32
"""Keys that one object may have before it is a map."""
MAX_ITEMS = 20
"""Items of a list, and values of a map, that are looked at."""
MAX_VALUES = 500
"""Values of one result that are looked at in all."""
MAX_FIELDS = 300
"""Fields of a shape in all; a larger one loses its deepest levels."""

_NAME = re.compile(r"[A-Za-z_$@][A-Za-z0-9_$@-]{0,39}")
_DATA = re.compile(r"\d{4,}|[0-9a-f]{8,}|.*\d.*[-_].*\d")
"""Numbers, hashes and dates: keys that are data, not names."""
_WORD_BREAK = re.compile(r"[_$@-]+|(?<=[a-z])(?=[A-Z])")
_TYPES: Mapping[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_REST = "additionalProperties"

T = TypeVar("T")


def learn_shape(value: Json) -> JsonObject:
    """The shape of one value."""
    return _limit_fields(_learn(value, MAX_DEPTH, iter(range(MAX_VALUES))))


def merge_shapes(known: JsonObject, seen: JsonObject) -> JsonObject:
    """The shape that values of both have; what only one of them has is there as well."""
    return _limit_fields(_merge(known, seen))


def _merge(known: JsonObject, seen: JsonObject) -> JsonObject:
    if known == seen or not seen:
        return known
    if not known:
        return seen
    types = sorted({*_types(known), *_types(seen)})
    merged: JsonObject = {"type": types[0] if len(types) == 1 else types}
    items = [shape["items"] for shape in (known, seen) if "items" in shape]
    if items:
        merged["items"] = _merge_all(items)
    members = [shape["properties"] for shape in (known, seen) if "properties" in shape]
    rest = [shape[_REST] for shape in (known, seen) if _REST in shape]
    if any(_is_map(shape) for shape in (known, seen)):  # its keys were data, and still are
        rest += [one for keys in members for one in keys.values()]
        members = []
    return merged | _object(_merge_members(members), rest)


def _learn(value: Json, depth: int, left: Iterator[int]) -> JsonObject:
    if isinstance(value, list):
        items = [_learn(one, depth - 1, left) for one in _take(value, depth, left)]
        return {"type": "array", "items": _merge_all(items)} if items else {"type": "array"}
    if isinstance(value, dict):
        chosen = _take(
            value.items(), depth, left, MAX_KEYS if len(value) <= MAX_KEYS else MAX_ITEMS
        )
        members = {key: _learn(one, depth - 1, left) for key, one in chosen}
        names = {key: shape for key, shape in members.items() if _is_name(key)}
        if len(value) > MAX_KEYS or len(names) < len(members) / 2 or _are_alike(names):
            names = {}
        rest = [shape for key, shape in members.items() if key not in names]
        return {"type": "object", **_object(names, rest)}
    return {"type": _TYPES[type(value)]} if type(value) in _TYPES else {}


def _take(
    values: Iterable[T], depth: int, left: Iterator[int], most: int = MAX_ITEMS
) -> Iterable[T]:
    """The first values, as long as neither depth nor the number of all values runs out."""
    return (one for one, _ in zip(islice(values, most), left, strict=False)) if depth else ()


def _object(names: Mapping[str, JsonObject], rest: Sequence[JsonObject]) -> JsonObject:
    """The keywords for an object with named members and others; too many names are a map."""
    if len(names) > MAX_KEYS:
        names, rest = {}, [*names.values(), *rest]
    made: JsonObject = {"properties": dict(names)} if names else {}
    return made | {_REST: _merge_all(rest)} if rest else made


def _are_alike(members: Mapping[str, JsonObject]) -> bool:
    """Whether these are entries and not fields: `{"ann": {"age": 1}, "bob": {"age": 2}, ...}`."""
    keys = [frozenset(shape.get("properties", ())) for shape in members.values()]
    return len(keys) > 2 and bool(keys[0]) and len(set(keys)) == 1


def _is_name(key: str) -> bool:
    if _NAME.fullmatch(key) is None or _DATA.fullmatch(key) is not None:
        return False
    return not find_suspicious_phrases(_WORD_BREAK.sub(" ", key))


def _is_map(shape: JsonObject) -> bool:
    return _REST in shape and "properties" not in shape


def _types(shape: JsonObject) -> list[str]:
    types = shape.get("type", [])
    return types if isinstance(types, list) else [types]


def _merge_all(shapes: Iterable[JsonObject]) -> JsonObject:
    merged: JsonObject = {}
    for shape in shapes:
        merged = _merge(merged, shape)
    return merged


def _merge_members(objects: Iterable[Mapping[str, JsonObject]]) -> dict[str, JsonObject]:
    merged: dict[str, JsonObject] = {}
    for members in objects:
        for key, shape in members.items():
            merged[key] = _merge(merged.get(key, {}), shape)
    return merged


def _limit_fields(shape: JsonObject) -> JsonObject:
    """The shape without as many of its deepest levels as make it too large."""
    depth = MAX_DEPTH
    while _count_fields(shape) > MAX_FIELDS:
        depth -= 1
        shape = _cut_below(shape, depth)
    return shape


def _count_fields(shape: JsonObject) -> int:
    return 1 + sum(_count_fields(inner) for inner in _inner_shapes(shape))


def _inner_shapes(shape: JsonObject) -> list[JsonObject]:
    own = (shape[keyword] for keyword in ("items", _REST) if keyword in shape)
    return [*shape.get("properties", {}).values(), *own]


def _cut_below(shape: JsonObject, depth: int) -> JsonObject:
    cut: JsonObject = {"type": shape["type"]} if "type" in shape else {}
    if depth <= 0:
        return cut
    if members := shape.get("properties"):
        cut["properties"] = {key: _cut_below(one, depth - 1) for key, one in members.items()}
    for keyword in ("items", _REST):
        if keyword in shape:
            cut[keyword] = _cut_below(shape[keyword], depth - 1)
    return cut
