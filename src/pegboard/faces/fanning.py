"""Several calls in one request: `call_tools`, and what every fan-out answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pegboard.core.calls import Call, CallResult, Outcome
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.results import is_text
from pegboard.core.shaping import requested_shape
from pegboard.core.tools import Tool
from pegboard.dispatch.fanout import unmade
from pegboard.errors import InvalidArguments, PegboardError
from pegboard.faces.checking import tool_arguments
from pegboard.faces.face import MetaTool, View, find, pairs_in, parameters
from pegboard.faces.risk import require_dispatched_risk, require_split_risk, splits_risk
from pegboard.faces.unmade import told_of

NAME = "call_tools"
LARGEST_FAN_OUT = 100
Requirement: TypeAlias = Callable[[View, Tool, str], None]
"""Refuses a tool whose risk is above what the meta-tool that calls it may carry."""

CALLS: JsonObject = {"type": "array", "items": {"type": "object"}}
ANY_CALLS: JsonObject = {"type": "array"}
"""A list in which a malformed call has an outcome of its own and spoils no other."""


def direct_call_tools(view: View) -> MetaTool:
    """`call_tools` called directly: read-only calls, or any where risk is not split."""

    def require_read(view: View, tool: Tool, via: str) -> None:
        require_split_risk(tool, "read", via)

    if splits_risk(view):
        return call_tools(view, require_read)
    return call_tools(view, require_dispatched_risk, text="Call tools in parallel", reads=False)


def call_tools(
    view: View,
    require: Requirement,
    *,
    via: str = NAME,
    text: str = "Call read-only tools in parallel",
    reads: bool = True,
) -> MetaTool:
    """`call_tools`: several calls side by side, each within the risk that `require` lets pass."""

    async def answer(view: View, arguments: JsonObject) -> CallResult:
        def prepare(one: JsonObject) -> Call:
            name = text_of(one, "name", "tool")
            with told_of(view, name, one.get("arguments"), via=via):
                tool = find(view, name, one.get("category"))
                require(view, tool, via)
                own = tool_arguments(tool, one)
                return view.call(tool, own, via=via, shape=requested_shape(one))

        return await fan_out(view, arguments["calls"], prepare)

    annotations: JsonObject = (
        {"readOnlyHint": True} if reads else {"readOnlyHint": False, "destructiveHint": True}
    )
    schema = parameters({"calls": CALLS}, ["calls"])
    accepts = parameters({"calls": ANY_CALLS}, ["calls"])
    return MetaTool(NAME, text, schema, answer, annotations, accepts, pairs_in)


def is_fan_out(view: View, name: Json) -> bool:
    """Whether a call meta-tool was asked to make several calls, and not to call a tool so named."""
    return name == NAME and view.fan_out is not None and not view.catalog.named(NAME)


async def fan_out(view: View, given: Json, prepare: Callable[[JsonObject], Call]) -> CallResult:
    """Run several calls; each has its own outcome, in the order in which they were asked for."""
    if not isinstance(given, list) or not given:
        raise InvalidArguments("`calls` must be a list of one or more calls.", field="calls")
    if len(given) > LARGEST_FAN_OUT:
        raise InvalidArguments(
            f"{len(given)} calls at once are too many: at most {LARGEST_FAN_OUT}.", field="calls"
        )
    if view.fan_out is None:
        raise InvalidArguments("Parallel calls are switched off here: make them one by one.")
    prepared: list[Call | Outcome] = []
    for one in given:
        name = str(one.get("name") or one.get("tool") or "") if isinstance(one, dict) else ""
        try:
            if not isinstance(one, dict):
                raise InvalidArguments("Each call is an object with name and arguments.")
            prepared.append(prepare(one))
        except PegboardError as exc:
            prepared.append(unmade(name, exc))
    ran = iter(await view.fan_out([c for c in prepared if isinstance(c, Call)]))
    outcomes = [p if isinstance(p, Outcome) else next(ran) for p in prepared]
    return _reply(view, outcomes)


def _reply(view: View, outcomes: Sequence[Outcome]) -> CallResult:
    """The outcomes as JSON, followed by the images, audio and resources of all of them.

    As text inside the JSON, a picture of 500 KB would cost a model 400,000 tokens.
    """
    shapes: list[JsonObject] = []
    blocks: list[JsonObject] = []
    for outcome in outcomes:
        own = [] if outcome.result is None else _attachments(outcome.result)
        # The JSON itself is block 0.
        shapes.append(outcome_shape(outcome, _references(own, start=1 + len(blocks))))
        blocks += own
    reply = view.reply_json({"results": shapes})
    return CallResult({**reply.wire, "content": [*reply.content, *blocks]}) if blocks else reply


def outcome_shape(outcome: Outcome, attachments: Sequence[JsonObject] = ()) -> JsonObject:
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


def _references(blocks: Sequence[JsonObject], *, start: int) -> list[JsonObject]:
    """Says which content blocks of the whole answer belong to one outcome, and what they are."""
    return [
        {"block": n, **{key: block[key] for key in ("type", "mimeType") if key in block}}
        for n, block in enumerate(blocks, start)
    ]


def text_of(arguments: JsonObject, *keys: str) -> str:
    """The first of these parameters that is there, which must be text."""
    for key in keys:
        if isinstance(value := arguments.get(key), str) and value:
            return value
    raise InvalidArguments(f"{keys[0]!r} is missing: {compact(arguments)[:120]}", field=keys[0])


def _result_value(result: CallResult) -> Json:
    if result.structured is not None:
        return result.structured
    return "\n".join(block["text"] for block in result.content if is_text(block))
