"""The meta-tools that call tools: one per risk, since clients approve by name, and `call_tools`.

    call_tool, call_write_tool, call_destructive_tool   one call each
    call_tools                                          several calls in parallel, one outcome each

A call tool may carry `call_tools` as its `name`: one approval then covers several calls, each held
to the risk of that call tool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pegboard.core.calls import CallResult, Outcome, ToolCall
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.results.shapes import FIELDS_KEY, is_text, parse_shape
from pegboard.core.tool_registry import LoadTarget
from pegboard.core.tools import RISKS, Risk, Tool
from pegboard.dispatch.fan_out import failed_outcome
from pegboard.errors import InvalidArguments, PegboardError
from pegboard.modes.meta_arguments import CALL_PROPERTIES, check_arguments, extract_tool_arguments
from pegboard.modes.mode import (
    CALL_TOOL_BY_RISK,
    MetaTool,
    View,
    find_tool,
    needs_from_calls,
    needs_from_names,
    object_schema,
    record_rejection,
    require_dispatch_risk,
    require_split_risk,
    splits_risk,
)
from pegboard.modes.read_result import is_read_result, read_page

CALL_TOOLS = "call_tools"
MAX_CALLS = 100
Requirement: TypeAlias = Callable[[View, Tool, str], None]
"""Refuses a tool whose risk is above what the meta-tool that calls it may carry."""

CALLS: JsonObject = {"type": "array", "items": {"type": "object"}}
ANY_CALLS: JsonObject = {"type": "array"}
"""A list in which a malformed call has an outcome of its own and spoils no other."""


def build_direct_call_tools(view: View) -> MetaTool:
    """`call_tools` called directly: read-only calls, or any where risk is not split."""

    def require_read(view: View, tool: Tool, via: str) -> None:
        require_split_risk(tool, "read", via)

    if splits_risk(view):
        return build_call_tools(view, require_read)
    return build_call_tools(view, require_dispatch_risk, text="Call tools in parallel", reads=False)


def build_call_tools(
    view: View,
    require: Requirement,
    *,
    via: str = CALL_TOOLS,
    text: str = "Call read-only tools in parallel",
    reads: bool = True,
) -> MetaTool:
    """`call_tools`: several calls side by side, each within the risk that `require` lets pass."""

    async def answer(view: View, arguments: JsonObject) -> CallResult:
        def prepare(one: JsonObject) -> ToolCall:
            name = require_text(one, "name", "tool")
            with record_rejection(view, name, one.get("arguments"), via=via):
                tool = find_tool(view, name, one.get("category"))
                require(view, tool, via)
                own = extract_tool_arguments(tool, one)
                return view.call(tool, own, via=via, shape=parse_shape(one))

        return await run_calls(view, arguments["calls"], prepare)

    annotations: JsonObject = (
        {"readOnlyHint": True} if reads else {"readOnlyHint": False, "destructiveHint": True}
    )
    schema = object_schema({"calls": CALLS}, ["calls"])
    accepts = object_schema({"calls": ANY_CALLS}, ["calls"])
    return MetaTool(CALL_TOOLS, text, schema, answer, annotations, accepts, needs_from_calls)


def is_call_tools(view: View, name: Json) -> bool:
    """Whether a call meta-tool was asked to make several calls, and not to call a tool so named."""
    return name == CALL_TOOLS and view.fan_out is not None and not view.catalog.named(CALL_TOOLS)


async def run_calls(
    view: View, given: Json, prepare: Callable[[JsonObject], ToolCall]
) -> CallResult:
    """Run several calls; each has its own outcome, in the order in which they were asked for."""
    if not isinstance(given, list) or not given:
        raise InvalidArguments("`calls` must be a list of one or more calls.", field="calls")
    if len(given) > MAX_CALLS:
        raise InvalidArguments(
            f"{len(given)} calls at once are too many: at most {MAX_CALLS}.", field="calls"
        )
    if view.fan_out is None:
        raise InvalidArguments("Parallel calls are switched off here: make them one by one.")
    prepared: list[ToolCall | Outcome] = []
    for one in given:
        name = str(one.get("name") or one.get("tool") or "") if isinstance(one, dict) else ""
        try:
            if not isinstance(one, dict):
                raise InvalidArguments("Each call is an object with name and arguments.")
            prepared.append(prepare(one))
        except PegboardError as exc:
            prepared.append(failed_outcome(name, exc))
    ran = iter(await view.fan_out([c for c in prepared if isinstance(c, ToolCall)]))
    outcomes = [p if isinstance(p, Outcome) else next(ran) for p in prepared]
    return _build_reply(view, outcomes)


def _build_reply(view: View, outcomes: Sequence[Outcome]) -> CallResult:
    """The outcomes as JSON, followed by the images, audio and resources of all of them.

    As text inside the JSON, a picture of 500 KB would cost a model 400,000 tokens.
    """
    shapes: list[JsonObject] = []
    blocks: list[JsonObject] = []
    for outcome in outcomes:
        own = [] if outcome.result is None else _attachments(outcome.result)
        # The JSON itself is block 0.
        shapes.append(outcome_to_json(outcome, _reference_blocks(own, start=1 + len(blocks))))
        blocks += own
    reply = view.reply_json({"results": shapes})
    return CallResult({**reply.wire, "content": [*reply.content, *blocks]}) if blocks else reply


def outcome_to_json(outcome: Outcome, attachments: Sequence[JsonObject] = ()) -> JsonObject:
    """One outcome of a fan-out, as the contract has it."""
    shape: JsonObject = {"name": outcome.name, "ok": outcome.ok}
    if outcome.ok and outcome.result is not None:
        shape["result"] = _result_value(outcome.result)
    else:
        shape["error"] = outcome.error
    if attachments:
        shape["attachments"] = list(attachments)
    return {**shape, "duration_ms": round(outcome.duration_ms, 1)}


def _attachments(result: CallResult) -> list[JsonObject]:
    return [block for block in result.content if not is_text(block)]


def _reference_blocks(blocks: Sequence[JsonObject], *, start: int) -> list[JsonObject]:
    """Says which content blocks of the whole answer belong to one outcome, and what they are."""
    return [
        {"block": n, **{key: block[key] for key in ("type", "mimeType") if key in block}}
        for n, block in enumerate(blocks, start)
    ]


def require_text(arguments: JsonObject, *keys: str) -> str:
    """The first of these parameters that is there, which must be text."""
    for key in keys:
        if isinstance(value := arguments.get(key), str) and value:
            return value
    raise InvalidArguments(f"{keys[0]!r} is missing: {compact(arguments)[:120]}", field=keys[0])


def _result_value(result: CallResult) -> Json:
    if result.structured is not None:
        return result.structured
    return "\n".join(block["text"] for block in result.content if is_text(block))


_DESCRIPTIONS: dict[Risk, str] = {
    "read": "Call a read-only tool",
    "write": "Call a [write] tool",
    "destructive": "Call a [destructive] tool",
}
_ANNOTATIONS: dict[Risk, JsonObject] = {
    "read": {"readOnlyHint": True},
    "write": {"readOnlyHint": False, "destructiveHint": False},
    "destructive": {"readOnlyHint": False, "destructiveHint": True},
}


def build_call_meta_tools(view: View) -> list[MetaTool]:
    """The call meta-tools: one for each risk, whatever tools there are now, or a single one."""
    if not splits_risk(view):
        return [build_single_call_tool()]
    return [_build_split_call_tool(risk) for risk in RISKS]


def build_single_call_tool() -> MetaTool:
    """`call_tool` for any risk, annotated as the worst that it may do."""

    def require(view: View, tool: Tool, via: str) -> None:
        require_dispatch_risk(view, tool, via)

    return _build_call_tool("call_tool", "Call a tool", "destructive", require)


def _build_split_call_tool(risk: Risk) -> MetaTool:
    def require(view: View, tool: Tool, via: str) -> None:
        require_split_risk(tool, risk, via)

    return _build_call_tool(CALL_TOOL_BY_RISK[risk], _DESCRIPTIONS[risk], risk, require)


def _build_call_tool(name: str, text: str, risk: Risk, require: Requirement) -> MetaTool:
    async def answer(view: View, arguments: JsonObject) -> CallResult:
        asked: Json = arguments["name"]
        if is_read_result(view, asked):
            return await read_page(view, arguments.get("arguments"))
        if is_call_tools(view, asked):
            # Several calls that one approval covers: each is held to the risk of this call tool.
            several = build_call_tools(view, require, via=name)
            given = check_arguments(several, arguments.get("arguments"))
            return await several.answer(view, given)
        with record_rejection(view, asked, arguments.get("arguments"), via=name):
            tool = find_tool(view, asked)
            require(view, tool, name)
            own = extract_tool_arguments(tool, arguments)
            call = view.call(tool, own, via=name, shape=parse_shape(arguments))
        return await view.dispatch(call)

    schema = object_schema(CALL_PROPERTIES, ["name"])
    # `tool_arguments` says where a tool's own parameters belong that were put beside `name`.
    accepts = {
        **object_schema({**CALL_PROPERTIES, FIELDS_KEY: True}, ["name"]),
        "additionalProperties": True,
    }
    return MetaTool(name, text, schema, answer, _ANNOTATIONS[risk], accepts, _find_needs)


def _find_needs(arguments: JsonObject) -> list[LoadTarget]:
    """The tools that a call is about: the one that it names, and those of a batch."""
    inner = arguments.get("arguments")
    several = needs_from_calls(inner) if isinstance(inner, dict) and inner.get("calls") else []
    return [*needs_from_names("name")(arguments), *several]
