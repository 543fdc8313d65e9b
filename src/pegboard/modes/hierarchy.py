"""`hierarchy`: four meta-tools, from categories down to one call, whatever the size of the catalog.

    tools_list_categories -> tools_list_tools -> tools_get_schema -> tools_dispatch

One name carries calls of every risk, so `dispatch_risk` limits what it may call.
"""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.json import Json, JsonObject
from pegboard.core.results.shapes import FIELDS_KEY, parse_shape
from pegboard.core.tools import Tool, group_name, is_in_group
from pegboard.errors import InvalidArguments, ToolNotFound
from pegboard.modes.call_tools import ANY_CALLS, CALLS, require_text, run_calls
from pegboard.modes.list_entries import list_meta_tools_and_pins
from pegboard.modes.mode import (
    MetaTool,
    MetaToolBuilder,
    View,
    find_tool,
    needs_from_calls,
    object_schema,
    record_rejection,
    require_risk,
)
from pegboard.modes.read_result import is_read_result, read_page
from pegboard.modes.search_tools import categories_to_json, check_category, summarize_catalog

_READ_ONLY: JsonObject = {"readOnlyHint": True}
_TEXT: JsonObject = {"type": "string"}


class HierarchyMode:
    """From categories down to one schema, then a call."""

    name = "hierarchy"

    async def entries(self, view: View) -> list[JsonObject]:
        return list_meta_tools_and_pins(self, view)

    def builders(self, view: View) -> Mapping[str, MetaToolBuilder]:
        return {
            "tools_list_categories": lambda view: MetaTool(
                "tools_list_categories",
                f"List tool categories. {summarize_catalog(view)}",
                object_schema({}),
                list_categories,
                _READ_ONLY,
            ),
            "tools_list_tools": lambda view: _LIST_TOOLS,
            "tools_get_schema": lambda view: _GET_SCHEMA,
            "tools_dispatch": _build_dispatch,
        }


def _build_dispatch(view: View) -> MetaTool:
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
        # Clients approve by name: the hint must hold for the most dangerous call it may carry.
        {"readOnlyHint": False, "destructiveHint": view.options.dispatch_risk == "allow"},
        # Wider than what is listed: our messages about a wrong call say more than a validator.
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
    rows: list[JsonObject] = []
    for tool in view.catalog.enabled:
        if category is not None and not is_in_group(tool, category):
            continue
        # Category and name address a tool, so the bare name is enough where it is unique there.
        is_unique = len(view.catalog.matching(tool.name, category)) <= 1
        name = tool.name if is_unique and not tool.is_shown_bare else view.catalog.address(tool)
        summary = f"[deprecated] {tool.summary}" if tool.deprecated else tool.summary
        rows.append({"name": name, "summary": summary})
    shape: JsonObject = {"category": category, "tools": rows}
    if view.notes:  # for example, why the tools of this category could not be loaded
        shape["note"] = " ".join(view.notes)
    return view.reply_json(shape)


async def _get_schema(view: View, arguments: JsonObject) -> CallResult:
    tool = _find_addressed(view, arguments)
    return view.reply_json({"schema": schema_to_json(tool)})


_LIST_TOOLS = MetaTool(
    "tools_list_tools",
    "List a category's tools",
    object_schema({"category": _TEXT}, ["category"]),
    _list_tools,
    _READ_ONLY,
    needs=needs_from_calls,
)
_GET_SCHEMA = MetaTool(
    "tools_get_schema",
    "A tool's schema",
    object_schema({"category": _TEXT, "tool": _TEXT}, ["category", "tool"]),
    _get_schema,
    _READ_ONLY,
    needs=needs_from_calls,
)


def schema_to_json(tool: Tool) -> JsonObject:
    """The schema of one tool, and what else a call needs."""
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
    """One call, or several in parallel when `calls` is given."""
    if arguments.get("calls"):
        return await run_calls(view, arguments["calls"], lambda one: _prepare_call(view, one))
    # It is not a tool in the catalog, but a notice told the model to call it, and this is the only
    # call tool that the model has.
    if is_read_result(view, arguments.get("tool", arguments.get("name"))):
        return await read_page(view, _get_params(arguments))
    return await view.dispatch(_prepare_call(view, arguments))


def _prepare_call(view: View, arguments: JsonObject) -> ToolCall:
    name, params = require_text(arguments, "tool", "name"), _get_params(arguments)
    with record_rejection(view, name, params, via="tools_dispatch"):
        tool = _find_addressed(view, arguments)
        # Inside the block, so that a call refused for its risk is in the audit log as well.
        require_risk(view, tool, None, via="tools_dispatch")
        return view.call(tool, params, via="tools_dispatch", shape=parse_shape(arguments))


def _get_params(arguments: JsonObject) -> Json:
    # Models mix the two names up, since every other meta-tool says `arguments`.
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
        # A model that guessed the category finds the tool without another search.
        elsewhere = [t for t in view.catalog.matching(name) if t.enabled] if category else []
        if not elsewhere:
            raise
        groups = ", ".join(dict.fromkeys(group_name(t) for t in elsewhere))
        error = ToolNotFound(name, [view.catalog.address(t) for t in elsewhere])
        error.message = f"The category {category!r} has no tool {name!r}: it is in {groups}."
        raise error from exc
