"""JSON values: the one alias for them, and their compact and canonical texts."""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A JSON value. `Any` appears in this codebase only through this alias and where JSON is meant."""

JsonObject: TypeAlias = dict[str, Any]

_LARGEST_EXACT_INTEGER = 2**53 - 1
_MOST_DIGITS = 18
_HALF = re.compile("[\ud800-\udfff]")
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


def compact(value: Json) -> str:
    """The shortest ordinary text of a value; what token figures are counted on."""
    return _encoder.encode(value)


def whole_number(text: Json) -> int | None:
    """The number that a text of plain digits spells; `None` for anything else, such as `²`."""
    if isinstance(text, str) and len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit():
        return int(text)
    return None


def writable(value: JsonObject) -> JsonObject:
    """The value itself, or with U+FFFD for halves of surrogate pairs, which UTF-8 cannot carry."""
    text = compact(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(_HALF.sub("\ufffd", text))
    return value


def canonical(value: Json) -> bytes:
    """RFC 8785 text: equal values give equal bytes whatever their key order."""
    import rfc8785  # here, because most uses of this module never need it

    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, RecursionError):
        return rfc8785.dumps(_within_canonical_range(value))


def digest(value: Json) -> str:
    """Sha-256 of the canonical text, in hexadecimal."""
    import hashlib  # here, as above: digests are asked for later, if at all

    return hashlib.sha256(canonical(value)).hexdigest()


def _within_canonical_range(value: Json) -> Json:
    """RFC 8785 numbers are IEEE doubles; schemas in the wild carry 64-bit bounds and even NaN."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return _paired(value)
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST_EXACT_INTEGER else str(value)
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, dict):
        return {_paired(str(k)): _within_canonical_range(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_within_canonical_range(v) for v in value]
    return str(value)


def _paired(text: str) -> str:
    """The text with halves of surrogate pairs, which UTF-8 cannot carry, spelled out and marked."""
    if _HALF.search(text) is None:
        return text
    return "\0" + text.encode("utf-8", "backslashreplace").decode()
