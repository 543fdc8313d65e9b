"""Queries that name a tool outright."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pegboard.core.search.text import spoken, squeezed, terms
from pegboard.core.tools import Tool

_TOKEN = re.compile(r"[^\s,;\"'`()<>]+")
_JOINT = re.compile(r"[^\W_](?:[_./:-]+|(?<=[a-z])(?=[A-Z]))[^\W_]")

_MOST_TOKENS = 20
"""Identifiers in one query that are looked up."""


class Names:
    """Tools by every name they answer to, whatever the case and the separators.

    An alias, or a server's own name for its tool, counts only where no tool has that name: a server
    chooses those, and must not come before the tool that is meant.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._names: dict[str, list[int]] = {}
        self._aliases: dict[str, list[int]] = {}
        self._servers = {squeezed(tool.server) for tool in tools if tool.server}
        for number, tool in enumerate(tools):
            for name in {squeezed(tool.name), squeezed(tool.id)}:
                _add(self._names, name, number)
            for alias in {squeezed(alias) for alias in tool.aliases}:
                _add(self._aliases, alias, number)

    def named(self, query: str) -> Named:
        """The tools that the query names: the whole of it, or an identifier inside it."""
        whole = self._find([squeezed(query)])
        if whole.exactly or whole.otherwise:
            return whole
        tokens = [token for token in _TOKEN.findall(query) if _JOINT.search(token)]
        return self._find([squeezed(token) for token in tokens[:_MOST_TOKENS]])

    def _find(self, names: Sequence[str]) -> Named:
        exactly = {n: None for name in names for n in self._names.get(name, ())}
        left = [name for name in names if name and name not in self._names]
        otherwise = {n: None for name in left for n in self._aliases.get(name, ())}
        for name in left:  # a server's own name: its id without the server
            for server in self._servers:
                otherwise |= dict.fromkeys(self._names.get(server + name, ()))
        return Named(list(exactly), [n for n in otherwise if n not in exactly])


class Named(NamedTuple):
    """Tools by number: those of that name or id, and those that have it beside another."""

    exactly: list[int]
    otherwise: list[int]


def spells(tool: Tool, words: frozenset[str]) -> bool:
    """Whether these are the words of a tool's name, in any order: "get jira issue"."""
    return words in (name_words(tool.own_name), name_words(tool.name))


def name_words(name: str) -> frozenset[str]:
    """The terms of a name or of a query that may be one, whatever its separators."""
    return frozenset(terms(spoken(name)))


def _add(found: dict[str, list[int]], name: str, number: int) -> None:
    if name:
        found.setdefault(name, []).append(number)
