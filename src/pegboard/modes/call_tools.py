"""The meta-tools that call tools: one per risk, since clients approve by name, and `call_tools`.

    call_tool, call_write_tool, call_destructive_tool   one call each
    call_tools                                          several calls in parallel, one outcome each

A call tool may carry `call_tools` as its `name`: one approval then covers several calls, each held
to the risk of that call tool.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache

from anyio.lowlevel import checkpoint

from pegboard.core.calls import CallResult, Outcome, ToolCall
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.results.shapes import FIELDS_KEY, WRAPPER_KEY, is_text, parse_shape
from pegboard.core.tool_registry import LoadTarget
from pegboard.core.tools import Risk, Tool
from pegboard.dispatch.fan_out import failed_outcome
from pegboard.errors import InvalidArguments, PegboardError, ToolError
from pegboard.modes.mode import (
    CALL_TOOL_BY_RISK,
    MetaTool,
    MetaToolBuilder,
    View,
    check_arguments,
    find_tool,
    needs_from_calls,
    needs_from_names,
    object_schema,
    record_rejection,
    require_risk,
)
from pegboard.modes.read_result import is_read_result, read_page
from pegboard.modes.search_tools import find_inner_meta_tool

# One call --------------------------------------------------------------------------------------

CALL_PROPERTIES: JsonObject = {
    "name": {"type": "string"},
    "arguments": {"type": "object"},
    "include_fields": {"type": "array", "items": {"type": "string"}},
}
_WRITE_PROPERTIES = {key: CALL_PROPERTIES[key] for key in ("name", "arguments")}
"""Listed for writes, whose results are small; `include_fields` is accepted anyway."""
_CALL_KEYS = {*CALL_PROPERTIES, "select", "raw", "max_tokens", "category"}
_SEVERAL = 'name "call_tools", arguments {"calls":[{"name","arguments"}]}'
_SINGLE_DESCRIPTION = f"Call a tool. Several at once: {_SEVERAL}"
_DESCRIPTIONS: dict[Risk, str] = {
    "read": f"Call a tool. Several at once, in any call tool: {_SEVERAL}",
    "write": "Call a [write] tool",
    "destructive": "Call a [destructive] tool",
}
_ANNOTATIONS: dict[Risk, JsonObject] = {
    "read": {"readOnlyHint": True},
    "write": {"readOnlyHint": False, "destructiveHint": False},
    "destructive": {"readOnlyHint": False, "destructiveHint": True},
}


def call_tool_builders(view: View) -> Mapping[str, MetaToolBuilder]:
    """The call meta-tools: one for each risk, whatever tools there are now, or a single one."""
    if not view.splits_risk:
        return {"call_tool": build_single_call_tool}
    return _SPLIT_CALL_TOOLS


def build_single_call_tool(view: View) -> MetaTool:
    """`call_tool` for tools of any risk, annotated with the highest."""
    return _build_call_tool(None)


@cache
def _build_call_tool(risk: Risk | None) -> MetaTool:
    """A call tool for one risk and lower, or for any that `dispatch_risk` allows.

    Built once: it is the same for every view, and most requests are calls.
    """
    name = "call_tool" if risk is None else CALL_TOOL_BY_RISK[risk]
    text = _SINGLE_DESCRIPTION if risk is None else _DESCRIPTIONS[risk]

    async def answer(view: View, arguments: JsonObject) -> CallResult:
        wanted: Json = arguments["name"]
        if read := _find_reading_meta_tool(view, wanted):
            return await read(view, arguments.get("arguments"))
        is_taken = bool(view.catalog.named(CALL_TOOLS))  # by a tool of that name
        if wanted == CALL_TOOLS and view.fan_out is not None and not is_taken:
            # Several calls under one approval: each is held to the risk of this call tool.
            several = _build_call_tools(risk, via=name)
            given = check_arguments(several, arguments.get("arguments"))
            return await several.answer(view, given)
        with record_rejection(view, wanted, arguments.get("arguments"), via=name):
            tool = find_tool(view, wanted)
            require_risk(view, tool, risk, via=name)
            own = extract_tool_arguments(tool, arguments)
            call = view.call(tool, own, via=name, shape=parse_shape(arguments))
        return await view.dispatch(call)

    # Wider than what is listed: `extract_tool_arguments` understands parameters beside `name`, or
    # explains where they belong.
    accepts = {
        **object_schema({**CALL_PROPERTIES, FIELDS_KEY: True}, ["name"]),
        "additionalProperties": True,
    }
    return MetaTool(
        name,
        text,
        object_schema(CALL_PROPERTIES if risk in (None, "read") else _WRITE_PROPERTIES, ["name"]),
        answer,
        _ANNOTATIONS[risk or "destructive"],
        accepts,
        _find_needs,
    )


_SPLIT_CALL_TOOLS: Mapping[str, MetaToolBuilder] = {
    "call_tool": lambda view: _build_call_tool("read"),
    "call_write_tool": lambda view: _build_call_tool("write"),
    "call_destructive_tool": lambda view: _build_call_tool("destructive"),
}


def _find_reading_meta_tool(
    view: View, name: Json
) -> Callable[[View, Json], Awaitable[CallResult]] | None:
    """What answers a meta-tool that only reads, as the `name` of a call."""
    if is_read_result(view, name):
        return read_page
    meta_tool = find_inner_meta_tool(view, name)
    if meta_tool is None:
        return None

    async def answer(view: View, arguments: Json) -> CallResult:
        return await meta_tool.answer(view, check_arguments(meta_tool, arguments))

    return answer


def _find_needs(arguments: JsonObject) -> list[LoadTarget]:
    """The tools that a call is about: the one that it names, and those of a batch."""
    inner = arguments.get("arguments")
    several = needs_from_calls(inner) if isinstance(inner, dict) and inner.get("calls") else []
    return [*needs_from_names("name")(arguments), *several]


def extract_tool_arguments(tool: Tool, given: JsonObject) -> JsonObject:
    """The tool's own arguments from those of a call meta-tool.

    Weak models put them beside `name` instead of inside `arguments`. Where every one of them is a
    parameter of the tool they are accepted; otherwise the error says where they belong.
    """
    inner = given.get("arguments")
    misplaced = {k: v for k, v in given.items() if k not in _CALL_KEYS}
    if not misplaced:
        return inner if inner is not None else {}
    own = tool.input_schema.get("properties", {})
    if not inner and all(key in own for key in misplaced):
        return misplaced
    names = ", ".join(sorted(misplaced))
    raise InvalidArguments(
        f"Unknown: {names}. Put the parameters of {tool.name} inside `arguments`.",
        tool=tool.name,
        field=names,
        signature=tool.signature,
    )


# Several calls ---------------------------------------------------------------------------------

CALL_TOOLS = "call_tools"
MAX_CALLS = 100
_MAX_PARSED = 100_000
"""Characters of a text that is parsed on the event loop to be written as JSON."""
CALLS: JsonObject = {"type": "array", "items": {"type": "object"}}
ANY_CALLS: JsonObject = {"type": "array"}
"""For validation: a malformed call in the list then fails alone, with an outcome of its own."""


def build_direct_call_tools(view: View) -> MetaTool:
    """`call_tools` called directly: read-only calls, or any where risk is not split."""
    return _build_call_tools("read" if view.splits_risk else None)


def _build_call_tools(risk: Risk | None, *, via: str = CALL_TOOLS) -> MetaTool:
    """`call_tools`: several calls in parallel, each within this risk; `via` is the outer tool."""

    async def answer(view: View, arguments: JsonObject) -> CallResult:
        def prepare(one: JsonObject) -> ToolCall:
            name = require_text(one, "name", "tool")
            with record_rejection(view, name, one.get("arguments"), via=via):
                tool = find_tool(view, name, one.get("category"))
                require_risk(view, tool, risk, via=via)
                own = extract_tool_arguments(tool, one)
                return view.call(tool, own, via=via, shape=parse_shape(one))

        return await run_calls(view, arguments["calls"], prepare, is_timed=False)

    return MetaTool(
        CALL_TOOLS,
        "Call tools in parallel" if risk is None else "Call read-only tools in parallel",
        object_schema({"calls": CALLS}, ["calls"]),
        answer,
        _ANNOTATIONS["destructive" if risk is None else "read"],
        accepts=object_schema({"calls": ANY_CALLS}, ["calls"]),
        needs=needs_from_calls,
        is_listed=False,
    )


async def run_calls(
    view: View, given: Json, prepare: Callable[[JsonObject], ToolCall], *, is_timed: bool = True
) -> CallResult:
    """Run several calls; each has its own outcome, in the order in which they were given.

    Args:
        view: Who calls, and what they see.
        given: The calls as they came.
        prepare: Finds and checks the tool of one call.
        is_timed: Whether the text, too, says how long each call took; a model seldom needs that.
    """
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
            if read := _find_reading_meta_tool(view, name):
                prepared.append(Outcome(name, True, await read(view, one.get("arguments"))))
            else:
                prepared.append(prepare(one))
        except PegboardError as exc:
            prepared.append(failed_outcome(name, exc))
        await checkpoint()  # a search, or a lookup of similar names, takes a while
    ran = iter(await view.fan_out([c for c in prepared if isinstance(c, ToolCall)]))
    outcomes = [p if isinstance(p, Outcome) else next(ran) for p in prepared]
    return _build_reply(view, outcomes, is_timed=is_timed)


def _build_reply(view: View, outcomes: Sequence[Outcome], *, is_timed: bool) -> CallResult:
    """The outcomes as JSON, followed by the images, audio and resources of all of them.

    As text inside the JSON, an image of 500 KB would cost a model 400,000 tokens.
    """
    results: list[JsonObject] = []
    blocks: list[JsonObject] = []
    for outcome in outcomes:
        content = [] if outcome.result is None else outcome.result.content
        own = [block for block in content if not is_text(block)]
        # The JSON itself is block 0 of the answer.
        attachments = [
            {"block": n, **{key: block[key] for key in ("type", "mimeType") if key in block}}
            for n, block in enumerate(own, start=1 + len(blocks))
        ]
        results.append(_outcome_to_json(outcome, attachments))
        blocks += own
    visible = results
    if not is_timed:
        visible = [{k: v for k, v in one.items() if k != "duration_ms"} for one in results]
    reply = view.reply(compact({"results": visible}), lambda: {"results": results})
    return CallResult({**reply.wire, "content": [*reply.content, *blocks]}) if blocks else reply


def _outcome_to_json(outcome: Outcome, attachments: Sequence[JsonObject]) -> JsonObject:
    result, error = outcome.result, outcome.error
    if outcome.ok and result is not None and not result.is_complete:
        # One answer for several calls has no place for a question to the user or for a task.
        is_task = "task" in result.wire or result.wire.get("resultType") == "task"
        what = "started a task" if is_task else "needs input from the user"
        error = {
            "kind": ToolError.kind,
            "message": f"{outcome.name} {what}, so its result is missing here: call it by itself.",
            "tool": outcome.name,
        }
    value: JsonObject = {"name": outcome.name, "ok": outcome.ok and error is None}
    if value["ok"] and result is not None:
        content: Json = result.structured
        # JSON in a string would be escaped once more inside the JSON of a batch.
        if content is None:
            texts = (block["text"] for block in result.content if is_text(block))
            content = _parse_json("\n".join(texts))
        elif isinstance(content, dict) and isinstance(text := content.get(WRAPPER_KEY), str):
            content = {**content, WRAPPER_KEY: _parse_json(text)}
        value["result"] = content
    else:
        value["error"] = error
    if attachments:
        value["attachments"] = list(attachments)
    return {**value, "duration_ms": round(outcome.duration_ms, 1)}


def _parse_json(text: str) -> Json:
    """The value that a text is the JSON of, or the text itself."""
    if text[:1] in ("{", "[") and len(text) <= _MAX_PARSED:
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return text


def require_text(arguments: JsonObject, *keys: str) -> str:
    """The first of these parameters that is given; it must be a text."""
    for key in keys:
        if isinstance(value := arguments.get(key), str) and value:
            return value
    raise InvalidArguments(f"{keys[0]!r} is missing: {compact(arguments)[:120]}", field=keys[0])
