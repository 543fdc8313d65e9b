"""`search_tools` and `describe_tools`: from a task in words to everything that a call needs.

    search_tools(query)   -> one line per match: name, signature, summary
                          -> "No tool fits this", with the categories, where nothing is relevant
    describe_tools(names) -> the whole definition, where a signature leaves something out

Models read the text; the same as JSON is only built for clients that request structured content.
Whether a tool is relevant at all is decided by the index (`core/search/relevance.py`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from pegboard.core.calls import CallResult
from pegboard.core.events import SearchAnswered
from pegboard.core.json import JsonObject, compact
from pegboard.core.sanitization import sanitize_line
from pegboard.core.schemas import describe_parameters
from pegboard.core.tool_names import nearest
from pegboard.core.tools import Catalog, Category, Tool, group_name, is_in_group
from pegboard.errors import InvalidArguments, PegboardError, ToolNotFound
from pegboard.modes.mode import (
    MetaTool,
    View,
    find_tool,
    needs_from_names,
    object_schema,
)
from pegboard.ports import record_event

if TYPE_CHECKING:
    from pegboard.core.search import Match

Detail: TypeAlias = Literal["name", "summary", "signature", "full"]
DETAILS: tuple[Detail, ...] = ("name", "summary", "signature", "full")

DEFAULT_LIMIT = 10
MAX_LIMIT = 50
_READ_ONLY: JsonObject = {"readOnlyHint": True}
_CONTENTS_TOKENS = 32
"""Estimated tokens that the list of categories may take in the description of a meta-tool."""
_SEARCH_INSTRUCTIONS = 160
"""Characters of a server's instructions below the top match of a search."""
_MAX_INSTRUCTIONS = 3
"""Servers whose instructions one answer of `describe_tools` includes."""
_PIECES = re.compile(r"[A-Za-z]+|\d+|\S")


def build_search_tools(view: View) -> MetaTool:
    """Finds tools; its description sums up the catalog, so that models know what to look for."""
    text = f"Find tools by task. {summarize_catalog(view)}"
    schema = object_schema(
        {
            "query": {"type": "string"},
            "limit": {"type": "integer"},
            "category": {"type": "string"},
            "detail": {"enum": list(DETAILS)},
        },
        ["query"],
    )
    return MetaTool("search_tools", text, schema, _search, _READ_ONLY)


def build_describe_tools(view: View) -> MetaTool:
    """Describes tools completely, where their signatures were not enough."""
    schema = object_schema({"names": {"type": "array", "items": {"type": "string"}}}, ["names"])
    text = "All about tools, when a signature has …"
    needs = needs_from_names("names")
    return MetaTool("describe_tools", text, schema, _describe, _READ_ONLY, needs=needs)


def summarize_catalog(view: View) -> str:
    """The catalog in a line of bounded length: `470 tools: issues 42, drive 30, …`."""
    catalog, is_whole = view.listed, view.constant is None
    key = ("contents", is_whole)
    if key not in catalog.memo:
        catalog.memo[key] = _summarize(catalog, "" if is_whole else "+")
    return catalog.memo[key]


