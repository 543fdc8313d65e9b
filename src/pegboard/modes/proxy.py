"""`proxy`: a constant handful of meta-tools, so that the prompt cache survives."""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.core.json import JsonObject
from pegboard.modes import call_tools
from pegboard.modes.mode import MetaTool, View, index_by_name
from pegboard.modes.read_result import build_read_result
from pegboard.modes.search_tools import build_describe_tools, build_search_tools
from pegboard.modes.tool_entries import list_pinned


class ProxyMode:
    """Search, describe, call by risk; with fan-out and large results where they are switched on."""

    name = "proxy"

    async def entries(self, view: View) -> list[JsonObject]:
        return [t.entry() for t in self.meta_tools(view).values()] + list_pinned(view)

    def meta_tools(self, view: View) -> Mapping[str, MetaTool]:
        tools = [
            build_search_tools(view),
            build_describe_tools(),
            *call_tools.build_call_meta_tools(view),
        ]
        if view.fan_out is not None:
            tools.append(call_tools.build_direct_call_tools(view))
        if view.read_result is not None:
            tools.append(build_read_result())
        return index_by_name(tools)
