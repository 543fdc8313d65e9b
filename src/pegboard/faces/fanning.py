"""Several calls in one request: `call_tools`, and what every fan-out answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pegboard.core.calls import Call, CallResult, Outcome
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.results import is_text
from pegboard.core.shaping import requested_shape
from pegboard.dispatch.fanout import unmade
from pegboard.errors import InvalidArguments, PegboardError
from pegboard.faces.calling import (
    require_risk,
    single_call_tool,
    splits_risk,
    tool_arguments,
)
from pegboard.faces.face import MetaTool, View, find, pairs_in, parameters
from pegboard.faces.unmade import told_of

LARGEST_FAN_OUT = 100

CALLS: JsonObject = {"type": "array", "items": {"type": "object"}}
ANY_CALLS: JsonObject = {"type": "array"}
"""A list in which a malformed call has an outcome of its own and spoils no other."""


def call_tools(view: View) -> MetaTool:
    """`call_tools`: read-only calls side by side; any calls where risk is not split."""
    risk_split = splits_risk(view)
    text = "Call read-only tools in parallel" if risk_split else "Call tools in parallel"
    schema = parameters({"calls": CALLS}, ["calls"])
    annotations: JsonObject = (
        {"readOnlyHint": True} if risk_split else single_call_tool(view).annotations
    )

    async def answer(view: View, arguments: JsonObject) -> CallResult:
        allowed = "read" if risk_split else "destructive"

        def prepare(one: JsonObject) -> Call:
            name = text_of(one, "name", "tool")
            with told_of(view, name, one.get("arguments"), via="call_tools"):
                tool = find(view, name, one.get("category"))
                require_risk(tool, allowed, "call_tools")
                own = tool_arguments(tool, one)
                return view.call(tool, own, via="call_tools", shape=requested_shape(one))

        return await fan_out(view, arguments["calls"], prepare)

    accepts = parameters({"calls": ANY_CALLS}, ["calls"])
    return MetaTool("call_tools", text, schema, answer, annotations, accepts, pairs_in)


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
