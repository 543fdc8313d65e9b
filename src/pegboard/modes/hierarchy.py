"""`hierarchy`: four meta-tools, from categories down to one call, whatever the size."""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.json import Json, JsonObject
from pegboard.core.results.shapes import FIELDS_KEY, parse_shape
from pegboard.core.tools import Tool, group_name, is_in_group
from pegboard.errors import InvalidArguments, ToolNotFound
from pegboard.modes.call_tools import ANY_CALLS, CALLS, require_text, run_calls
from pegboard.modes.mode import (
    MetaTool,
    View,
    find_tool,
    index_by_name,
    needs_from_calls,
    object_schema,
    record_rejection,
    require_dispatch_risk,
)
from pegboard.modes.read_result import is_read_result, read_page
from pegboard.modes.search_tools import categories_to_json, check_category, summarize_catalog
from pegboard.modes.tool_entries import list_pinned

_READ_ONLY: JsonObject = {"readOnlyHint": True}
_TEXT: JsonObject = {"type": "string"}


class HierarchyMode:
    """Walks down from categories to one schema, then dispatches."""

    name = "hierarchy"

    async def entries(self, view: View) -> list[JsonObject]:
        return [t.entry() for t in self.meta_tools(view).values()] + list_pinned(view)

    def meta_tools(self, view: View) -> Mapping[str, MetaTool]:
        pair = {"category": _TEXT, "tool": _TEXT}
        return index_by_name(
            [
                MetaTool(
                    "tools_list_categories",
                    f"List tool categories. {summarize_catalog(view)}",
                    object_schema({}),
                    list_categories,
                    _READ_ONLY,
                ),
                MetaTool(
                    "tools_list_tools",
                    "List a category's tools",
                    object_schema({"category": _TEXT}, ["category"]),
                    _list_tools,
                    _READ_ONLY,
                    needs=needs_from_calls,
                ),
                MetaTool(
                    "tools_get_schema",
                    "A tool's schema",
                    object_schema(pair, ["category", "tool"]),
                    _get_schema,
                    _READ_ONLY,
                    needs=needs_from_calls,
                ),
                _dispatch_tool(view),
            ]
        )


def _dispatch_tool(view: View) -> MetaTool:
    def schema(calls: JsonObject, fields: Json) -> JsonObject:
        return object_schema(
            {
                "category": _TEXT,
                "tool": _TEXT,
                "params": {"type": "object"},
                "calls": calls,
                FIELDS_KEY: fields,
            }
        )

    return MetaTool(
        "tools_dispatch",
        "Call a tool with params, or several: calls=[{category, tool, params}]",
        schema(CALLS, {"type": "array", "items": _TEXT}),
        dispatch_calls,
        {"readOnlyHint": False, "destructiveHint": view.options.dispatch_risk == "allow"},
        accepts=schema(ANY_CALLS, True),
        needs=needs_from_calls,
    )


async def list_categories(view: View, arguments: JsonObject) -> CallResult:
    shape: JsonObject = {"categories": categories_to_json(view.catalog.groups)}
    if view.notes:
        shape["note"] = " ".join(view.notes)
    return view.reply_json(shape)


async def _list_tools(view: View, arguments: JsonObject) -> CallResult:
    category = check_category(view.catalog, require_text(arguments, "category"))
    tools = [t for t in view.catalog.enabled if category is None or is_in_group(t, category)]
    rows = [
        {
            "name": _name_in(view, tool, category),
            "summary": f"[deprecated] {tool.summary}" if tool.deprecated else tool.summary,
        }
        for tool in tools
    ]
    shape: JsonObject = {"category": category, "tools": rows}
    if view.notes:  # such as why the tools of this category could not be loaded
        shape["note"] = " ".join(view.notes)
    return view.reply_json(shape)


def _name_in(view: View, tool: Tool, category: str | None) -> str:
    """The bare name where it is unique in its category, since the pair is what addresses it."""
    same = view.catalog.matching(tool.name, category)
    is_bare = tool.is_shown_bare or len(same) > 1
    return view.catalog.address(tool) if is_bare else tool.name


async def _get_schema(view: View, arguments: JsonObject) -> CallResult:
    tool = _find_addressed(view, arguments)
    return view.reply_json({"schema": schema_to_json(view, tool)})


def schema_to_json(view: View, tool: Tool) -> JsonObject:
    """One tool's schema as the contract has it."""
    shape: JsonObject = {
        "name": tool.name,
        "category": group_name(tool),
        "description": tool.description or tool.summary,
        "inputSchema": tool.input_schema,
    }
    if tool.output_schema is not None:
        shape["outputSchema"] = tool.output_schema
    if tool.examples:
        shape["examples"] = [
            {"description": e.description, "invocation": dict(e.invocation)} for e in tool.examples
        ]
    if tool.deprecated:
        shape["deprecated"] = tool.deprecated
    if not tool.enabled:
        shape["enabled"] = False
    return shape


async def dispatch_calls(view: View, arguments: JsonObject) -> CallResult:
    """One call, or a fan-out when `calls` is given."""
    if arguments.get("calls"):
        return await run_calls(view, arguments["calls"], lambda one: _prepare_call(view, one))
    if is_read_result(view, arguments.get("tool", arguments.get("name"))):
        return await read_page(view, _get_params(arguments))
    return await view.dispatch(_prepare_call(view, arguments))


def _prepare_call(view: View, arguments: JsonObject) -> ToolCall:
    params = _get_params(arguments)
    with record_rejection(
        view, require_text(arguments, "tool", "name"), params, via="tools_dispatch"
    ):
        tool = _find_addressed(view, arguments)
        require_dispatch_risk(view, tool, "tools_dispatch")
        return view.call(tool, params, via="tools_dispatch", shape=parse_shape(arguments))


def _get_params(arguments: JsonObject) -> Json:
    given = arguments.get("params", arguments.get("arguments"))
    return {} if given is None else given


def _find_addressed(view: View, arguments: JsonObject) -> Tool:
    name = require_text(arguments, "tool", "name")
    category = arguments.get("category")
    if category is not None and not isinstance(category, str):
        raise InvalidArguments("`category` must be text.", field="category")
    if category == "general":  # the group of tools that have no category
        category = None
    check_category(view.catalog, category)
    try:
        return find_tool(view, name, category or None)
    except ToolNotFound as exc:
        raise _suggest_category(view, name, category, exc) from exc


def _suggest_category(
    view: View, name: str, category: str | None, exc: ToolNotFound
) -> ToolNotFound:
    """The error for a tool that a category lacks, with where it is if another one has it."""
    elsewhere = [t for t in view.catalog.matching(name) if t.enabled] if category else []
    if not elsewhere:
        return exc
    groups = ", ".join(dict.fromkeys(group_name(t) for t in elsewhere))
    told = ToolNotFound(name, [view.catalog.address(t) for t in elsewhere])
    told.message = f"The category {category!r} has no tool {name!r}: it is in {groups}."
    return told
