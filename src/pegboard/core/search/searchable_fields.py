"""What of a tool is searched: its fields as text, read once from its definition."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from pegboard.core.json import Json
from pegboard.core.search.terms import clean, identifier_to_phrase
from pegboard.core.tools import Tool

_DESCRIPTION_LIMIT = 6_000
_PARAMETER_LIMIT = 60
_PARAMETER_TEXT_LIMIT = 4_000
_NESTING = 3
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_SIGNATURE_LIMIT = 160
_EDITION = "2"  # of `passage`: vectors made from an older edition are not reused


@dataclass(frozen=True, slots=True)
class SearchableFields:
    """The searchable text of one tool, cleaned. `key` names the content: equal text, equal key."""

    name: str
    aliases: str
    server: str
    category: str
    description: str
    parameters: str
    parameter_text: str
    signature: str = ""
    """The outer parameters as a phrase, with the values that they can take."""

    @property
    def key(self) -> bytes:
        text = "\x1f".join((_EDITION, *(getattr(self, name) for name in self.__slots__)))
        return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def read_searchable_fields(tool: Tool) -> SearchableFields:
    """The fields of a tool, whatever its definition looks like."""
    names: list[str] = []
    texts: list[str] = []
    schema = tool.read_once().input
    for name, text in islice(_parameters(schema, _NESTING), _PARAMETER_LIMIT):
        names.append(clean(name, 200))
        texts.append(text[:400])
    return SearchableFields(
        name=clean(tool.name, 500),
        aliases=clean(" ".join((tool.title or "", *tool.aliases)), 1_000),
        server=clean(tool.server or "", 200),
        category=clean(" ".join((tool.category or "", tool.section or "", *tool.tags)), 500),
        description=clean(_description(tool), _DESCRIPTION_LIMIT),
        parameters=" ".join(names),
        parameter_text=clean(" ".join(texts), _PARAMETER_TEXT_LIMIT),
        signature=_signature(schema),
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
    words = [description] if isinstance(description, str) else []
    return " ".join((*words, *_choices(part, 20)))


def _choices(part: Json, limit: int) -> list[str]:
    """The first values of an enumeration that are words."""
    choices = part.get("enum") if isinstance(part, dict) else None
    return [c for c in choices[:limit] if isinstance(c, str)] if isinstance(choices, list) else []


def _signature(schema: Json) -> str:
    """The outer parameters as a phrase: `assignee, status: open closed`."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return ""
    phrases: list[str] = []
    for name, part in islice(properties.items(), 12):
        values = " ".join(identifier_to_phrase(value[:40]) for value in _choices(part, 6))
        phrases.append(
            f"{identifier_to_phrase(str(name)[:200])}: {values}"
            if values
            else identifier_to_phrase(str(name)[:200])
        )
    return ", ".join(phrases)[:_SIGNATURE_LIMIT]


def build_passage(fields: SearchableFields) -> str:
    """The tool as one passage for a model: who offers it, its name, what it takes, what it does.

    The parameters come before the description: models read a limited number of tokens, and the end
    of a long description says less than the names of the parameters.
    """
    head = " ".join(
        (identifier_to_phrase(fields.server), identifier_to_phrase(fields.name))
    ).strip()
    takes = f" ({fields.signature})" if fields.signature else ""
    # A sentence counts once: repeating it would pull the tool towards requests worded like it.
    said = " ".join(dict.fromkeys(_SENTENCE_END.split(fields.description)))
    return f"{head}{takes}. {said}"[:700]
