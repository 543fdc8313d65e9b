"""`search_tools` and `describe_tools`: from a task in words to everything that a call needs.

    search_tools(queries) -> for each query: the best tools with signatures, then others by name
                          -> "No tool does this", with the nearest, where nothing fits well
    describe_tools(names) -> the whole definition, where a signature leaves something out

Answers shrink with rank and confidence, because every line is paid for in tokens by every turn that
follows: the best match with what it returns, close rivals with signatures, the rest by name. Which
tools are relevant at all is decided by the index (`core/search/relevance.py`). Models read the
text; the same as JSON is only built for clients that request structured content.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import indent
from typing import TYPE_CHECKING, Literal, TypeAlias

from anyio.lowlevel import checkpoint

from pegboard.core.calls import CallResult
from pegboard.core.code.program_tools import ProgramTools, describe_tool
from pegboard.core.events import SearchAnswered
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.sanitization import sanitize_line
from pegboard.core.schemas import describe_parameters, format_brief_signature
from pegboard.core.schemas.signatures import BRIEF_LIMIT, ELLIPSIS
from pegboard.core.similar_names import nearest
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

DEFAULT_LIMIT = 8
MAX_LIMIT = 50
MAX_QUERIES = 20
_MAX_TEXT = 20_000
"""Characters of a query that are read: more than the search itself uses."""
MAX_NAMES = 200
_MAX_SIGNATURES = 3
"""Matches of one query that are shown with their signatures."""
_RIVAL = 0.7
"""The share of the best score from which on a match is worth its signature."""
_ALTERNATIVE = 0.55
"""The share of the best score from which on a match is worth its name."""
_DESTRUCTIVE = 0.85
"""The share from which on a destructive tool is shown below one that is not."""
_SUMMARY_LENGTH = 90
_MAX_CATEGORIES = 12
_MAX_NEAREST = 3
_BEST_SIGNATURE_LENGTH = 280
_SHAPE_LENGTH = 120
_DESCRIBED_SHAPE_LENGTH = 240
_READ_ONLY: JsonObject = {"readOnlyHint": True}
_CONTENTS_TOKENS = 10
"""Estimated tokens that the list of categories may take in the description of a meta-tool."""
_SEARCH_INSTRUCTIONS = 160
"""Characters of a server's instructions below the top match of a search."""
_MAX_INSTRUCTIONS = 3
"""Servers whose instructions one answer of `describe_tools` includes."""
_MAX_DEFINITION = 60_000
"""Characters of one tool's definition: more than real tools have, and less than a context."""
_TEXTS: JsonObject = {"type": "array", "items": {"type": "string"}}
SEARCH_TOOLS = "search_tools"
DESCRIBE_TOOLS = "describe_tools"
SEARCH_ARGUMENTS: JsonObject = object_schema(
    {
        "queries": {"anyOf": [{"type": "string"}, _TEXTS]},
        "query": {"anyOf": [{"type": "string"}, _TEXTS]},
        "limit": {"type": "integer"},
        "category": {"type": "string"},
        "detail": {"enum": list(DETAILS)},
    }
)
"""What `search_tools` accepts: more than it lists, since models also guess `query`."""
_HOW_TO_SEE_ALL = '(for what … leaves out: call_tool name "describe_tools", arguments {"names"})'
_HOW_TO_SEE_ALL_BY_SEARCH = (
    '(for what … leaves out: search_tools {"queries":[name],"detail":"full","limit":1})'
)
"""For the `code` mode, which lists no call tool: clients let a model call only what is listed."""
_PIECES = re.compile(r"[A-Za-z]+|\d+|\S")


def build_search_tools(view: View) -> MetaTool:
    """Finds tools; its description sums up the catalog, so that models know what to look for."""
    text = f"Find tools for tasks, one query each. {summarize_catalog(view)}"
    schema = object_schema({"queries": _TEXTS}, ["queries"])
    return MetaTool(SEARCH_TOOLS, text, schema, _search, _READ_ONLY, accepts=SEARCH_ARGUMENTS)


def build_describe_tools(view: View) -> MetaTool:
    """Describes tools completely, where their signatures were not enough."""
    return MetaTool(
        DESCRIBE_TOOLS,
        "Show the whole definition of tools, where a signature has …",
        object_schema({"names": _TEXTS}, ["names"]),
        _describe,
        _READ_ONLY,
        needs=needs_from_names("names"),
        is_listed=False,
    )


