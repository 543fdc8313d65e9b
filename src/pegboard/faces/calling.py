"""Meta-tools that call: one per risk, since clients approve by name."""

from __future__ import annotations

from pegboard.core.calls import CallResult
from pegboard.core.json import JsonObject
from pegboard.core.shaping import FIELDS, requested_shape
from pegboard.core.tools import RISKS, Catalog, Risk, Tool
from pegboard.errors import InvalidArguments, NotPermitted
from pegboard.faces.face import MetaTool, View, find, names_at, parameters
from pegboard.faces.reading import is_reading, read_on
from pegboard.faces.unmade import told_of

CALL_TOOL_OF: dict[Risk, str] = {
    "read": "call_tool",
    "write": "call_write_tool",
    "destructive": "call_destructive_tool",
}
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
_CALL_PROPERTIES: JsonObject = {
    "name": {"type": "string"},
    "arguments": {"type": "object"},
    "include_fields": {"type": "array", "items": {"type": "string"}},
}


def splits_risk(view: View) -> bool:
    """Whether calls are split by risk: by setting, else when a tool or a rule says what it is."""
    if view.options.risk == "auto":
        return bool(view.options.risk_rules) or _any_annotated(view.listed)
    return view.options.risk == "split"


def call_tools(view: View) -> list[MetaTool]:
    """The call meta-tools for this catalogue: one for every risk that occurs, or a single one."""
    if not splits_risk(view):
        return [_call_tool("call_tool", "Call a tool", "destructive", view)]
    present = _risks_in(view.listed) if view.constant is None else RISKS
    return [
        _call_tool(CALL_TOOL_OF[risk], _TEXTS[risk], risk, view)
        for risk in RISKS
        if risk in present
    ]


def single_call_tool(view: View) -> MetaTool:
    """`call_tool` for any risk, annotated as the worst that it may do."""
    return _call_tool("call_tool", "Call a tool", "destructive", view)


def tool_arguments(tool: Tool, given: JsonObject) -> JsonObject:
    """The tool's own arguments out of a call meta-tool's.

    Weak models put them beside `name` instead of inside `arguments`; where that is unmistakable it
    is understood, and otherwise the error says where they belong.
    """
    inner = given.get("arguments")
    stray = {k: v for k, v in given.items() if k not in _KNOWN}
    if not stray:
        return inner if inner is not None else {}
    own = tool.input_schema.get("properties", {})
    if not inner and all(key in own for key in stray):
        return stray
    names = ", ".join(sorted(stray))
    raise InvalidArguments(
        f"Unknown: {names}. Put the parameters of {tool.name} inside `arguments`.",
        tool=tool.name,
        field=names,
        signature=tool.signature,
    )


_KNOWN = {*_CALL_PROPERTIES, "select", "raw", "max_tokens", "category"}


def _call_tool(name: str, text: str, risk: Risk, view: View) -> MetaTool:
    async def answer(view: View, arguments: JsonObject) -> CallResult:
        if is_reading(view, arguments["name"]):
            return await read_on(view, arguments.get("arguments"))
        with told_of(view, arguments["name"], arguments.get("arguments"), via=name):
            tool = find(view, arguments["name"])
            require_risk(tool, risk, name)
            own = tool_arguments(tool, arguments)
            call = view.call(tool, own, via=name, shape=requested_shape(arguments))
        return await view.dispatch(call)

    schema = parameters(_CALL_PROPERTIES, ["name"])
    # `tool_arguments` says where a tool's own parameters belong that were put beside `name`.
    accepts = {
        **parameters({**_CALL_PROPERTIES, FIELDS: True}, ["name"]),
        "additionalProperties": True,
    }
    return MetaTool(name, text, schema, answer, _ANNOTATIONS[risk], accepts, names_at("name"))


def require_risk(tool: Tool, allowed: Risk, via: str) -> None:
    """Refuse a tool whose risk is above what its call tool was approved for."""
    if RISKS.index(tool.risk) > RISKS.index(allowed):
        right = CALL_TOOL_OF[tool.risk]
        raise NotPermitted(
            f"{tool.name} is {tool.risk}: call it with {right}, not {via}.",
            tool=tool.name,
            expected=right,
        )


def _risks_in(catalog: Catalog) -> frozenset[Risk]:
    key = "risks"
    if key not in catalog.memo:
        catalog.memo[key] = frozenset(tool.risk for tool in catalog.enabled)
    return catalog.memo[key]


def _any_annotated(catalog: Catalog) -> bool:
    key = "any_annotated"
    if key not in catalog.memo:
        catalog.memo[key] = any(
            "readOnlyHint" in t.annotations or "destructiveHint" in t.annotations for t in catalog
        )
    return catalog.memo[key]
