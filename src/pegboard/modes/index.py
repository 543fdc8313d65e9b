"""`index`: two meta-tools, one that lists names and summaries and one that describes a tool.

    list_available_tools -> get_tool_description -> the tool itself, called by its name

A listing that would exceed its budget comes in pages, category by category: `next` is the
`category` to request next, with `#2` for a further page of a category that is itself too large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pegboard.core.calls import CallResult
from pegboard.core.json import JsonObject, compact, whole_number
from pegboard.core.schemas import list_parameters
from pegboard.core.token_budget import BYTES_PER_TOKEN
from pegboard.core.tools import Catalog, Tool, group_name, is_in_group
from pegboard.errors import InvalidArguments
from pegboard.modes.list_entries import declare_include_fields, list_meta_tools_and_pins
from pegboard.modes.mode import (
    MetaTool,
    MetaToolBuilder,
    View,
    find_tool,
    needs_from_names,
    object_schema,
)
from pegboard.modes.search_tools import check_category, get_server_instructions, summarize_catalog


class IndexMode:
    """Names and summaries first, then one description at a time."""

    name = "index"

    async def entries(self, view: View) -> list[JsonObject]:
        return list_meta_tools_and_pins(self, view)

    def builders(self, view: View) -> Mapping[str, MetaToolBuilder]:
        return {
            "list_available_tools": lambda view: MetaTool(
                "list_available_tools",
                f"List callable tools by name. {summarize_catalog(view)}",
                object_schema(
                    {"category": {"type": "string"}, "include_disabled": {"type": "boolean"}}
                ),
                _list,
                {"readOnlyHint": True},
            ),
            "get_tool_description": lambda view: _DESCRIPTION,
        }


async def _list(view: View, arguments: JsonObject) -> CallResult:
    named, page = arguments.get("category") or "", 1
    # A category may have `#` in its name, so only a number after the last one is a page.
    name, mark, number = named.rpartition("#")
    if mark and (given := whole_number(number)):
        named, page = name, given
    include_disabled = bool(arguments.get("include_disabled"))
    category = check_category(view.catalog, named) if named else None
    tools = [
        t
        for t in view.catalog
        if (t.enabled or include_disabled) and (category is None or is_in_group(t, category))
    ]
    shown, following = _paginate(view, tools, page, category)
    # All categories on every page: with them, the other pages may not be needed.
    shape: JsonObject = {
        "tools": [_row(view.catalog, t) for t in shown],
        "total": len(tools),
        "categories": [c.name for c in view.catalog.groups],
    }
    if following:
        shape["next"] = following
    if view.notes:
        shape["note"] = " ".join(view.notes)
    return view.reply_json(shape)


def _paginate(
    view: View, tools: Sequence[Tool], page: int, category: str | None
) -> tuple[Sequence[Tool], str | None]:
    """The tools of one page, and the `category` to request next."""
    room = view.options.page_tokens * BYTES_PER_TOKEN
    if category is None and page == 1:
        whole, rest = _whole_groups(view.catalog, tools, room)
        if not rest:
            return whole, None
        if whole:
            return whole, group_name(rest[0])
        first = group_name(rest[0])  # too large itself: it comes in pages of its own
        members = [t for t in tools if group_name(t) == first]
        return _slice_page(view.catalog, members, 1, room, first)
    return _slice_page(view.catalog, tools, page, room, category or "")


def _whole_groups(
    catalog: Catalog, tools: Sequence[Tool], room: float
) -> tuple[list[Tool], list[Tool]]:
    """As many whole groups as fit, in order, and the remaining tools."""
    by_group: dict[str, list[Tool]] = {}
    # Sorted, so that a page is the same whenever it is requested.
    for tool in sorted(tools, key=lambda t: (group_name(t), t.name)):
        by_group.setdefault(group_name(tool), []).append(tool)
    shown: list[Tool] = []
    for position, group in enumerate(by_group.values()):
        room -= sum(_size(catalog, t) for t in group)
        if room < 0:
            return shown, [t for later in list(by_group.values())[position:] for t in later]
        shown += group
    return shown, []


def _slice_page(
    catalog: Catalog, tools: Sequence[Tool], page: int, room: float, category: str
) -> tuple[Sequence[Tool], str | None]:
    pages: list[list[Tool]] = [[]]
    left = room
    for tool in tools:
        left -= _size(catalog, tool)
        # A tool that is larger than a page gets one of its own.
        if left < 0 and pages[-1]:
            pages.append([])
            left = room - _size(catalog, tool)
        pages[-1].append(tool)
    if page > len(pages):
        raise InvalidArguments(
            f"There is no page {page} of {category!r}: it has {len(pages)}.", field="category"
        )
    following = f"{category}#{page + 1}" if page < len(pages) else None
    return pages[page - 1], following


def _row(catalog: Catalog, tool: Tool) -> JsonObject:
    return {
        "name": catalog.address(tool),
        "summary": f"[deprecated] {tool.summary}" if tool.deprecated else tool.summary,
        "category": group_name(tool),
        "enabled": tool.enabled,
    }


def _size(catalog: Catalog, tool: Tool) -> int:
    return len(compact(_row(catalog, tool)))


async def _describe(view: View, arguments: JsonObject) -> CallResult:
    tool = find_tool(view, arguments["tool_name"])
    schema = tool.input_schema
    if tool.output_schema is not None:  # its fields are known, so they can be selected
        schema = declare_include_fields(schema)
    shape: JsonObject = {
        "name": view.catalog.address(tool),
        "description": tool.description or tool.summary,
        "parameters": list_parameters(schema),
    }
    if arguments.get("include_examples", True):
        shape["examples"] = [
            {
                "description": example.description,
                "invocation": dict(example.invocation),
                **(
                    {}
                    if example.expected_output is None
                    else {"expected_output": example.expected_output}
                ),
            }
            for example in tool.examples
        ]
    shape["related_tools"] = view.related(tool)
    if returns := view.returns(tool):
        shape["returns"] = returns
    if tool.deprecated:
        shape["deprecated"] = tool.deprecated
    if not tool.enabled:
        shape["enabled"] = False
    if text := get_server_instructions(view, tool):
        shape["server_instructions"] = {"server": tool.server, "text": text}
    return view.reply_json(shape)


_DESCRIPTION = MetaTool(
    "get_tool_description",
    "Parameters and examples of a tool; then call it by its name.",
    object_schema(
        {"tool_name": {"type": "string"}, "include_examples": {"type": "boolean"}}, ["tool_name"]
    ),
    _describe,
    {"readOnlyHint": True},
    needs=needs_from_names("tool_name"),
)
