"""Envelopes: results that wrap what they are about.

`{"episode": {...}}` is one, and so is `{"items": [...], "total": 3}`. People name fields of the
episode, not of its wrapping. An object is an envelope when exactly one of its values is an object
or a list and everything beside it only pages or counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.core.json import Json

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
