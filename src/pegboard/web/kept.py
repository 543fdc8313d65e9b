"""A result that was kept back, read in pages as a model reads it, by whoever made the call.

The handle stays on this side: a page is asked for by the id of its call, which leads to a handle
only for the caller whose call it was. Anybody else's is like one that never was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlencode

from pegboard.core.events import CallFinished
from pegboard.core.json import JsonObject
from pegboard.errors import InvalidArguments
from pegboard.web.interface import Panel, Viewer
from pegboard.web.markup import Html, join, number, several, tag, time_tag

_WORDS = ("path", "grep", "select")
_LONGEST = 500


def may_open(viewer: Viewer, call: CallFinished) -> bool:
    """Whether a viewer may read what was kept of a call: only who made it, operator or not."""
    return call.handle is not None and call.principal == viewer.caller.principal


def address(call: CallFinished) -> str:
    """Where the kept result of a call is read."""
    return _address(call.id, {})


async def page(viewer: Viewer, panel: Panel, query: Mapping[str, str]) -> tuple[str, Html]:
    """The title and the body of a page of a kept result.

    Raises:
        InvalidArguments: This viewer has no kept result of that call, or what is asked for makes
            no page of it.
        InvalidField: The path leads nowhere, or the expression cannot be run.
    """
    asked = query.get("call", "")
    own = panel.live.recent_of(viewer.caller.principal)
    call = next((c for c in own if c.id == asked and may_open(viewer, c)), None)
    view = await panel.view(viewer.caller)
    if call is None or call.handle is None or view.read_result is None:
        raise InvalidArguments(
            "There is no such result, or it is kept no longer. Call the tool again."
        )
    reading = _reading(query)
    answer = await view.read_result({"handle": call.handle, **reading}, viewer.caller)
    part = json.loads(answer.content[0]["text"])
    return f"Result of {call.tool}", _body(call, reading, part, view.options.spill_ttl)


def _reading(query: Mapping[str, str]) -> JsonObject:
    reading: JsonObject = {w: query[w][:_LONGEST] for w in _WORDS if query.get(w)}
    offset = query.get("offset", "0")
    if not offset.lstrip("-").isdecimal() or len(offset) > 10:
        raise InvalidArguments("The offset is a whole number.", field="offset")
    return {**reading, "offset": int(offset)} if int(offset) else reading


def _body(call: CallFinished, reading: JsonObject, part: JsonObject, life: float) -> Html:
    following = part.pop("next", None)
    text = part.pop("text", None)
    shown = text if text is not None else _pretty(part.pop("value", part.pop("matches", None)))
    said = [several(call.tokens_out_before or 0, "token"), " in all, kept until ",
            time_tag(call.at + life)]  # fmt: skip
    if "total" in part:
        first = min(part.get("offset", 0) + 1, part["total"])
        said += [f"; here from {number(first)} of {number(part['total'])} on"]
    return join(
        [
            tag("h1", "Result of ", tag("code", call.tool)),
            tag("p", *said, class_="quiet", role="status"),
            _form(call, reading),
            tag("pre", tag("code", shown), tabindex="0", aria_label="The result"),
            _next(call, reading, following),
        ]
    )


def _form(call: CallFinished, reading: JsonObject) -> Html:
    labels = {"path": "Path", "grep": "Only what matches", "select": "JMESPath"}
    fields = [
        tag("div", tag("label", labels[word], for_=word),
            tag("input", id=word, name=word, value=reading.get(word, ""), maxlength=_LONGEST))
        for word in _WORDS
    ]  # fmt: skip
    return tag(
        "form",
        tag("input", type="hidden", name="call", value=call.id),
        *fields,
        tag("button", "Read", type="submit", class_="primary"),
        method="get",
        action="/ui/kept",
        class_="fields",
    )


def _next(call: CallFinished, reading: JsonObject, following: object) -> Html | None:
    if not isinstance(following, dict):
        return None
    words = {**reading, **{str(k): v for k, v in following.items() if k != "handle"}}
    return tag("p", tag("a", "Read on", href=_address(call.id, words), rel="next"))


def _address(call: str, words: JsonObject) -> str:
    return f"/ui/kept?{urlencode({'call': call, **words})}"


def _pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
