"""Meta-tools that are callable in every mode although no mode lists them.

Most carry the names of other systems, so that instructions written for those keep working.
"""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.core.calls import CallResult
from pegboard.core.json import JsonObject
from pegboard.modes.call_tools import ANY_CALLS, require_text
from pegboard.modes.hierarchy import dispatch_calls, list_categories, schema_to_json
from pegboard.modes.meta_arguments import extract_tool_arguments
from pegboard.modes.mode import (
    MetaTool,
    View,
    find_tool,
    index_by_name,
    needs_from_calls,
    needs_from_names,
    object_schema,
    record_rejection,
    require_dispatch_risk,
)
from pegboard.modes.read_result import build_read_result

_NAME: JsonObject = {"toolName": {"type": "string"}}


def build_aliases() -> Mapping[str, MetaTool]:
    """The meta-tools that need not be listed, by name."""
    return index_by_name(
        [
            MetaTool("list_tool_categories", "", object_schema({}), list_categories),
            MetaTool(
                "get_tool_schema",
                "",
                object_schema(_NAME, ["toolName"]),
                _get_schema,
                needs=needs_from_names("toolName"),
            ),
            MetaTool(
                "invoke_tool",
                "",
                object_schema({**_NAME, "args": {"type": "object"}}, ["toolName"]),
                _invoke,
                needs=needs_from_names("toolName"),
            ),
            MetaTool(
                "tools_dispatch_parallel",
                "",
                object_schema({"calls": ANY_CALLS}, ["calls"]),
                dispatch_calls,
                needs=needs_from_calls,
            ),
            build_read_result(),
        ]
    )


async def _get_schema(view: View, arguments: JsonObject) -> CallResult:
    tool = find_tool(view, require_text(arguments, "toolName"))
    return view.reply_json({"schema": schema_to_json(view, tool)})


async def _invoke(view: View, arguments: JsonObject) -> CallResult:
    name = require_text(arguments, "toolName")
    given = {"arguments": arguments.get("args") or {}}
    with record_rejection(view, name, given["arguments"], via="invoke_tool"):
        tool = find_tool(view, name)
        require_dispatch_risk(view, tool, "invoke_tool")
        call = view.call(tool, extract_tool_arguments(tool, given), via="invoke_tool")
    return await view.dispatch(call)
