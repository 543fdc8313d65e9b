"""Meta-tools that are callable in every mode although no mode lists them.

Most have the names of other systems, so that instructions written for those keep working.
"""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.core.calls import CallResult
from pegboard.core.json import JsonObject
from pegboard.modes.call_tools import ANY_CALLS, require_text
from pegboard.modes.hierarchy import dispatch_calls, list_categories, schema_to_json
from pegboard.modes.mode import (
    MetaTool,
    MetaToolBuilder,
    View,
    find_tool,
    needs_from_calls,
    needs_from_names,
    object_schema,
    record_rejection,
    require_risk,
)
from pegboard.modes.read_result import READ_RESULT, build_read_result

_NAME: JsonObject = {"toolName": {"type": "string"}}


async def _get_schema(view: View, arguments: JsonObject) -> CallResult:
    tool = find_tool(view, require_text(arguments, "toolName"))
    return view.reply_json({"schema": schema_to_json(tool)})


async def _invoke(view: View, arguments: JsonObject) -> CallResult:
    name, given = require_text(arguments, "toolName"), arguments.get("args") or {}
    with record_rejection(view, name, given, via="invoke_tool"):
        tool = find_tool(view, name)
        # An unlisted name must not bypass the rule for the listed ones.
        require_risk(view, tool, None, via="invoke_tool")
        call = view.call(tool, given, via="invoke_tool")
    return await view.dispatch(call)


# Their descriptions are empty: nobody lists them, so nobody would read one.
_NAMED = {
    "list_tool_categories": MetaTool(
        "list_tool_categories", "", object_schema({}), list_categories
    ),
    "get_tool_schema": MetaTool(
        "get_tool_schema",
        "",
        object_schema(_NAME, ["toolName"]),
        _get_schema,
        needs=needs_from_names("toolName"),
    ),
    "invoke_tool": MetaTool(
        "invoke_tool",
        "",
        object_schema({**_NAME, "args": {"type": "object"}}, ["toolName"]),
        _invoke,
        needs=needs_from_names("toolName"),
    ),
    "tools_dispatch_parallel": MetaTool(
        "tools_dispatch_parallel",
        "",
        object_schema({"calls": ANY_CALLS}, ["calls"]),
        dispatch_calls,
        needs=needs_from_calls,
    ),
}

ALIASES: Mapping[str, MetaToolBuilder] = {
    **{name: lambda view, meta_tool=meta_tool: meta_tool for name, meta_tool in _NAMED.items()},
    READ_RESULT: build_read_result,
}
"""How to build the meta-tools that need not be listed, by name."""
