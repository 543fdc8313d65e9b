"""`eager` and `stub`: the modes that list every tool.

eager   every tool with its full schemas; what clients get without Pegboard
stub    every tool by name and summary; `tools/describe` gives the rest
"""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.core.json import JsonObject
from pegboard.modes.mode import MetaTool, View
from pegboard.modes.tool_entries import list_full, list_pinned, list_stubs


class EagerMode:
    """Lists everything and adds nothing."""

    name = "eager"

    async def entries(self, view: View) -> list[JsonObject]:
        return list_full(view)

    def meta_tools(self, view: View) -> Mapping[str, MetaTool]:
        return {}


class StubMode:
    """Lists every tool as an outline; pins are listed whole."""

    name = "stub"

    async def entries(self, view: View) -> list[JsonObject]:
        whole = {entry["name"]: entry for entry in list_pinned(view)}
        return [whole.get(entry["name"], entry) for entry in list_stubs(view)]

    def meta_tools(self, view: View) -> Mapping[str, MetaTool]:
        return {}
