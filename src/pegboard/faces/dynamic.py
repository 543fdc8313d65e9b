"""`dynamic`: a search makes its matches first-class tools, for clients that follow `list_changed`.

Only towards clients of the session era: MCP 2026-07-28 forbids a list that varies by connection, so
there the same setting serves `proxy`. `call_tool` stays as a net for clients that ignore the
notification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pegboard.core.calls import CallResult
from pegboard.core.json import JsonObject
from pegboard.core.tools import Tool
from pegboard.faces.calling import single_call_tool
from pegboard.faces.entries import full, pinned
from pegboard.faces.face import MetaTool, View, by_name
from pegboard.faces.searching import answer_shape, answer_text, search, search_tools

if TYPE_CHECKING:
    from pegboard.core.search import Match


class DynamicFace:
    """Pins, search, and what this session has found so far."""

    name = "dynamic"

    async def entries(self, view: View) -> list[JsonObject]:
        pins = {t.id for t in view.pins}
        found = await view.session.enabled() if view.session else ()
        # In the catalogue's order: a list whose order changed with use would void the prompt cache.
        tools = [t for t in view.catalog.enabled if t.id in found and t.id not in pins]
        return [
            *(t.entry() for t in self.meta_tools(view).values()),
            *pinned(view),
            *(full(view.catalog, t, with_fields=True) for t in tools),
        ]

    def meta_tools(self, view: View) -> Mapping[str, MetaTool]:
        plain = search_tools(view)
        text = f"{plain.description}. Found tools become callable by name"
        finder = MetaTool(plain.name, text, plain.parameters, _search_and_enable, plain.annotations)
        return by_name([finder, single_call_tool(view)])


async def _search_and_enable(view: View, arguments: JsonObject) -> CallResult:
    matches, total = search(view, arguments)
    tools = _worth_enabling(view, arguments["query"], matches)
    pins = {t.id for t in view.pins}  # listed anyway: they take no room
    if view.session is not None and (new := [t.id for t in tools if t.id not in pins]):
        await view.session.enable(new)
    detail = arguments.get("detail") or "signature"
    return view.reply(
        answer_text(view, matches, total, detail), answer_shape(view, matches, total, detail)
    )


def _worth_enabling(view: View, query: str, matches: Sequence[Match]) -> list[Tool]:
    """The matches; or the whole category when the query is about one and it is small enough."""
    most = view.options.enabled_per_search
    group = view.index().group(query)
    if group is not None and matches:
        members = [t for t in view.catalog.enabled if group.holds(t)]
        if len(members) <= most:
            return members
    return [m.tool for m in matches[:most]]
