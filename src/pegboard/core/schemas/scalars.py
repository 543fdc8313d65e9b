"""Words for values without parts: literals, strings and numbers with their limits."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from pegboard.core.json import Json, JsonObject

MORE = "…"
"""The sign that there is more to know than a spelling says."""

_LARGEST = 2**53 - 1
_LONGEST_FORMAT = 24

# Generators write these and spell them out as a pattern too; people write the pattern alone.
_FORMATS = frozenset(
    {"date", "date-time", "time", "duration", "email", "uuid", "uri", "url", "hostname"}
    | {"ipv4", "ipv6", "cidrv4", "cidrv6", "base64", "base64url", "jwt", "e164", "regex"}
)
_PATTERNS = {
    r"^\d{4}-\d{2}-\d{2}$": "date",
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$": "date",
    "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$": "uuid",
    "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$": "uuid",
}


@dataclass(frozen=True, slots=True)
class Room:
    """How much may be said: levels of nested objects, values of an enum, length of a literal."""

    depth: int
    values: int
    literal: int

    @property
    def inner(self) -> Room:
        return replace(self, depth=self.depth - 1)


FULL = Room(depth=12, values=1_000_000, literal=1_000_000)


def marked(text: str) -> str:
    return text if text.endswith(MORE) else text + MORE


def literal(value: Json, room: Room = FULL) -> str:
    """A JSON value on one line, or the mark when it is too long."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (TypeError, ValueError, RecursionError):
        return MORE
    # The mark must mean one thing only, also where a literal holds the character.
    return text.replace(MORE, "\\u2026") if len(text) <= room.literal else MORE


def string(schema: JsonObject, room: Room) -> str:
    """`str`, `str date-time`, `str /^0x/`, `str ..255`."""
    text = "str"
    form = schema.get("format", schema.get("contentEncoding"))
    pattern = schema.get("pattern")
    if not form and isinstance(pattern, str):
        form = _PATTERNS.get(pattern)
    if isinstance(form, str) and 0 < len(form) <= _LONGEST_FORMAT:
        text += f" {form}"
    if isinstance(pattern, str) and form not in _FORMATS:
        text += slashed(pattern, room)
    low, high = number(schema.get("minLength")), number(schema.get("maxLength"))
    return text + span(None if low is None or low <= 1 else low, high)


def slashed(pattern: str, room: Room) -> str:
    """A leading space and `/pattern/`, or the mark when it is too long to show."""
    plain = len(pattern) <= room.literal and pattern.isprintable() and MORE not in pattern
    return f" /{pattern}/" if plain else MORE


def integer(schema: JsonObject) -> str:
    """`int`, `int 1..100`."""
    low, above = _bound(schema, "minimum", "exclusiveMinimum", 1)
    high, below = _bound(schema, "maximum", "exclusiveMaximum", -1)
    # Whole numbers have a next one, so an open bound can be said as a closed one.
    if low is not None and above and low == int(low):
        low, above = int(low) + 1, False
    if high is not None and below and high == int(high):
        high, below = int(high) - 1, False
    return "int" + span(low, high, above=above, below=below) + _step(schema)


def decimal(schema: JsonObject) -> str:
    """`number`, `number 0..1`, `number >0..`, `number 0..10 step 0.5`."""
    low, above = _bound(schema, "minimum", "exclusiveMinimum", 1)
    high, below = _bound(schema, "maximum", "exclusiveMaximum", -1)
    return "number" + span(low, high, above=above, below=below) + _step(schema)


def number(value: Json) -> float | None:
    """A number that a double holds exactly; nothing else limits what a caller would send."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if abs(value) < _LARGEST else None


def span(low: float | None, high: float | None, *, above: bool = False, below: bool = False) -> str:
    """A leading space and `low..high`; empty when both ends are open."""
    if low is None and high is None:
        return ""
    start = "" if low is None else f"{'>' if above else ''}{low:.12g}"
    end = "" if high is None else f"{'<' if below else ''}{high:.12g}"
    return f" {start}..{end}"


def _step(schema: JsonObject) -> str:
    step = number(schema.get("multipleOf"))
    return "" if step is None else f" step {step:.12g}"


def _bound(schema: JsonObject, closed: str, opened: str, sign: int) -> tuple[float | None, bool]:
    """The tighter of two bounds, and whether it is itself excluded."""
    limit, strict = number(schema.get(closed)), schema.get(opened)
    if strict is True:  # draft 4: a flag beside the bound
        return limit, True
    strict = number(strict)
    if strict is None or (limit is not None and (limit - strict) * sign > 0):
        return limit, False
    return strict, True
