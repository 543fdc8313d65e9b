"""JSON values: the one alias for them, their compact and canonical text, and their size."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, TypeAlias

Json: TypeAlias = Any
"""A JSON value. `Any` appears in this codebase only through this alias and where JSON is meant."""

JsonObject: TypeAlias = dict[str, Any]

_LARGEST_EXACT_INTEGER = 2**53 - 1
_MAX_DIGITS = 18
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


def compact(value: Json) -> str:
    """The shortest ordinary text of a value; tokens are counted on this text."""
    return _encoder.encode(value)


def whole_number(text: Json) -> int | None:
    """The number in a string of plain digits; `None` for anything else, such as `²`."""
    if isinstance(text, str) and len(text) <= _MAX_DIGITS and text.isascii() and text.isdigit():
        return int(text)
    return None


def writable(value: JsonObject) -> JsonObject:
    """The value itself, or with U+FFFD for lone surrogates, which UTF-8 cannot encode."""
    text = compact(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(_LONE_SURROGATE.sub("\ufffd", text))
    return value


def canonical(value: Json) -> bytes:
    """RFC 8785 text: equal values give equal bytes whatever their key order."""
    import rfc8785  # here, because most uses of this module never need it

    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, RecursionError):
        return rfc8785.dumps(_to_canonical_range(value))


def digest(value: Json) -> str:
    """SHA-256 of the canonical text, in hexadecimal."""
    import hashlib  # here, as above: a process may never need a digest

    return hashlib.sha256(canonical(value)).hexdigest()


def json_type(value: Json) -> str:
    """The JSON Schema type of a value."""
    match value:
        case None:
            return "null"
        case bool():  # before int: in Python a bool is one
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def is_within_bounds(value: Json, *, depth: int = 100, nodes: int = 50_000) -> bool:
    """Whether a JSON value is small enough to be walked: at most this deep, with this many parts.

    Works level by level instead of recursively, so that a value deeper than the interpreter's stack
    is rejected and not fatal. A value that contains itself is deeper than any bound.
    """
    level: list[Json] = [value]
    while level:
        nodes -= len(level)
        if depth < 0 or nodes < 0:
            return False
        depth -= 1
        below: list[Json] = []
        for node in level:
            if isinstance(node, dict):
                below.extend(node.values())
            elif isinstance(node, list):
                below.extend(node)
        level = below
    return True


class JsonSize(NamedTuple):
    """How large a JSON value is: its values, names of members included, and their characters."""

    values: int
    characters: int


def measure_json(value: Json, most: int) -> JsonSize | None:
    """The size of a JSON value; `None` when it has more than `most` values."""
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
                # JSON puts no limit on integers, so a huge one counts by its length as well.
                characters += node.bit_length() >> 5
        level = below
    return JsonSize(values, characters)


def _to_canonical_range(value: Json) -> Json:
    """RFC 8785 numbers are IEEE doubles; schemas in the wild carry 64-bit bounds and even NaN."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return _escape_surrogates(value)
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST_EXACT_INTEGER else str(value)
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, dict):
        return {_escape_surrogates(str(k)): _to_canonical_range(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_canonical_range(v) for v in value]
    return str(value)


def _escape_surrogates(text: str) -> str:
    """The text with lone surrogates, which UTF-8 cannot encode, written as escapes."""
    if _LONE_SURROGATE.search(text) is None:
        return text
    # The NUL in front keeps it different from a text that contains such an escape itself.
    return "\0" + text.encode("utf-8", "backslashreplace").decode()
