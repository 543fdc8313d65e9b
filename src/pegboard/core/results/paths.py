r"""Field paths: the small language that `include_fields` and `read_result` share.

    id                     a key
    user.name              a key inside
    items[].id, items.id   of every element; lists are mapped over, `[]` (or `[*]`) only says so
    users.*.name           of every value, whatever its key
    items[3].body          of one element: for reading a stored result, not for projecting
    "a.b".c, a\\.b.c        a key that holds a dot (or `[`, `]`, `"`), quoted or escaped

It is not JMESPath (`core/results/selection.py`): it keeps or finds, and computes nothing.

Two more questions about paths are answered here: where they start when a result is an *envelope*
such as `{"items": [...], "total": 3}`, and which paths a value has (its *outline*).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
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
        parts.append(f"Available: {join_names(available)}.")
    return InvalidField(
        " ".join(parts),
        field=shown,
        expected=list(available[:MAX_LISTED]) or None,
        nearest=list(nearest) or None,
    )


def join_names(names: Sequence[str], limit: int = MAX_LISTED) -> str:
    """The first names, and how many more there are."""
    rest = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {rest:,} more" if rest > 0 else "")


# fmt: off
_PAGING = frozenset(
    (
        "total", "totalcount", "totalitems", "totalpages", "count", "size", "next",
        "nextcursor", "nextpage", "nextpagetoken", "nextoffset", "cursor", "page", "pages",
        "pagesize", "perpage", "limit", "offset", "hasmore", "hasnext", "hasnextpage", "more",
        "prev", "previous", "truncated", "incompleteresults",
    )
)
# fmt: on


def envelope_key(value: Json) -> str | None:
    """The key under which an envelope carries its content; `None` when the value is no envelope."""
    if not isinstance(value, dict):
        return None
    return sole_content((key, isinstance(item, (dict, list))) for key, item in value.items())


def sole_content(members: Iterable[tuple[str, bool]]) -> str | None:
    """The one member that holds others, if all the rest are about paging.

    `members` are names with whether each holds an object or a list, from a value or from its
    schema.
    """
    content: str | None = None
    for name, holds in members:
        if holds:
            if content is not None:
                return None
            content = name
        elif name.replace("_", "").replace("-", "").lower() not in _PAGING:
            return None
    return content


OMISSION = "…"
"""The key under which an outline or a preview says how much it leaves out."""

_ELEMENTS = 50
_MEMBERS = 200
_DEPTH = 10


def build_outline(value: Json, limit: int = 40) -> dict[str, str]:
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
                    found[path] = _describe_type(values)
                else:
                    left_out += 1
            for inner, item in _children(path, values):
                following.setdefault(inner, []).append(item)
        level = list(following.items()) if left_out == 0 and depth < _DEPTH else []
        left_out += 0 if level else len(following)
    if left_out:
        found[OMISSION] = f"at least {left_out:,} more"
    return found


def list_field_paths(value: Json, limit: int = 40) -> list[str]:
    """The paths alone, as `include_fields` takes them."""
    return [path for path in build_outline(value, limit) if path != OMISSION]


def _children(path: str, values: Sequence[Json]) -> Iterator[tuple[str, Json]]:
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


def _describe_type(values: Sequence[Json]) -> str:
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
