"""`stub`: every tool by name and summary; `tools/describe` gives the rest."""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.core.json import JsonObject
from pegboard.faces.entries import every_stub, pinned
from pegboard.faces.face import MetaTool, View


class StubFace:
    """Lists every tool as an outline; pins are listed whole."""

    name = "stub"

    async def entries(self, view: View) -> list[JsonObject]:
        whole = {entry["name"]: entry for entry in pinned(view)}
        return [whole.get(entry["name"], entry) for entry in every_stub(view)]

    def meta_tools(self, view: View) -> Mapping[str, MetaTool]:
        return {}
