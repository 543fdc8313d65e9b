"""`proxy`: a constant handful of meta-tools, so that the prompt cache survives."""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.core.json import JsonObject
from pegboard.faces import calling, fanning
from pegboard.faces.entries import pinned
from pegboard.faces.face import MetaTool, View, by_name
from pegboard.faces.reading import read_result
from pegboard.faces.searching import describe_tools, search_tools


class ProxyFace:
    """Search, describe, call by risk; with fan-out and large results where they are switched on."""

    name = "proxy"

    async def entries(self, view: View) -> list[JsonObject]:
        return [t.entry() for t in self.meta_tools(view).values()] + pinned(view)

    def meta_tools(self, view: View) -> Mapping[str, MetaTool]:
        tools = [search_tools(view), describe_tools(), *calling.call_tools(view)]
        if view.fan_out is not None:
            tools.append(fanning.direct_call_tools(view))
        if view.read_result is not None:
            tools.append(read_result())
        return by_name(tools)
