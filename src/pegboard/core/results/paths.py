r"""Field paths: the small language that `include_fields` and `read_result` share.

    id                     a key
    user.name              a key inside
    items[].id, items.id   of every element; lists are mapped over, `[]` (or `[*]`) is optional
    users.*.name           of every value, whatever its key
    items[3].body          of one element: for reading a stored result, not for projecting
    "a.b".c, a\.b.c        a key that contains a dot (or `[`, `]`, `"`), quoted or escaped

It is not JMESPath (`core/results/selection.py`): a path keeps or finds, and computes nothing.

Two more questions about paths are answered here: where they start when a result is an *envelope*
such as `{"items": [...], "total": 3}`, and which paths a value has (its *outline*).
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

# Paths come from callers, and projection keeps a state per step.
MAX_LENGTH = 1_000
MAX_STEPS = 64
MAX_LISTED = 60
"""Field names that an error lists before it only counts the rest."""


class Mark(Enum):
    """The steps that are not a key."""

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


# Callers repeat the same few paths on every call to a tool.
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
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        # Every key but the first needs a dot before it, and the first must not have one.
        if match is None or (match["dot"] is not None and bool(match["dot"]) == (position == 0)):
            raise invalid_field(
                path,
                f"Character {position + 1} does not continue a path: join keys with dots, as in "
                'items[].user.name, and quote a key that contains one, as in "a.b".c.',
            )
        steps.append(_match_to_step(match))
        position = match.end()
    if len(steps) > MAX_STEPS:
        raise invalid_field(path, f"A path has at most {MAX_STEPS} steps.")
    return tuple(steps)


def _match_to_step(match: re.Match[str]) -> Step:
    quoted, bare, index = match.group("quoted", "bare", "index")
    if bare == "*":
        return Mark.ANY
    if bare is not None:
        return _ESCAPED.sub(r"\1", bare)
    if quoted is None:
        return Mark.EACH if index in (None, "*") else int(index)
    if "\\" not in quoted:
        return quoted
    try:
        # JSON's escapes are accepted, since models quote a key as they quote any JSON string.
        return json.loads(f'"{quoted}"', strict=False)
    except ValueError:
        return _ESCAPED.sub(r"\1", quoted)


def quote_key(key: str) -> str:
    """The key as a path spells it: quoted if its characters have a meaning in paths."""
    if _PLAIN_KEY.fullmatch(key):
        return key
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def join_path(steps: Iterable[Step]) -> str:
    """The text of a path; `parse_path` returns the same steps."""
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

    Comma-separated text and a list as JSON text are accepted; `None`, `""` and `[]` mean no fields.

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
    """The error for an invalid field, listing the valid ones."""
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


# --- envelopes ------------------------------------------------------------------------------------

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
    """The key under which an envelope has its content; `None` when the value is not an envelope.

    `{"episode": {...}}` is one, and so is `{"items": [...], "total": 3}`: people name fields of the
    episode, not of its wrapper.
    """
    if not isinstance(value, dict):
        return None
    return sole_content((key, isinstance(item, (dict, list))) for key, item in value.items())


def sole_content(members: Iterable[tuple[str, bool]]) -> str | None:
    """The one member that is an object or a list, if all others are about paging.

    `members` are names with whether each is an object or a list, from a value or from its schema.
    """
    content: str | None = None
    for name, is_container in members:
        if is_container:
            if content is not None:
                return None
            content = name
        elif name.replace("_", "").replace("-", "").lower() not in _PAGING:
            return None
    return content


# --- outlines -------------------------------------------------------------------------------------

OMISSION = "…"
"""The key under which an outline or a preview says how much it omits."""

# Bounds on how much of a large value is examined: its types repeat.
_MAX_ELEMENTS = 50
_MAX_MEMBERS = 200
_MAX_DEPTH = 10


def build_outline(value: Json, limit: int = 40) -> dict[str, str]:
    """Paths and types, outermost first: `{"items": "array[900]", "items[].id": "integer", …}`.

    Types come from the first elements of each list. Beyond `limit` paths the rest is counted under
    `OMISSION`, as far as it was examined.
    """
    found: dict[str, str] = {}
    level: list[tuple[str, list[Json]]] = [("", [value])]
    omitted = 0
    depth = 0
    # Level by level and not depth first, so that a limit cuts off what is deep, not what is last.
    while level:
        depth += 1
        next_level: dict[str, list[Json]] = {}
        for path, values in level:
            if path and any(not isinstance(v, dict) or not v for v in values):
                if len(found) < limit:
                    found[path] = _union_type(values)
                else:
                    omitted += 1
            for item in values[:_MAX_ELEMENTS]:
                if isinstance(item, dict):
                    for key in list(item)[:_MAX_MEMBERS]:
                        name = quote_key(str(key))
                        inner = f"{path}.{name}" if path else name
                        next_level.setdefault(inner, []).append(item[key])
                elif isinstance(item, list):
                    containers = [i for i in item[:_MAX_ELEMENTS] if isinstance(i, (dict, list))]
                    if containers:
                        next_level.setdefault(f"{path}[]", []).extend(containers)
        level = list(next_level.items()) if omitted == 0 and depth < _MAX_DEPTH else []
        omitted += 0 if level else len(next_level)
    if omitted:
        found[OMISSION] = f"at least {omitted:,} more"
    return found


def list_field_paths(value: Json, limit: int = 40) -> list[str]:
    """The paths alone, as `include_fields` takes them."""
    return [path for path in build_outline(value, limit) if path != OMISSION]


def _union_type(values: Sequence[Json]) -> str:
    lists = [v for v in values if isinstance(v, list)]
    names = dict.fromkeys(type_name(v) for v in values if not isinstance(v, list))
    if lists:
        longest = max(map(len, lists))
        inner = dict.fromkeys(type_name(item) for v in lists for item in v[:_MAX_ELEMENTS])
        scalars = [name for name in inner if name not in ("object", "array")]
        names[f"array[{longest}]" + (f" of {'|'.join(scalars)}" if scalars else "")] = None
    return "|".join(names)


def type_name(value: Json) -> str:
    """The JSON Schema name of the type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):  # before int, of which bool is a subclass
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
