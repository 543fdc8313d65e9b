"""`eager`: every tool with its full schemas; what clients get without Pegboard."""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.core.json import JsonObject
from pegboard.faces.entries import every_full
from pegboard.faces.face import MetaTool, View


class EagerFace:
    """Lists everything and adds nothing."""

    name = "eager"

    async def entries(self, view: View) -> list[JsonObject]:
        return every_full(view)

    def meta_tools(self, view: View) -> Mapping[str, MetaTool]:
        return {}
