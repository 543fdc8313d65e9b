"""`eager` and `stub`: the modes that list every tool.

    eager   every tool with its full schemas; what clients get without Pegboard
    stub    every tool by name and summary; `tools/describe` gives the rest

Neither has meta-tools: the tools are called by their names.
"""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.core.json import JsonObject
from pegboard.modes.list_entries import list_full, list_pinned, list_stubs
from pegboard.modes.mode import MetaToolBuilder, View


class EagerMode:
    """Lists everything and adds nothing."""

    name = "eager"

    async def entries(self, view: View) -> list[JsonObject]:
        return list_full(view)

    def builders(self, view: View) -> Mapping[str, MetaToolBuilder]:
        return {}


class StubMode:
    """Lists every tool as a stub; pins are listed whole."""

    name = "stub"

    async def entries(self, view: View) -> list[JsonObject]:
        whole = {entry["name"]: entry for entry in list_pinned(view)}
        return [whole.get(entry["name"], entry) for entry in list_stubs(view)]

    def builders(self, view: View) -> Mapping[str, MetaToolBuilder]:
        return {}
