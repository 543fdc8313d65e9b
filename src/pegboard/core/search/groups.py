"""Queries that ask for a group: "everything about milestones", "all github tools"."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pegboard.core.search.text import clean, split, terms
from pegboard.core.search.vocabulary import GROUP_FILLERS, GROUP_WORDS, TOPIC_WORDS
from pegboard.core.tools import Tool, group_of


@dataclass(frozen=True, slots=True)
class Group:
    """A category, a server, or a section of one, by its name in the catalogue."""

    kind: Literal["category", "server", "section"]
    name: str

    def holds(self, tool: Tool) -> bool:
        """Whether the tool belongs to it."""
        if self.kind == "section":
            return tool.section is not None and group_of(tool) == self.name
        return (tool.category if self.kind == "category" else tool.server) == self.name


class Groups:
    """The groups of a catalogue, by the words of their names."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        seen: dict[tuple[Group, str], None] = {}
        for tool in tools:
            if tool.category:
                seen[Group("category", tool.category), tool.category] = None
            if tool.server:
                seen[Group("server", tool.server), tool.server] = None
            if tool.section:
                seen[Group("section", group_of(tool)), tool.section] = None
        self._named: dict[frozenset[str], Group] = {}
        # What a server calls its categories comes last: it must not stand for another's.
        for group, name in sorted(seen, key=lambda g: (g[0].kind == "section", g[0].kind, g[1])):
            if words := _words(name):
                self._named.setdefault(words, group)

    def asked(self, query: str) -> Group | None:
        """The group that a query asks for as a whole; `None` for a query about some tool."""
        words = split(clean(query, 200))
        if not GROUP_WORDS.intersection(words):
            return None
        rest = " ".join(w for w in words if w not in GROUP_WORDS and w not in GROUP_FILLERS)
        return self._named.get(_words(rest)) or self._named.get(_words(clean(query, 200)))

    def named(self, query: str) -> Group | None:
        """The group that a query names and says nothing else of: "issues", "issue management"."""
        words = split(clean(query, 200))
        rest = " ".join(word for word in words if word not in TOPIC_WORDS)
        return self._named.get(_words(" ".join(words))) or self._named.get(_words(rest))


def _words(name: str) -> frozenset[str]:
    return frozenset(terms(clean(name, 200)))
