"""`index`: two meta-tools, a listing of names and summaries and a description of one tool.

The tools themselves are then called directly by name. A listing that would cost more than its
budget comes in pages, category by category: `next` is the `category` to ask for next, with `#2` for
a further page of one that is large itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pegboard.core.calls import CallResult
from pegboard.core.json import JsonObject, compact, whole_number
from pegboard.core.schemas import list_parameters
from pegboard.core.tools import Catalog, Example, Tool, group_name, is_in_group
from pegboard.errors import InvalidArguments
from pegboard.modes.mode import (
    MetaTool,
    View,
    find_tool,
    index_by_name,
    needs_from_names,
    object_schema,
)
from pegboard.modes.search_tools import check_category, get_server_instructions, summarize_catalog
from pegboard.modes.tool_entries import declare_include_fields, list_pinned

_CHARACTERS_PER_TOKEN = 3.5
"""A cautious estimate: pages only need to be about right."""


class IndexMode:
    """Names and summaries first, one description at a time after."""

    name = "index"

    async def entries(self, view: View) -> list[JsonObject]:
        return [t.entry() for t in self.meta_tools(view).values()] + list_pinned(view)

    def meta_tools(self, view: View) -> Mapping[str, MetaTool]:
        return index_by_name([_list_available_tools(view), _get_tool_description()])


def _list_available_tools(view: View) -> MetaTool:
    text = f"List callable tools by name. {summarize_catalog(view)}"
    schema = object_schema(
        {"category": {"type": "string"}, "include_disabled": {"type": "boolean"}},
    )
    return MetaTool("list_available_tools", text, schema, _list, {"readOnlyHint": True})


def _get_tool_description() -> MetaTool:
    text = "Parameters and examples of a tool; then call it by its name."
    schema = object_schema(
        {"tool_name": {"type": "string"}, "include_examples": {"type": "boolean"}}, ["tool_name"]
    )
    needs = needs_from_names("tool_name")
    return MetaTool(
        "get_tool_description", text, schema, _describe, {"readOnlyHint": True}, needs=needs
    )


async def _list(view: View, arguments: JsonObject) -> CallResult:
    asked, page = _parse_page(arguments.get("category") or "")
    include_disabled = bool(arguments.get("include_disabled"))
    category = check_category(view.catalog, asked) if asked else None
    tools = [
        t
        for t in view.catalog
        if (t.enabled or include_disabled) and (category is None or is_in_group(t, category))
    ]
    shown, following = _paginate(view, tools, page, category)
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
    """The tools of one page and the `category` to ask for next."""
    room = view.options.page_tokens * _CHARACTERS_PER_TOKEN
    if category is None and page == 1:
        whole, rest = _whole_groups(view.catalog, tools, room)
        if not rest:
            return whole, None
        if whole:
            return whole, group_name(rest[0])
        first = group_name(tools[0])
        return _slice_page(
            view.catalog, [t for t in tools if group_name(t) == first], 1, room, first
        )
    return _slice_page(view.catalog, tools, page, room, category or "")


def _whole_groups(
    catalog: Catalog, tools: Sequence[Tool], room: float
) -> tuple[list[Tool], list[Tool]]:
    """As many whole groups as fit, in order, and the tools that are left."""
    by_group: dict[str, list[Tool]] = {}
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


def _parse_page(asked: str) -> tuple[str, int]:
    name, mark, number = asked.rpartition("#")
    page = whole_number(number) if mark else None
    return (name, page) if page else (asked, 1)


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
    shape: JsonObject = {
        "name": view.catalog.address(tool),
        "description": tool.description or tool.summary,
        "parameters": list_parameters(_describe_input(tool)),
    }
    if arguments.get("include_examples", True):
        shape["examples"] = [_example_to_json(e) for e in tool.examples]
    shape["related_tools"] = view.related(tool)
    if tool.returns:
        shape["returns"] = tool.returns
    if tool.deprecated:
        shape["deprecated"] = tool.deprecated
    if not tool.enabled:
        shape["enabled"] = False
    if said := get_server_instructions(view, tool):
        shape["server_instructions"] = {"server": tool.server, "text": said}
    return view.reply_json(shape)


def _describe_input(tool: Tool) -> JsonObject:
    """The input schema, with `include_fields` where the result is known to have fields."""
    return (
        tool.input_schema
        if tool.output_schema is None
        else declare_include_fields(tool.input_schema)
    )


def _example_to_json(example: Example) -> JsonObject:
    shape: JsonObject = {
        "description": example.description,
        "invocation": dict(example.invocation),
    }
    if example.expected_output is not None:
        shape["expected_output"] = example.expected_output
    return shape
