"""Queries that name a tool outright."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pegboard.core.search.text import squeezed
from pegboard.core.tools import Tool

_TOKEN = re.compile(r"[^\s,;\"'`()<>]+")
_JOINT = re.compile(r"[^\W_](?:[_./:-]+|(?<=[a-z])(?=[A-Z]))[^\W_]")


class Names:
    """Tools by every name they answer to, whatever the case and the separators."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._found: dict[str, list[int]] = {}
        for number, tool in enumerate(tools):
            for name in {squeezed(n) for n in (tool.name, tool.id, *tool.aliases)}:
                if name:
                    self._found.setdefault(name, []).append(number)

    def named(self, query: str) -> Sequence[int]:
        """The tools that the query names: the whole of it, or an identifier inside it."""
        whole = self._found.get(squeezed(query))
        if whole:
            return whole
        found: dict[int, None] = {}
        for token in _TOKEN.findall(query):
            if _JOINT.search(token):
                found.update(dict.fromkeys(self._found.get(squeezed(token), ())))
        return list(found)
