"""What of a tool is searched: its fields as text, read once from its definition."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from pegboard.core.json import Json
from pegboard.core.search.text import clean, spoken
from pegboard.core.tools import Tool

_DESCRIPTION_LIMIT = 6_000
_PARAMETER_LIMIT = 60
_PARAMETER_TEXT_LIMIT = 4_000
_NESTING = 3
_EDITION = "1"  # of `passage`: vectors made of an older one are not found again


@dataclass(frozen=True, slots=True)
class Fields:
    """The searchable text of one tool, cleaned. `key` names the content: equal text, equal key."""

    name: str
    aliases: str
    server: str
    category: str
    description: str
    parameters: str
    parameter_text: str

    @property
    def key(self) -> bytes:
        text = "\x1f".join((_EDITION, *(getattr(self, name) for name in self.__slots__)))
        return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def fields_of(tool: Tool) -> Fields:
    """The fields of a tool, whatever its definition looks like."""
    names: list[str] = []
    texts: list[str] = []
    for name, text in islice(_parameters(tool.read_once().input, _NESTING), _PARAMETER_LIMIT):
        names.append(clean(name, 200))
        texts.append(text[:400])
    return Fields(
        name=clean(tool.name, 500),
        aliases=clean(" ".join((tool.title or "", *tool.aliases)), 1_000),
        server=clean(tool.server or "", 200),
        category=clean(" ".join((tool.category or "", *tool.tags)), 500),
        description=clean(_description(tool), _DESCRIPTION_LIMIT),
        parameters=" ".join(names),
        parameter_text=clean(" ".join(texts), _PARAMETER_TEXT_LIMIT),
    )


def _description(tool: Tool) -> str:
    if tool.summary and tool.summary not in tool.description:
        return f"{tool.summary} {tool.description}"
    return tool.description


def _parameters(schema: Json, depth: int) -> Iterator[tuple[str, str]]:
    """Name and text of each parameter, outer ones first, of anything that passes for a schema."""
    if depth == 0 or not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    for name, part in properties.items():
        yield str(name), _described(part)
    for part in properties.values():
        if isinstance(part, dict):
            yield from _parameters(part, depth - 1)
            yield from _parameters(part.get("items"), depth - 1)


def _described(part: Json) -> str:
    if not isinstance(part, dict):
        return ""
    description = part.get("description")
    choices = part.get("enum")
    words = [description] if isinstance(description, str) else []
    if isinstance(choices, list):
        words.extend(c for c in choices[:20] if isinstance(c, str))
    return " ".join(words)


def passage(fields: Fields) -> str:
    """The tool as one passage for a model: who offers it, what it is called, what it does."""
    head = " ".join((spoken(fields.server), spoken(fields.name))).strip()
    parameters = ", ".join(spoken(p) for p in fields.parameters.split()[:10])
    return f"{head}. {fields.description}"[:600] + f" ({parameters})"
