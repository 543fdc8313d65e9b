r"""Field paths: the small language that `include_fields` and `read_result` share.

    id                     a key
    user.name              a key inside
    items[].id, items.id   of every element; lists are mapped over, `[]` (or `[*]`) only says so
    users.*.name           of every value, whatever its key
    items[3].body          of one element: for reading a kept result, not for projecting
    "a.b".c, a\.b.c        a key that holds a dot (or `[`, `]`, `"`), quoted or escaped

It is not JMESPath (`core/selection.py`): it keeps or finds, and computes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache
from typing import TypeAlias

from pegboard.core.json import Json
from pegboard.errors import InvalidField

MAX_LENGTH = 1_000
MAX_STEPS = 64
MAX_LISTED = 60
"""Field names that an error lists before it only counts the rest."""


class Mark(Enum):
    """The steps that are no key."""

    ANY = "*"
    EACH = "[]"


Step: TypeAlias = str | int | Mark

_STEP = re.compile(
    r"""\[(?P<index>-?\d{1,9}|\*)?\]
      | (?P<dot>\.?)(?:"(?P<quoted>(?:[^"\\]|\\.)*)" | (?P<bare>(?:[^.\[\]"\\]|\\.)+))""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PLAIN_KEY = re.compile(r"[^\s.\[\]\"\\*,](?:[^.\[\]\"\\,]*[^\s.\[\]\"\\,])?")
_COMMA_SEPARATED = re.compile(r'(?:[^,"\\]|\\.|"(?:[^"\\]|\\.)*"|["\\])+', re.DOTALL)


@lru_cache(maxsize=4096)
def parse_path(path: str) -> tuple[Step, ...]:
    """The steps of a path.

    Raises:
        InvalidField: It is not a path; the message says what one looks like.
    """
    text = path.strip()
    if not text:
        raise invalid_field(path, "It is empty.")
    if len(text) > MAX_LENGTH:
        raise invalid_field(path, f"A path has at most {MAX_LENGTH:,} characters.")
    steps: list[Step] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (match["dot"] is not None and bool(match["dot"]) == (at == 0)):
            raise invalid_field(
                path,
                f"Character {at + 1} does not continue a path: join keys with dots, as in "
                'items[].user.name, and quote a key that holds one, as in "a.b".c.',
            )
        steps.append(_step(match))
        at = match.end()
    if len(steps) > MAX_STEPS:
        raise invalid_field(path, f"A path has at most {MAX_STEPS} steps.")
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    quoted, bare = match.group("quoted", "bare")
    if bare == "*":
        return Mark.ANY
    if bare is not None:
        return _ESCAPED.sub(r"\1", bare) if "\\" in bare else bare
    if quoted is not None:
        return _unquoted(quoted)
    index = match["index"]
    return Mark.EACH if index in (None, "*") else int(index)


def _unquoted(text: str) -> str:
    """A quoted key; JSON's escapes are understood, since that is how many would write it."""
    if "\\" not in text:
        return text
    try:
        return json.loads(f'"{text}"', strict=False)
    except ValueError:
        return _ESCAPED.sub(r"\1", text)


def quote_key(key: str) -> str:
    """The key as a path spells it: quoted where its characters mean something in a path."""
    if _PLAIN_KEY.fullmatch(key):
        return key
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def join_path(steps: Iterable[Step]) -> str:
    """The text of a path; `parse_path` gives the steps back."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step is Mark.EACH:
            text += "[]"
        else:
            key = "*" if isinstance(step, Mark) else quote_key(step)
            text += f".{key}" if text else key
    return text


def parse_fields(value: Json) -> tuple[str, ...]:
    """What a caller sent as `include_fields`, as a tuple: a list, or what weak models make of one.

    A comma-separated text and a list as JSON text are understood; `None`, `""` and `[]` are no
    fields.

    Raises:
        InvalidField: It is something else.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("[") and text.endswith("]") and text not in ("[]", "[*]"):
            try:
                return parse_fields(json.loads(text))
            except ValueError:
                pass  # a path may start with a bracket: `[].id, [].name`
        return tuple(f for f in map(str.strip, _COMMA_SEPARATED.findall(text)) if f)
    if isinstance(value, (list, tuple)) and all(isinstance(f, str) for f in value):
        return tuple(value)
    raise invalid_field(str(value), 'A list of paths is expected, as in ["id", "user.name"].')


def invalid_field(
    field: str, why: str = "", available: Sequence[str] = (), nearest: Sequence[str] = ()
) -> InvalidField:
    """The error for a field that cannot be, with those that can."""
    shown = field if len(field) <= 200 else f"{field[:200]}…"
    parts = [f"Invalid field: {shown}." if shown.strip() else "Invalid field: ''."]
    if why:
        parts.append(why)
    if nearest:
        parts.append(f"Nearest: {', '.join(nearest)}.")
    if available:
        parts.append(f"Available: {listed(available)}.")
    return InvalidField(
        " ".join(parts),
        field=shown,
        expected=list(available[:MAX_LISTED]) or None,
        nearest=list(nearest) or None,
    )


def listed(names: Sequence[str], limit: int = MAX_LISTED) -> str:
    """The first names, and how many more there are."""
    rest = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {rest:,} more" if rest > 0 else "")
