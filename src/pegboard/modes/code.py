"""`code`: search, and programs that call many tools; only a program's result is returned."""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.core.json import JsonObject
from pegboard.modes.list_entries import list_meta_tools_and_pins
from pegboard.modes.mode import MetaToolBuilder, View
from pegboard.modes.read_result import READ_RESULT, build_read_result
from pegboard.modes.run_code import RUN_TOOLS
from pegboard.modes.search_tools import build_describe_tools, build_search_tools


class CodeMode:
    """Search and run; the list never changes."""

    name = "code"

    async def entries(self, view: View) -> list[JsonObject]:
        return list_meta_tools_and_pins(self, view)

    def builders(self, view: View) -> Mapping[str, MetaToolBuilder]:
        builders: dict[str, MetaToolBuilder] = {
            "search_tools": build_search_tools,
            "describe_tools": build_describe_tools,
            **RUN_TOOLS,
        }
        if view.read_result is not None:
            builders[READ_RESULT] = build_read_result
        return builders
