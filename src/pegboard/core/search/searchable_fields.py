"""The searchable text of a tool: its fields, and the passage that models read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from pegboard.core.json import Json
from pegboard.core.search.terms import clean_text, identifier_to_phrase
from pegboard.core.tools import Tool

_DESCRIPTION_LIMIT = 6_000
_PARAMETER_LIMIT = 60
_PARAMETER_TEXT_LIMIT = 4_000
_NESTING = 3
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_SIGNATURE_LIMIT = 160
_EDITION = "2"  # the version of `build_passage`: vectors of an older one are not reused


@dataclass(frozen=True, slots=True)
class SearchableFields:
    """The searchable text of one tool, cleaned. `key` identifies it: equal text, equal key."""

    name: str
    aliases: str
    server: str
    category: str
    description: str
    parameters: str
    parameter_text: str
    signature: str = ""
    """The top-level parameters as a phrase, with the values that they can take."""

    @property
    def key(self) -> bytes:
        # A separator that no cleaned text contains, so that fields cannot run into each other.
        text = "\x1f".join((_EDITION, *(getattr(self, name) for name in self.__slots__)))
        return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def read_searchable_fields(tool: Tool) -> SearchableFields:
    """The fields of a tool, however malformed its definition is."""
    # Bounded everywhere: a definition of megabytes must not slow down the whole catalog.
    names: list[str] = []
    texts: list[str] = []
    schema = tool.read_once().input
    description = tool.description
    if tool.summary and tool.summary not in description:
        description = f"{tool.summary} {description}"
    for name, text in islice(_parameters(schema, _NESTING), _PARAMETER_LIMIT):
        names.append(clean_text(name, 200))
        texts.append(text[:400])
    return SearchableFields(
        name=clean_text(tool.name, 500),
        aliases=clean_text(" ".join((tool.title or "", *tool.aliases)), 1_000),
        server=clean_text(tool.server or "", 200),
        category=clean_text(" ".join((tool.category or "", tool.section or "", *tool.tags)), 500),
        description=clean_text(description, _DESCRIPTION_LIMIT),
        parameters=" ".join(names),
        parameter_text=clean_text(" ".join(texts), _PARAMETER_TEXT_LIMIT),
        signature=_signature(schema),
    )


def _parameters(schema: Json, depth: int) -> Iterator[tuple[str, str]]:
    """Name and text of each parameter, outer ones first; a malformed schema has none."""
    if depth == 0 or not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    for name, part in properties.items():
        described = part.get("description") if isinstance(part, dict) else None
        words = [described] if isinstance(described, str) else []
        yield str(name), " ".join((*words, *_choices(part, 20)))
    for part in properties.values():
        if isinstance(part, dict):
            yield from _parameters(part, depth - 1)
            yield from _parameters(part.get("items"), depth - 1)


def _choices(part: Json, limit: int) -> list[str]:
    """The first values of an enumeration that are words."""
    choices = part.get("enum") if isinstance(part, dict) else None
    return [c for c in choices[:limit] if isinstance(c, str)] if isinstance(choices, list) else []


def _signature(schema: Json) -> str:
    """The top-level parameters as a phrase: `assignee, status: open closed`."""
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
    """The tool as one passage for a model: server, name, parameters, description.

    The parameters come before the description: models read a limited number of tokens, and the end
    of a long description says less than the names of the parameters.
    """
    head = " ".join(
        (identifier_to_phrase(fields.server), identifier_to_phrase(fields.name))
    ).strip()
    takes = f" ({fields.signature})" if fields.signature else ""
    # A sentence counts once: repeating it would pull the tool towards queries worded like it.
    sentences = " ".join(dict.fromkeys(_SENTENCE_END.split(fields.description)))
    return f"{head}{takes}. {sentences}"[:700]
