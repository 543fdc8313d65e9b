"""`dynamic`: a search makes its matches first-class tools, for clients that follow `list_changed`.

    search_tools ──> matches are enabled on the session ──> `notifications/tools/list_changed`
                                                       ──> the next list has them, the client calls
                                                           them by name

Only for clients of the session era: MCP 2026-07-28 forbids a list that varies by connection, so
there the same setting means `proxy`. `call_tool` remains for clients that ignore the notification.
`server/list_changed.py` stores the enabled tools and sends the notification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pegboard.core.calls import CallResult
from pegboard.core.json import JsonObject, compact
from pegboard.core.token_budget import estimate_tokens
from pegboard.core.tool_parser import PROMPT_KEYS
from pegboard.core.tools import Tool
from pegboard.modes.call_tools import build_single_call_tool
from pegboard.modes.list_entries import full_entry
from pegboard.modes.mode import MetaTool, MetaToolBuilder, View, build_listed_meta_tools
from pegboard.modes.search_tools import (
    Need,
    build_search_tools,
    reply_to_search,
    run_search,
)


class DynamicMode:
    """Pins, search, and what this session has found so far."""

    name = "dynamic"

    async def entries(self, view: View) -> list[JsonObject]:
        pins = {t.id for t in view.pins}
        found = await view.session.enabled() if view.session else ()
        # In the order of the catalog: an order that changed with use would void the prompt cache.
        tools = [t for t in view.catalog.enabled if t.id in found and t.id not in pins]
        return [
            *(t.entry() for t in build_listed_meta_tools(self, view)),
            *(_entry(view, t) for t in (*view.pins, *tools)),
        ]

    def builders(self, view: View) -> Mapping[str, MetaToolBuilder]:
        return {"search_tools": _build_search, "call_tool": build_single_call_tool}


def _build_search(view: View) -> MetaTool:
    plain = build_search_tools(view)
    text = f"{plain.description}. Found tools become callable by name"
    return replace(plain, description=text, answer=_search_and_enable)


def _entry(view: View, tool: Tool) -> JsonObject:
    """A tool as it is listed here, without its output schema: every search would pay for it."""
    entry = full_entry(view.catalog, tool, with_fields=True)
    entry.pop("outputSchema", None)
    return entry


async def _search_and_enable(view: View, arguments: JsonObject) -> CallResult:
    from pegboard.core.search import Match  # slow to import, and no list needs it

    needs = await run_search(view, arguments)
    limit, category = arguments.get("limit"), arguments.get("category")
    # All needs of one search share its allowance: each enabled tool costs its whole schema.
    most = max(1, view.options.enabled_per_search // len(needs))
    enabled: dict[str, None] = {}
    for number, need in enumerate(needs):
        if whole := _find_whole_category(view, need.query, category):
            matches = [Match(tool, 1.0, ("category",)) for tool in whole[:limit]]
            needs[number] = Need(need.query, matches, len(whole))
        else:
            whole = [match.tool for match in need.matches[:most]]
            if limit is None:
                needs[number] = replace(need, matches=need.matches[:most])
        enabled |= dict.fromkeys(tool.id for tool in whole)
    pins = {t.id for t in view.pins}  # always listed: enabling one would waste a place
    if view.session is not None and (new := [id for id in enabled if id not in pins]):
        await view.session.enable(new)
    return reply_to_search(view, needs, arguments.get("detail"))


def _find_whole_category(view: View, query: str, category: str | None) -> Sequence[Tool]:
    """All tools of the category that a query is about, if there is one and it is small enough."""
    group = view.index().find_topic(query)
    if group is None or category not in (None, "", group.name):
        return ()
    members = [t for t in view.catalog.enabled if group.holds(t)]
    # Part of a category would be worse than none: the model would believe that it has all of it.
    if len(members) > view.options.session_cap:
        return ()
    entries = [_entry(view, tool) for tool in members]
    # An estimate, because counting tokens would cost more than the answer.
    read = "".join(compact(e.get(key, "")) for e in entries for key in PROMPT_KEYS)
    return members if estimate_tokens(read) <= view.options.category_tokens else ()
