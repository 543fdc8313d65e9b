"""What a Pegboard tells another about a tool beyond MCP: its category, summary, examples, ...

They travel in the `_meta` of a `tools/list` entry, under our prefix, when the request asks for them
(`DETAILS_KEY`). What a server says there is text like its descriptions: cleaned, bounded, and shown
or searched. Nothing is decided by it. Its category is shown within the server, and its related
tools are tools of the same server or none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pegboard.core.cleaning import clean
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.tools import Example, Tool, derive_summary

PREFIX = "io.github.pegboard/"
EXTENSION_ID = f"{PREFIX}lazy-tools"
LAZY_KEY = f"{PREFIX}lazy"
DETAILS_KEY = f"{PREFIX}details"

MOST_NAMES = 20
MOST_EXAMPLES = 5
_LONGEST_NAME = 128
_LONGEST_SECTION = 64
_LONGEST_EXAMPLE = 2_000
_LONGEST_TEXT = 300
_NOT_IN_SECTIONS = re.compile(r"[^\w-]+")


@dataclass(frozen=True, slots=True)
class Details:
    """The part of a tool that MCP has no place for, as a server told it."""

    section: str | None = None
    summary: str = ""
    examples: tuple[Example, ...] = ()
    related: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    deprecated: str | None = None


NO_DETAILS = Details()


def details_of(
    tool: Tool, *, category: str | None = None, related: Sequence[str] = ()
) -> JsonObject:
    """The details of a tool for the `_meta` of its entry.

    Args:
        tool: The tool.
        category: The category under which it is shown.
        related: Its related tools, by the names that they have in the same list.
    """
    given: JsonObject = {
        "category": category,
        "summary": tool.summary,
        "examples": [
            {"description": e.description, "invocation": dict(e.invocation)} for e in tool.examples
        ],
        "related": list(related),
        "aliases": list(tool.aliases),
        "tags": list(tool.tags),
        "deprecated": tool.deprecated,
    }
    return {f"{PREFIX}{key}": value for key, value in given.items() if value}


def details_in(meta: Mapping[str, Json], server: str) -> Details:
    """The details in the `_meta` of an entry of this server; what is malformed is not used."""
    if not any(key.startswith(PREFIX) for key in meta):
        return NO_DETAILS
    summary, deprecated = meta.get(f"{PREFIX}summary"), meta.get(f"{PREFIX}deprecated")
    return Details(
        section=section_name(meta.get(f"{PREFIX}category")),
        summary=derive_summary(clean(summary)) if isinstance(summary, str) else "",
        examples=_examples(meta.get(f"{PREFIX}examples")),
        related=tuple(f"{server}.{name}" for name in _texts(meta.get(f"{PREFIX}related"))),
        aliases=_texts(meta.get(f"{PREFIX}aliases")),
        tags=_texts(meta.get(f"{PREFIX}tags")),
        deprecated=_text(deprecated, _LONGEST_TEXT) or None,
    )


def foreign(meta: Mapping[str, Json]) -> JsonObject:
    """The `_meta` of an entry without our own keys: in those we mark what *we* found out."""
    return {key: value for key, value in meta.items() if not key.startswith(PREFIX)}


def section_name(value: Json) -> str | None:
    """A category as a part of a name: without the separators that names of groups have."""
    text = _text(value, 4 * _LONGEST_SECTION)
    return _NOT_IN_SECTIONS.sub("-", text).strip("-")[:_LONGEST_SECTION] or None


def _examples(value: Json) -> tuple[Example, ...]:
    if not isinstance(value, list):
        return ()
    found = [_example(one) for one in value[: 2 * MOST_EXAMPLES]]
    return tuple(example for example in found if example is not None)[:MOST_EXAMPLES]


def _example(value: Json) -> Example | None:
    match value:
        case {"description": str(text), "invocation": dict(invocation)}:
            call = compact(invocation)
            if len(call) > _LONGEST_EXAMPLE or clean(call) != call:
                return None  # arguments are sent as they are: what is hidden in them must not be
            return Example(_text(text, _LONGEST_TEXT), invocation)
        case _:
            return None


def _texts(value: Json) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    found = [_text(one, _LONGEST_NAME) for one in value[:MOST_NAMES]]
    return tuple(dict.fromkeys(text for text in found if text))


def _text(value: Json, longest: int) -> str:
    return " ".join(clean(value[:longest]).split()) if isinstance(value, str) else ""