def summarize_catalog(view: View) -> str:
    """The catalog in a line of bounded length: `470 tools: issues, drive, …`."""
    catalog, is_whole = view.listed, view.constant is None
    key = ("contents", is_whole)
    if key in catalog.memo:
        return catalog.memo[key]
    shown: list[str] = []
    room = _CONTENTS_TOKENS
    for name in _largest_groups(catalog):
        # Names are short: whole words and numbers cost a token each, whatever their length in
        # bytes, so the estimate for prose would be too high. No tokenizer is loaded for a list.
        room -= sum(1 + (len(piece) - 1) // 6 for piece in _PIECES.findall(name)) + 1
        if room < 0:
            shown.append("…")
            break
        shown.append(name)
    count = f"{len(catalog.enabled)} tools"
    if not is_whole:  # more may be loaded later
        count = f"{len(catalog.enabled)}+ tools" if catalog.enabled else "Tools"
    text = catalog.memo[key] = f"{count}: {', '.join(shown)}" if shown else count
    return text


def _largest_groups(catalog: Catalog) -> list[str]:
    """The groups by size; where there are several servers, sections of one count as the server."""
    servers = {tool.server for tool in catalog.enabled}
    counts: dict[str, int] = {}
    for group in catalog.groups:
        top = group.name.partition("/")[0]
        name = top if len(servers) > 1 and top in servers else group.name
        counts[name] = counts.get(name, 0) + group.tool_count
    return sorted(counts, key=lambda name: (-counts[name], name))


@dataclass(frozen=True, slots=True)
class Need:
    """One query of a search and the tools that were found for it."""

    query: str
    matches: Sequence[Match]
    total: int
    """Matches without the limit."""
    has_limit: bool = False
    """Whether the caller said how many matches to show."""

    @property
    def is_weak(self) -> bool:
        """Whether even the best match probably does something else."""
        from pegboard.core.search.relevance import is_near_miss  # numpy, which no list needs

        best = self.matches[0] if self.matches else None
        return best is not None and is_near_miss(self.query, best.tool, best.score)


async def run_search(view: View, arguments: JsonObject) -> list[Need]:
    """What was found for each query; other requests are answered in between."""
    given: float | None = arguments.get("limit")
    if given is not None and given < 1:
        raise InvalidArguments(
            f"`limit` is {given:g}: ask for at least 1 tool, or leave it out for {DEFAULT_LIMIT}.",
            field="limit",
            expected=f"1 to {MAX_LIMIT}",
        )
    limit = DEFAULT_LIMIT if given is None else int(min(given, MAX_LIMIT))
    category = check_category(view.catalog, arguments.get("category"))
    needs: list[Need] = []
    for query in parse_queries(arguments):
        began = time.perf_counter()
        matches = view.search(query, limit=MAX_LIMIT, category=category)
        answered = SearchAnswered(
            at=time.time(),
            mode=view.caller.mode or "",
            matches=len(matches),
            duration=time.perf_counter() - began,
            principal=view.caller.principal,
            client=view.caller.client,
            query=query,
            found=tuple(match.tool.id for match in matches[:limit]),
        )
        record_event(view.observer, answered)
        needs.append(Need(query, matches[:limit], len(matches), has_limit=given is not None))
        await checkpoint()
    return needs


def parse_queries(arguments: JsonObject) -> list[str]:
    """The queries of a search, each once; some agents put several into one text.

    Raises:
        InvalidArguments: There are none, or too many.
    """
    from pegboard.core.search.queries import split_query_lines

    given: Json = arguments.get("queries") or arguments.get("query") or []
    texts = [given] if isinstance(given, str) else given
    lines = (line.strip() for text in texts for line in split_query_lines(text[:_MAX_TEXT]))
    queries = [query for query in dict.fromkeys(lines) if query]
    if not queries:
        raise InvalidArguments(
            "`queries` is empty: say what you want to do, one query per need.", field="queries"
        )
    if len(queries) > MAX_QUERIES:
        raise InvalidArguments(
            f"{len(queries)} queries at once are too many: at most {MAX_QUERIES}.", field="queries"
        )
    return queries


def needs_to_text(view: View, needs: Sequence[Need], detail: Detail | None) -> str:
    """An answer as a model reads it; no tool is described twice."""
    lines: list[str] = []
    shown: set[str] = set()
    quoted: set[str | None] = set()
    for need in needs:
        if len(needs) > 1:
            lines.append(f"{sanitize_line(need.query, _SUMMARY_LENGTH)}:")
        lines += _need_lines(view, need, detail, shown)
        top = need.matches[0].tool if need.matches and detail != "name" else None
        if top is not None and top.server not in quoted and not need.is_weak:
            # Of top matches alone, each server once: all would cost more than the matches.
            lines += filter(None, [_quote_server(view, top, _SEARCH_INSTRUCTIONS)])
            quoted.add(top.server)
    # A signature with an ellipsis leaves out something that a call may need.
    if detail is None and any(
        "(" in line and ELLIPSIS in line.partition(") ")[0] for line in lines
    ):
        has_call_tool = view.caller.mode != "code"
        lines.append(_HOW_TO_SEE_ALL if has_call_tool else _HOW_TO_SEE_ALL_BY_SEARCH)
    return "\n".join([*lines, *view.notes])


def _need_lines(view: View, need: Need, detail: Detail | None, shown: set[str]) -> list[str]:
    if not need.matches:
        return [nothing_fits(view.catalog)]
    if detail is not None:
        lines = [_line(view, match.tool, detail) for match in need.matches]
        described = need.matches
    elif need.is_weak:
        best, *others = (match.tool for match in need.matches[:_MAX_NEAREST])
        lines = [f"No tool clearly does this. Nearest: {_brief_line(view, best, is_best=False)}"]
        also: list[str] = []
        for tool in others:
            summary = sanitize_line(tool.summary or "", _SUMMARY_LENGTH)
            also.append(view.catalog.address(tool) + (f" ({summary})" if summary else ""))
        return [*lines, f"Also: {', '.join(also)}"] if also else lines
    else:
        described, named = _split_by_confidence(need, shown)
        best = need.matches[0]
        lines = [_brief_line(view, m.tool, is_best=m is best) for m in described]
        if best.tool.id in shown:
            lines.insert(0, f"{view.catalog.address(best.tool)}: see above")
        if named:
            names = ", ".join(view.catalog.address(match.tool) for match in named)
            lines.append(f"Also: {names}")
    shown.update(match.tool.id for match in described)
    return lines


def _split_by_confidence(need: Need, shown: set[str]) -> tuple[list[Match], list[Match]]:
    """The matches that are worth a signature, and those that are worth their name."""
    from pegboard.core.search import relevance

    best, *others = need.matches
    best_score = relevance.raw_score(best.score)
    described = [] if best.tool.id in shown else [best]
    named: list[Match] = []
    for match in others:
        tool, share = match.tool, relevance.raw_score(match.score) / best_score
        # Which of several servers is meant, a query often does not say, so a tool of the same name
        # is a rival whatever its score.
        is_same = tool.own_name == best.tool.own_name
        # The best tool for one part of the query is an answer, however it fits the whole.
        is_answer = match.need is not None
        is_odd = (
            tool.risk == "destructive" != best.tool.risk and share < _DESTRUCTIVE and not is_answer
        )
        is_rival = not is_odd and (share >= _RIVAL or is_same or is_answer)
        if not need.has_limit and not is_rival and (is_odd or share < _ALTERNATIVE):
            continue
        has_room = is_answer or len(described) < _MAX_SIGNATURES
        if is_rival and has_room and tool.id not in shown:
            described.append(match)
        else:
            named.append(match)
    return described, named


def needs_to_json(view: View, needs: Sequence[Need], detail: Detail | None) -> JsonObject:
    """An answer as structured content: `matches` for one query, `needs` for several."""
    detail = detail or "signature"
    shorter = {
        "name": ("name", "score"),
        "summary": ("name", "summary", "category", "server", "score"),
    }
    parts: list[JsonObject] = []
    for need in needs:
        matches: list[JsonObject] = []
        for match in need.matches:
            tool = match.tool
            entry: JsonObject = {
                "name": view.catalog.address(tool),
                "category": group_name(tool) if tool.category else None,
                "server": tool.server,
                "signature": signature_with_address(view.catalog, tool),
                "summary": tool.summary,
                "returns": view.returns(tool) or None,
                "score": round(match.score, 4),
                "risk": tool.risk,
                "risk_source": tool.risk_source,
            }
            if detail == "full":
                entry["inputSchema"] = tool.input_schema
            keys = shorter.get(detail, tuple(entry))
            matches.append({key: entry[key] for key in keys})
        part: JsonObject = {"matches": matches, "total": need.total}
        top = need.matches[0].tool if matches and detail != "name" else None
        if top is not None and (text := get_server_instructions(view, top, _SEARCH_INSTRUCTIONS)):
            matches[0]["server_instructions"] = text
        if not matches:
            part["note"] = nothing_fits(view.catalog)
        elif need.is_weak:
            part["note"] = "No tool clearly does this."
        parts.append(part)
    shape: JsonObject = parts[0]
    if len(parts) > 1:
        shape = {"needs": [{"query": n.query, **p} for n, p in zip(needs, parts, strict=True)]}
    if view.notes:
        own: list[str] = [shape["note"]] if "note" in shape else []
        shape["note"] = " ".join([*own, *view.notes])
    return shape


def nothing_fits(catalog: Catalog) -> str:
    """The note for a search without relevant matches; the categories suggest what exists."""
    groups = _largest_groups(catalog)
    names = ", ".join(sorted(groups[:_MAX_CATEGORIES]))
    more = ", …" if len(groups) > _MAX_CATEGORIES else ""
    return f"No tool does this. Categories: {names}{more}." if names else "There are no tools."


def check_category(catalog: Catalog, name: str | None) -> str | None:
    """The name of a category or server, or `None` if none is given.

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
    return reply_to_search(view, await run_search(view, arguments), arguments.get("detail"))


def reply_to_search(view: View, needs: Sequence[Need], detail: Detail | None) -> CallResult:
    """The answer of `search_tools`."""
    text = needs_to_text(view, needs, detail)
    return view.reply(text, lambda: needs_to_json(view, needs, detail))


def find_inner_meta_tool(view: View, name: Json) -> MetaTool | None:
    """`search_tools` or `describe_tools` as the `name` of a call, unless a tool has that name."""
    builders = {SEARCH_TOOLS: build_search_tools, DESCRIBE_TOOLS: build_describe_tools}
    build = builders.get(name) if isinstance(name, str) else None
    return None if build is None or view.catalog.named(name) else build(view)


async def _describe(view: View, arguments: JsonObject) -> CallResult:
    names: list[str] = arguments["names"]
    if not names:
        raise InvalidArguments("`names` is empty: give the names of one or more tools.")
    if len(names) > MAX_NAMES:
        raise InvalidArguments(
            f"{len(names)} names at once are too many: at most {MAX_NAMES}.", field="names"
        )
    found: list[Tool] = []
    missing: list[JsonObject] = []
    for name in dict.fromkeys(names):
        try:
            found.append(find_tool(view, name))
        except PegboardError as exc:
            missing.append({"name": name, "nearest": exc.details.get("nearest", [])})
            await checkpoint()  # looking for similar names takes a while
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
    """How the server of a tool says its tools are used; empty if it says nothing."""
    text = view.instructions.get(tool.server or "", "")
    if limit is None:
        return text
    # The beginning as one line, up to the end of a sentence where there is one.
    line = sanitize_line(text, limit)
    end = max(line.rfind(". "), line.rfind("! ")) + 1
    return line[:end] if line.endswith(ELLIPSIS) and end else line


def _quote_server(view: View, tool: Tool, limit: int | None = None) -> str:
    """The same as a line, attributed to the server so that it does not look like our own words."""
    text = get_server_instructions(view, tool, limit)
    quoted = text.replace('"', "'")  # so that the text cannot end the quotation
    return f'Server {tool.server} says of its tools: "{quoted}"' if text else ""


def describe_as_text(view: View, tool: Tool) -> str:
    """Everything that a caller needs to know about a tool, in fewer tokens than its JSON."""
    lines = [f"{view.catalog.address(tool)}{_marks(view, tool)}"]
    if tool.description:
        # Indented, so that none of its lines can pose as one of ours or as another tool.
        lines.append(indent(tool.description, "  "))
    parts = describe_parameters(tool.input_schema)
    # Where lines cannot express the whole schema, the schema itself is given: a call needs it all.
    lines.append(parts.text if parts.complete else compact(tool.input_schema))
    if returns := view.returns(tool, limit=_DESCRIBED_SHAPE_LENGTH):
        lines.append(f"-> {returns}")
    lines += [f"Example: {e.description}: {compact(dict(e.invocation))}" for e in tool.examples]
    if related := view.related(tool):
        lines.append(f"Related: {', '.join(related)}")
    text = "\n".join(line for line in lines if line)
    if len(text) <= _MAX_DEFINITION:
        return text
    return f"{text[:_MAX_DEFINITION]}… (cut: the definition has {len(text):,} characters)"


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


def _brief_line(view: View, tool: Tool, *, is_best: bool) -> str:
    """A tool in a search: what a call needs, what comes back from the best one, what it does."""
    if view.caller.mode == "code":
        name = ProgramTools.of(view.catalog).name_of(tool)
        return describe_tool(name, tool, *view.result_schema(tool))
    limit = _BEST_SIGNATURE_LENGTH if is_best else BRIEF_LIMIT
    signature = format_brief_signature(view.catalog.address(tool), tool.input_schema, limit=limit)
    shape = view.returns(tool, limit=_SHAPE_LENGTH) if is_best else ""
    returns = f" -> {shape}" if shape else ""
    summary = sanitize_line(tool.summary or "", _SUMMARY_LENGTH)
    return f"{signature}{returns}{_marks(view, tool)}{f' - {summary}' if summary else ''}"


def _marks(view: View, tool: Tool) -> str:
    marks = [tool.risk] if view.splits_risk and tool.risk != "read" else []
    if tool.deprecated:
        marks.append("deprecated")
    if not tool.enabled:
        marks.append("disabled")
    return f" [{', '.join(marks)}]" if marks else ""


def categories_to_json(categories: Sequence[Category]) -> list[JsonObject]:
    return [
        {"name": c.name, "description": c.description, "tool_count": c.tool_count}
        for c in categories
    ]
