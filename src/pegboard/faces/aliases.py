"""Meta-tools that are callable in every face although no face lists them.

Most carry the names of other systems, so that instructions written for those keep working.
"""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.core.calls import CallResult
from pegboard.core.json import JsonObject
from pegboard.faces.checking import tool_arguments
from pegboard.faces.face import MetaTool, View, by_name, find, names_at, pairs_in, parameters
from pegboard.faces.fanning import ANY_CALLS, text_of
from pegboard.faces.hierarchy import dispatch, list_categories, schema_shape
from pegboard.faces.reading import read_result
from pegboard.faces.risk import require_dispatched_risk
from pegboard.faces.unmade import told_of

_NAME: JsonObject = {"toolName": {"type": "string"}}


def everywhere() -> Mapping[str, MetaTool]:
    """The meta-tools that need not be listed, by name."""
    return by_name(
        [
            MetaTool("list_tool_categories", "", parameters({}), list_categories),
            MetaTool(
                "get_tool_schema",
                "",
                parameters(_NAME, ["toolName"]),
                _get_schema,
                needs=names_at("toolName"),
            ),
            MetaTool(
                "invoke_tool",
                "",
                parameters({**_NAME, "args": {"type": "object"}}, ["toolName"]),
                _invoke,
                needs=names_at("toolName"),
            ),
            MetaTool(
                "tools_dispatch_parallel",
                "",
                parameters({"calls": ANY_CALLS}, ["calls"]),
                dispatch,
                needs=pairs_in,
            ),
            read_result(),
        ]
    )


async def _get_schema(view: View, arguments: JsonObject) -> CallResult:
    tool = find(view, text_of(arguments, "toolName"))
    return view.reply_json({"schema": schema_shape(view, tool)})


async def _invoke(view: View, arguments: JsonObject) -> CallResult:
    name = text_of(arguments, "toolName")
    given = {"arguments": arguments.get("args") or {}}
    with told_of(view, name, given["arguments"], via="invoke_tool"):
        tool = find(view, name)
        require_dispatched_risk(view, tool, "invoke_tool")
        call = view.call(tool, tool_arguments(tool, given), via="invoke_tool")
    return await view.dispatch(call)
