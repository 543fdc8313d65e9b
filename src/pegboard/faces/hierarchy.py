"""`hierarchy`: four meta-tools, from categories down to one call, whatever the size."""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.core.calls import Call, CallResult
from pegboard.core.json import Json, JsonObject
from pegboard.core.shaping import FIELDS, requested_shape
from pegboard.core.tools import Tool, belongs, group_of
from pegboard.errors import InvalidArguments, ToolNotFound
from pegboard.faces.entries import pinned
from pegboard.faces.face import MetaTool, View, by_name, find, pairs_in, parameters
from pegboard.faces.fanning import ANY_CALLS, CALLS, fan_out, text_of
from pegboard.faces.reading import is_reading, read_on
from pegboard.faces.risk import require_dispatched_risk
from pegboard.faces.searching import category_list, checked_category, contents
from pegboard.faces.unmade import told_of

_READ_ONLY: JsonObject = {"readOnlyHint": True}
_TEXT: JsonObject = {"type": "string"}


class HierarchyFace:
    """Walks down from categories to one schema, then dispatches."""

    name = "hierarchy"

    async def entries(self, view: View) -> list[JsonObject]:
        return [t.entry() for t in self.meta_tools(view).values()] + pinned(view)

    def meta_tools(self, view: View) -> Mapping[str, MetaTool]:
        pair = {"category": _TEXT, "tool": _TEXT}
        return by_name(
            [
                MetaTool(
                    "tools_list_categories",
                    f"List tool categories. {contents(view)}",
                    parameters({}),
                    list_categories,
                    _READ_ONLY,
                ),
                MetaTool(
                    "tools_list_tools",
                    "List a category's tools",
                    parameters({"category": _TEXT}, ["category"]),
                    _list_tools,
                    _READ_ONLY,
                    needs=pairs_in,
                ),
                MetaTool(
                    "tools_get_schema",
                    "A tool's schema",
                    parameters(pair, ["category", "tool"]),
                    _get_schema,
                    _READ_ONLY,
                    needs=pairs_in,
                ),
                _dispatch_tool(view),
            ]
        )


def _dispatch_tool(view: View) -> MetaTool:
    def schema(calls: JsonObject, fields: Json) -> JsonObject:
        return parameters(
            {
                "category": _TEXT,
                "tool": _TEXT,
                "params": {"type": "object"},
                "calls": calls,
                FIELDS: fields,
            }
        )

    return MetaTool(
        "tools_dispatch",
        "Call a tool with params, or several: calls=[{category, tool, params}]",
        schema(CALLS, {"type": "array", "items": _TEXT}),
        dispatch,
        {"readOnlyHint": False, "destructiveHint": view.options.dispatch_risk == "allow"},
        accepts=schema(ANY_CALLS, True),
        needs=pairs_in,
    )


async def list_categories(view: View, arguments: JsonObject) -> CallResult:
    shape: JsonObject = {"categories": category_list(view.catalog.groups)}
    if view.notes:
        shape["note"] = " ".join(view.notes)
    return view.reply_json(shape)


async def _list_tools(view: View, arguments: JsonObject) -> CallResult:
    category = checked_category(view.catalog, text_of(arguments, "category"))
    tools = [t for t in view.catalog.enabled if category is None or belongs(t, category)]
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
    tool = _addressed(view, arguments)
    return view.reply_json({"schema": schema_shape(view, tool)})


def schema_shape(view: View, tool: Tool) -> JsonObject:
    """One tool's schema as the contract has it."""
    shape: JsonObject = {
        "name": tool.name,
        "category": group_of(tool),
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


async def dispatch(view: View, arguments: JsonObject) -> CallResult:
    """One call, or a fan-out when `calls` is given."""
    if arguments.get("calls"):
        return await fan_out(view, arguments["calls"], lambda one: _prepared(view, one))
    if is_reading(view, arguments.get("tool", arguments.get("name"))):
        return await read_on(view, _params(arguments))
    return await view.dispatch(_prepared(view, arguments))


def _prepared(view: View, arguments: JsonObject) -> Call:
    params = _params(arguments)
    with told_of(view, text_of(arguments, "tool", "name"), params, via="tools_dispatch"):
        tool = _addressed(view, arguments)
        require_dispatched_risk(view, tool, "tools_dispatch")
        return view.call(tool, params, via="tools_dispatch", shape=requested_shape(arguments))


def _params(arguments: JsonObject) -> Json:
    given = arguments.get("params", arguments.get("arguments"))
    return {} if given is None else given


def _addressed(view: View, arguments: JsonObject) -> Tool:
    name = text_of(arguments, "tool", "name")
    category = arguments.get("category")
    if category is not None and not isinstance(category, str):
        raise InvalidArguments("`category` must be text.", field="category")
    if category == "general":  # the group of tools that have no category
        category = None
    checked_category(view.catalog, category)
    try:
        return find(view, name, category or None)
    except ToolNotFound as exc:
        raise _with_right_category(view, name, category, exc) from exc


def _with_right_category(
    view: View, name: str, category: str | None, exc: ToolNotFound
) -> ToolNotFound:
    """The error for a tool that a category lacks, with where it is if another one has it."""
    elsewhere = [t for t in view.catalog.matching(name) if t.enabled] if category else []
    if not elsewhere:
        return exc
    groups = ", ".join(dict.fromkeys(group_of(t) for t in elsewhere))
    told = ToolNotFound(name, [view.catalog.address(t) for t in elsewhere])
    told.message = f"The category {category!r} has no tool {name!r}: it is in {groups}."
    return told