def _summarize(catalog: Catalog, more: str) -> str:
    total = f"{len(catalog.enabled)}{more}"
    groups = sorted(catalog.groups, key=lambda c: (-c.tool_count, c.name))
    shown: list[str] = []
    room = _CONTENTS_TOKENS
    for group in groups:
        # The number of a loader's tools is not known before it runs, but the category must show.
        part = f"{group.name} {group.tool_count}" if group.tool_count else group.name
        # Names are short: whole words and numbers cost a token each, whatever their length in
        # bytes, so the estimate for prose would be too high. No tokenizer is loaded for a list.
        room -= sum(1 + (len(piece) - 1) // 6 for piece in _PIECES.findall(part)) + 1
        if room < 0:
            shown.append("…")
            break
        shown.append(part)
    count = "Tools" if more and not catalog.enabled else f"{total} tools"
    return f"{count}: {', '.join(shown)}" if shown else count


def run_search(view: View, arguments: JsonObject) -> tuple[list[Match], int]:
    """The matches of a search, and how many there would be without its limit."""
    limit = _check_limit(arguments.get("limit"))
    category = check_category(view.catalog, arguments.get("category"))
    began = time.perf_counter()
    matches = view.search(arguments["query"], limit=MAX_LIMIT, category=category)
    record_event(
        view.observer,
        SearchAnswered(
            at=time.time(),
            mode=view.caller.mode or "",
            matches=len(matches),
            duration=time.perf_counter() - began,
            principal=view.caller.principal,
            client=view.caller.client,
            query=arguments["query"],
            found=tuple(match.tool.id for match in matches[:limit]),
        ),
    )
    return matches[:limit], len(matches)


def _check_limit(given: float | None) -> int:
    if given is None:
        return DEFAULT_LIMIT
    if given < 1:
        raise InvalidArguments(
            f"`limit` is {given:g}: ask for at least 1 tool, or leave it out for {DEFAULT_LIMIT}.",
            field="limit",
            expected=f"1 to {MAX_LIMIT}",
        )
    return int(min(given, MAX_LIMIT))


def matches_to_text(view: View, matches: Sequence[Match], total: int, detail: Detail) -> str:
    """Matches as a model reads them: one line each, and a note where there are more, or none."""
    if not matches:
        return " ".join([nothing_fits(view.catalog), *view.notes])
    lines = [_line(view, match.tool, detail) for match in matches]
    if detail != "name" and (quote := _quote_server(view, matches[0].tool, _SEARCH_INSTRUCTIONS)):
        lines.insert(1, quote)  # of the top match alone: all of them would cost more than matches
    if total > len(matches):
        lines.append(f"(+{total - len(matches)} more)")
    return "\n".join([*lines, *view.notes])


def matches_to_json(view: View, matches: Sequence[Match], total: int, detail: Detail) -> JsonObject:
    """Matches as structured content."""
    shape: JsonObject = {
        "matches": [_match(view, match, detail) for match in matches],
        "total": total,
    }
    top = matches[0].tool if matches and detail != "name" else None
    if top is not None and (text := get_server_instructions(view, top, _SEARCH_INSTRUCTIONS)):
        shape["matches"][0]["server_instructions"] = text
    notes = list(view.notes) if matches else [nothing_fits(view.catalog), *view.notes]
    if notes:
        shape["note"] = " ".join(notes)
    return shape


def nothing_fits(catalog: Catalog) -> str:
    """The note for a search without relevant matches; the categories suggest what exists."""
    names = ", ".join(c.name for c in catalog.groups[:30])
    return f"No tool fits this. Categories: {names}." if names else "There are no tools."


def check_category(catalog: Catalog, name: str | None) -> str | None:
    """The name of a category or server, or `None` where none is given.

    Raises:
        ToolNotFound: There is no such category or server; `.nearest` lists similar ones.
    """
    if not name:
        return None
    known = {c.name for c in catalog.groups} | {t.server for t in catalog if t.server}
    if name in known or any(is_in_group(tool, name) for tool in catalog):
        return name
    raise ToolNotFound(name, nearest(name, known) or sorted(known)[:10], what="category")


async def _search(view: View, arguments: JsonObject) -> CallResult:
    detail: Detail = arguments.get("detail") or "signature"
    matches, total = run_search(view, arguments)
    return view.reply(
        matches_to_text(view, matches, total, detail),
        lambda: matches_to_json(view, matches, total, detail),
    )


async def _describe(view: View, arguments: JsonObject) -> CallResult:
    names: list[str] = arguments["names"]
    if not names:
        raise InvalidArguments("`names` is empty: give the names of one or more tools.")
    found: list[Tool] = []
    missing: list[JsonObject] = []
    for name in dict.fromkeys(names):
        try:
            found.append(find_tool(view, name))
        except PegboardError as exc:
            missing.append({"name": name, "nearest": exc.details.get("nearest", [])})
    parts = [describe_as_text(view, tool) for tool in found]
    parts += [
        f"{m['name']}: unknown." + (f" Nearest: {', '.join(m['nearest'])}." if m["nearest"] else "")
        for m in missing
    ]
    by_server = {t.server: t for t in found if get_server_instructions(view, t)}
    quoted = list(by_server.values())[:_MAX_INSTRUCTIONS]
    parts += [_quote_server(view, tool) for tool in quoted]

    def structured() -> JsonObject:
        shape: JsonObject = {
            "tools": [describe_as_json(view, t) for t in found],
            "missing": missing,
        }
        if quoted:
            texts = {t.server: get_server_instructions(view, t) for t in quoted}
            shape["server_instructions"] = texts
        return shape

    return view.reply("\n\n".join(parts), structured)


def get_server_instructions(view: View, tool: Tool, limit: int | None = None) -> str:
    """How the server of a tool says its tools are used; empty where it says nothing."""
    text = view.instructions.get(tool.server or "", "")
    return text if limit is None else sanitize_line(text, limit)


def _quote_server(view: View, tool: Tool, limit: int | None = None) -> str:
    """The same as a line, attributed to the server so that it does not look like our own words."""
    text = get_server_instructions(view, tool, limit)
    quoted = text.replace('"', "'")  # so that the text cannot end the quotation
    return f'Server {tool.server} says of its tools: "{quoted}"' if text else ""


def describe_as_text(view: View, tool: Tool) -> str:
    """Everything that a caller needs to know about a tool, in fewer tokens than its JSON."""
    lines = [f"{view.catalog.address(tool)}{_marks(view, tool)}"]
    if tool.description:
        lines.append(tool.description)
    parts = describe_parameters(tool.input_schema)
    # Where lines cannot express the whole schema, the schema itself is given: a call needs it all.
    lines.append(parts.text if parts.complete else compact(tool.input_schema))
    if tool.returns:
        lines.append(f"-> {tool.returns}")
    lines += [f"Example: {e.description}: {compact(dict(e.invocation))}" for e in tool.examples]
    if related := view.related(tool):
        lines.append(f"Related: {', '.join(related)}")
    return "\n".join(line for line in lines if line)


def describe_as_json(view: View, tool: Tool) -> JsonObject:
    """The full definition under the name that a call would use."""
    shape = {**tool.wire(), "name": view.catalog.address(tool), "risk": tool.risk}
    shape["risk_source"] = tool.risk_source
    if tool.category:
        shape["category"] = group_name(tool)
    if tool.examples:
        shape["examples"] = [
            {"description": e.description, "invocation": dict(e.invocation)} for e in tool.examples
        ]
    if tool.deprecated:
        shape["deprecated"] = tool.deprecated
    return shape


def signature_with_address(catalog: Catalog, tool: Tool) -> str:
    """The signature under the name that a call would use."""
    return catalog.address(tool) + tool.signature[len(tool.name) :]


def _line(view: View, tool: Tool, detail: Detail) -> str:
    if detail == "full":
        return describe_as_text(view, tool)
    address = view.catalog.address(tool)
    head = signature_with_address(view.catalog, tool) if detail == "signature" else address
    tail = "" if detail == "name" or not tool.summary else f" - {tool.summary}"
    return f"{head}{_marks(view, tool)}{tail}"


def _marks(view: View, tool: Tool) -> str:
    marks = [tool.risk] if view.splits_risk and tool.risk != "read" else []
    if tool.deprecated:
        marks.append("deprecated")
    if not tool.enabled:
        marks.append("disabled")
    return f" [{', '.join(marks)}]" if marks else ""


def _match(view: View, match: Match, detail: Detail) -> JsonObject:
    tool = match.tool
    shape: JsonObject = {
        "name": view.catalog.address(tool),
        "category": group_name(tool) if tool.category else None,
        "server": tool.server,
        "signature": signature_with_address(view.catalog, tool),
        "summary": tool.summary,
        "score": round(match.score, 4),
        "risk": tool.risk,
        "risk_source": tool.risk_source,
    }
    if detail == "full":
        shape["inputSchema"] = tool.input_schema
    shorter = {
        "name": ("name", "score"),
        "summary": ("name", "summary", "category", "server", "score"),
    }
    return {k: shape[k] for k in shorter[detail]} if detail in shorter else shape


def categories_to_json(categories: Sequence[Category]) -> list[JsonObject]:
    return [
        {"name": c.name, "description": c.description, "tool_count": c.tool_count}
        for c in categories
    ]
