"""Queries that name something: a tool ("create_issue") or a group ("all about milestones")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pegboard.core.search.terms import (
    GROUP_FILLERS,
    GROUP_WORDS,
    TOPIC_WORDS,
    clean,
    identifier_to_phrase,
    normalize_name,
    split,
    terms,
)
from pegboard.core.tools import Tool, group_name

_TOKEN = re.compile(r"[^\s,;\"'`()<>]+")
_JOINT = re.compile(r"[^\W_](?:[_./:-]+|(?<=[a-z])(?=[A-Z]))[^\W_]")

_MOST_TOKENS = 20
"""Identifiers in one query that are looked up."""


class ToolNames:
    """Tools by every name they answer to, whatever the case and the separators.

    An alias, or a server's own name for its tool, counts only where no tool has that name: a server
    chooses those, and must not come before the tool that is meant.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._names: dict[str, list[int]] = {}
        self._aliases: dict[str, list[int]] = {}
        self._servers = {normalize_name(tool.server) for tool in tools if tool.server}
        for number, tool in enumerate(tools):
            for name in {normalize_name(tool.name), normalize_name(tool.id)}:
                _add(self._names, name, number)
            for alias in {normalize_name(alias) for alias in tool.aliases}:
                _add(self._aliases, alias, number)

    def named(self, query: str) -> NamedTools:
        """The tools that the query names: the whole of it, or an identifier inside it."""
        whole = self._find([normalize_name(query)])
        if whole.exactly or whole.otherwise:
            return whole
        tokens = [token for token in _TOKEN.findall(query) if _JOINT.search(token)]
        return self._find([normalize_name(token) for token in tokens[:_MOST_TOKENS]])

    def _find(self, names: Sequence[str]) -> NamedTools:
        exactly = {n: None for name in names for n in self._names.get(name, ())}
        left = [name for name in names if name and name not in self._names]
        otherwise = {n: None for name in left for n in self._aliases.get(name, ())}
        for name in left:  # a server's own name: its id without the server
            for server in self._servers:
                otherwise |= dict.fromkeys(self._names.get(server + name, ()))
        return NamedTools(list(exactly), [n for n in otherwise if n not in exactly])


class NamedTools(NamedTuple):
    """Tools by number: those of that name or id, and those that have it beside another."""

    exactly: list[int]
    otherwise: list[int]


def matches_name(tool: Tool, words: frozenset[str]) -> bool:
    """Whether these are the words of a tool's name, in any order: "get jira issue"."""
    return words in (name_words(tool.own_name), name_words(tool.name))


def name_words(name: str) -> frozenset[str]:
    """The terms of a name or of a query that may be one, whatever its separators."""
    return frozenset(terms(identifier_to_phrase(name)))


def _add(found: dict[str, list[int]], name: str, number: int) -> None:
    if name:
        found.setdefault(name, []).append(number)


@dataclass(frozen=True, slots=True)
class Group:
    """A category, a server, or a section of one, by its name in the catalogue."""

    kind: Literal["category", "server", "section"]
    name: str

    def holds(self, tool: Tool) -> bool:
        """Whether the tool belongs to it."""
        if self.kind == "section":
            return tool.section is not None and group_name(tool) == self.name
        return (tool.category if self.kind == "category" else tool.server) == self.name


class GroupNames:
    """The groups of a catalogue, by the words of their names."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        seen: dict[tuple[Group, str], None] = {}
        for tool in tools:
            if tool.category:
                seen[Group("category", tool.category), tool.category] = None
            if tool.server:
                seen[Group("server", tool.server), tool.server] = None
            if tool.section:
                seen[Group("section", group_name(tool)), tool.section] = None
        self._named: dict[frozenset[str], Group] = {}
        # What a server calls its categories comes last: it must not stand for another's.
        for group, name in sorted(seen, key=lambda g: (g[0].kind == "section", g[0].kind, g[1])):
            if words := _name_terms(name):
                self._named.setdefault(words, group)

    def asked(self, query: str) -> Group | None:
        """The group that a query asks for as a whole; `None` for a query about some tool."""
        words = split(clean(query, 200))
        if not GROUP_WORDS.intersection(words):
            return None
        rest = " ".join(w for w in words if w not in GROUP_WORDS and w not in GROUP_FILLERS)
        return self._named.get(_name_terms(rest)) or self._named.get(_name_terms(clean(query, 200)))

    def named(self, query: str) -> Group | None:
        """The group that a query names and says nothing else of: "issues", "issue management"."""
        words = split(clean(query, 200))
        rest = " ".join(word for word in words if word not in TOPIC_WORDS)
        return self._named.get(_name_terms(" ".join(words))) or self._named.get(_name_terms(rest))


def _name_terms(name: str) -> frozenset[str]:
    return frozenset(terms(clean(name, 200)))
