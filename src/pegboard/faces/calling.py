"""Meta-tools that call: one per risk, since clients approve by name."""

from __future__ import annotations

from pegboard.core.calls import CallResult
from pegboard.core.json import Json, JsonObject
from pegboard.core.registry import Need
from pegboard.core.shaping import FIELDS, requested_shape
from pegboard.core.tools import RISKS, Risk, Tool
from pegboard.faces import fanning
from pegboard.faces.checking import CALL_PROPERTIES, checked_arguments, tool_arguments
from pegboard.faces.face import MetaTool, View, find, names_at, pairs_in, parameters
from pegboard.faces.reading import is_reading, read_on
from pegboard.faces.risk import (
    CALL_TOOL_OF,
    require_dispatched_risk,
    require_split_risk,
    splits_risk,
)
from pegboard.faces.unmade import told_of

_TEXTS: dict[Risk, str] = {
    "read": "Call a read-only tool",
    "write": "Call a [write] tool",
    "destructive": "Call a [destructive] tool",
}
_ANNOTATIONS: dict[Risk, JsonObject] = {
    "read": {"readOnlyHint": True},
    "write": {"readOnlyHint": False, "destructiveHint": False},
    "destructive": {"readOnlyHint": False, "destructiveHint": True},
}


def call_tools(view: View) -> list[MetaTool]:
    """The call meta-tools: one for each risk, whatever tools there are now, or a single one."""
    if not splits_risk(view):
        return [single_call_tool()]
    return [_split_call_tool(risk) for risk in RISKS]


def single_call_tool() -> MetaTool:
    """`call_tool` for any risk, annotated as the worst that it may do."""

    def require(view: View, tool: Tool, via: str) -> None:
        require_dispatched_risk(view, tool, via)

    return _call_tool("call_tool", "Call a tool", "destructive", require)


def _split_call_tool(risk: Risk) -> MetaTool:
    def require(view: View, tool: Tool, via: str) -> None:
        require_split_risk(tool, risk, via)

    return _call_tool(CALL_TOOL_OF[risk], _TEXTS[risk], risk, require)


def _call_tool(name: str, text: str, risk: Risk, require: fanning.Requirement) -> MetaTool:
    async def answer(view: View, arguments: JsonObject) -> CallResult:
        asked: Json = arguments["name"]
        if is_reading(view, asked):
            return await read_on(view, arguments.get("arguments"))
        if fanning.is_fan_out(view, asked):
            # Several calls that one approval covers: each is held to the risk of this call tool.
            several = fanning.call_tools(view, require, via=name)
            given = checked_arguments(several, arguments.get("arguments"))
            return await several.answer(view, given)
        with told_of(view, asked, arguments.get("arguments"), via=name):
            tool = find(view, asked)
            require(view, tool, name)
            own = tool_arguments(tool, arguments)
            call = view.call(tool, own, via=name, shape=requested_shape(arguments))
        return await view.dispatch(call)

    schema = parameters(CALL_PROPERTIES, ["name"])
    # `tool_arguments` says where a tool's own parameters belong that were put beside `name`.
    accepts = {
        **parameters({**CALL_PROPERTIES, FIELDS: True}, ["name"]),
        "additionalProperties": True,
    }
    return MetaTool(name, text, schema, answer, _ANNOTATIONS[risk], accepts, _needs)


def _needs(arguments: JsonObject) -> list[Need]:
    """The tools that a call is about: the one that it names, and those of a batch."""
    inner = arguments.get("arguments")
    several = pairs_in(inner) if isinstance(inner, dict) and inner.get("calls") else []
    return [*names_at("name")(arguments), *several]
