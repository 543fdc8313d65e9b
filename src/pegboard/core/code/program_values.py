"""Values of a program as JSON: its result, and the arguments of its calls."""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Mapping, Set
from decimal import Decimal
from typing import Any

from pegboard.core.json import Json

_MAX_DEPTH = 100
_MAX_INTEGER_BITS = 4_096
"""Larger integers become text: writing them takes quadratic time, and Python refuses it."""


def to_json(value: Any) -> Json:
    """A value that Python's JSON cannot write is given its nearest form: a date as ISO text.

    Raises:
        ValueError: It is nested too deep.
    """
    return _convert(value, _MAX_DEPTH)


def _convert(value: Any, depth: int) -> Json:
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if value.bit_length() <= _MAX_INTEGER_BITS else hex(value)
        case float():
            return value if math.isfinite(value) else None
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta():
            return value.total_seconds()
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return _convert_container(value, depth)


def _convert_container(value: Any, depth: int) -> Json:
    if depth <= 0:
        raise ValueError(f"The value is nested deeper than {_MAX_DEPTH} levels.")
    match value:
        case Mapping():
            return {_key(key): _convert(inner, depth - 1) for key, inner in value.items()}
        case list() | tuple():
            return [_convert(inner, depth - 1) for inner in value]
        case Set():
            items = [_convert(inner, depth - 1) for inner in value]
            return sorted(items, key=repr)  # the order of a set is not fixed
        case BaseException():
            return f"{type(value).__name__}: {value}"
        case _:
            # An object of the program itself: its attributes are its data.
            attributes = getattr(value, "attributes", None)
            if isinstance(attributes, Mapping):
                return _convert_container(attributes, depth)
            return str(value)


def _key(key: Any) -> str:
    converted = _convert(key, 1)
    return converted if isinstance(converted, str) else str(converted)
