"""`dynamic`: a search makes its matches first-class tools, for clients that follow `list_changed`.

Only towards clients of the session era: MCP 2026-07-28 forbids a list that varies by connection, so
there the same setting serves `proxy`. `call_tool` stays as a net for clients that ignore the
notification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pegboard.core.calls import CallResult
from pegboard.core.json import JsonObject, compact
from pegboard.core.tools import Tool
from pegboard.modes.auto import CHARACTERS_PER_TOKEN
from pegboard.modes.call_tools import build_single_call_tool
from pegboard.modes.mode import MetaTool, View, index_by_name
from pegboard.modes.search_tools import (
    build_search_tools,
    matches_to_json,
    matches_to_text,
    run_search,
)
from pegboard.modes.tool_entries import full_entry

_READ_BY_MODELS = ("name", "description", "inputSchema")


class DynamicMode:
    """Pins, search, and what this session has found so far."""

    name = "dynamic"

    async def entries(self, view: View) -> list[JsonObject]:
        pins = {t.id for t in view.pins}
        found = await view.session.enabled() if view.session else ()
        # In the catalogue's order: a list whose order changed with use would void the prompt cache.
        tools = [t for t in view.catalog.enabled if t.id in found and t.id not in pins]
        return [
            *(t.entry() for t in self.meta_tools(view).values()),
            *(_entry(view, t) for t in (*view.pins, *tools)),
        ]

    def meta_tools(self, view: View) -> Mapping[str, MetaTool]:
        plain = build_search_tools(view)
        text = f"{plain.description}. Found tools become callable by name"
        finder = MetaTool(plain.name, text, plain.parameters, _search_and_enable, plain.annotations)
        return index_by_name([finder, build_single_call_tool()])


def _entry(view: View, tool: Tool) -> JsonObject:
    """A tool as it is listed here: what a call needs. Each search would pay for output schemas."""
    entry = full_entry(view.catalog, tool, with_fields=True)
    entry.pop("outputSchema", None)
    return entry


async def _search_and_enable(view: View, arguments: JsonObject) -> CallResult:
    from pegboard.core.search import Match  # here, as no list needs it

    matches, total = run_search(view, arguments)
    if whole := _whole_category(view, arguments):
        enabled, total = whole, len(whole)
        matches = [Match(t, 1.0, ("category",)) for t in whole[: arguments.get("limit")]]
    else:
        most = view.options.enabled_per_search
        if arguments.get("limit") is None:
            matches = matches[:most]
        enabled = [m.tool for m in matches[:most]]
    pins = {t.id for t in view.pins}  # listed anyway: they take no room
    if view.session is not None and (new := [t.id for t in enabled if t.id not in pins]):
        await view.session.enable(new)
    detail = arguments.get("detail") or "signature"
    return view.reply(
        matches_to_text(view, matches, total, detail), matches_to_json(view, matches, total, detail)
    )


def _whole_category(view: View, arguments: JsonObject) -> Sequence[Tool]:
    """All tools of the category that a query is about, if there is one and it is small enough."""
    group = view.index().topic(arguments["query"])
    if group is None or arguments.get("category") not in (None, "", group.name):
        return ()
    members = [t for t in view.catalog.enabled if group.holds(t)]
    fits = len(members) <= view.options.session_cap
    return members if fits and _cost(view, members) <= view.options.category_tokens else ()


def _cost(view: View, tools: Sequence[Tool]) -> float:
    """About how many tokens the tools cost a model, once they are listed."""
    shown = [_entry(view, tool) for tool in tools]
    read = (compact(entry.get(key, "")) for entry in shown for key in _READ_BY_MODELS)
    return sum(map(len, read)) / CHARACTERS_PER_TOKEN
