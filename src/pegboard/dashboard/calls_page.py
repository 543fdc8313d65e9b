"""Calls in progress, recent calls, and the results that were spilled.

A spilled result is read in pages, as a model reads it, by the caller that made the call. The handle
never reaches the browser: a page is requested by the id of its call, which leads to a handle only
for the caller that made it. To anybody else, the result does not exist.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote, urlencode

from pegboard.core.events import CallFinished, CallStarted
from pegboard.core.json import JsonObject
from pegboard.dashboard.interface import Dashboard, Viewer
from pegboard.dashboard.markup import (
    Html,
    badge,
    join,
    milliseconds,
    number,
    pluralize,
    tag,
    time_tag,
)
from pegboard.errors import InvalidArguments

_WORDS = ("path", "grep", "select")
_LONGEST = 500


def can_read_result(viewer: Viewer, call: CallFinished) -> bool:
    """Whether a viewer may read what was kept of a call: only who made it, operator or not."""
    return call.handle is not None and call.principal == viewer.caller.principal


def spilled_result_url(call: CallFinished) -> str:
    """Where the kept result of a call is read."""
    return _result_url(call.id, {})


async def spilled_result_page(
    viewer: Viewer, dashboard: Dashboard, query: Mapping[str, str]
) -> tuple[str, Html]:
    """The title and the body of a page of a kept result.

    Raises:
        InvalidArguments: This viewer has no kept result of that call, or what is asked for makes
            no page of it.
        InvalidField: The path leads nowhere, or the expression cannot be run.
    """
    asked = query.get("call", "")
    own = dashboard.live.recent_of(viewer.caller.principal)
    call = next((c for c in own if c.id == asked and can_read_result(viewer, c)), None)
    view = await dashboard.view(viewer.caller)
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
    said = [pluralize(call.tokens_out_before or 0, "token"), " in all, kept until ",
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
    return tag("p", tag("a", "Read on", href=_result_url(call.id, words), rel="next"))


def _result_url(call: str, words: JsonObject) -> str:
    return f"/ui/kept?{urlencode({'call': call, **words})}"


def _pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


_ENDINGS = {"ok": "good", "tool_error": "bad", "failed": "bad", "refused": "warn"}
_COLUMNS = ("Time", "Tool", "Outcome", "Took", "Tokens", "By")
_NUMBERS = ("Took", "Tokens", "Sent")


def render_calls(
    running: Iterable[CallStarted], done: Sequence[CallFinished], *, most: int
) -> Html:
    """A table of calls, newest first."""
    rows = [_running(call) for call in running] + [_done(call) for call in done[:most]]
    if not rows:
        return tag("p", "No tool has been called yet.", class_="quiet")
    return _scrolling(_COLUMNS, rows, "calls-title")


def render_spilled_results(viewer: Viewer, done: Iterable[CallFinished], life: float) -> Html:
    """Results that were too large to send, until when they can be read, and the way to it."""
    rows = [
        tag(
            "tr",
            tag("td", time_tag(call.at)),
            tag("th", _tool(call.tool), scope="row"),
            tag("td", _opening(viewer, call)),
            tag("td", number(call.tokens_out_before or 0), class_="number"),
            tag("td", "–" if call.tokens_out is None else number(call.tokens_out), class_="number"),
            tag("td", time_tag(call.at + life)),
        )
        for call in done
        if call.spilled
    ]
    if not rows:
        return tag("p", "No result was kept back.", class_="quiet")
    return _scrolling(
        ("Time", "Tool", "Result", "Tokens", "Sent", "Kept until"), rows, "kept-title"
    )


def _opening(viewer: Viewer, call: CallFinished) -> Html | str:
    if not can_read_result(viewer, call):
        return "of another caller" if call.principal != viewer.caller.principal else "elsewhere"
    return tag(
        "a", "Open", href=spilled_result_url(call), aria_label=f"Open the result of {call.tool}"
    )


def _running(call: CallStarted) -> Html:
    return tag(
        "tr",
        tag("td", time_tag(call.at)),
        tag("th", _tool(call.tool), scope="row"),
        tag("td", badge("running", "busy")),
        tag("td", "…", class_="number"),
        tag("td", "", class_="number"),
        tag("td", _who(call)),
    )


def _done(call: CallFinished) -> Html:
    marks = [word for word in ("cached", "spilled", "projected") if getattr(call, word)]
    return tag(
        "tr",
        tag("td", time_tag(call.at)),
        tag("th", _tool(call.tool), scope="row"),
        tag("td", badge(call.error or call.outcome, _ENDINGS.get(call.outcome, "")),
            [badge(mark) for mark in marks]),
        tag("td", milliseconds(call.duration * 1000), class_="number"),
        tag("td", _tokens(call), class_="number"),
        tag("td", _who(call)),
    )  # fmt: skip


def _tokens(call: CallFinished) -> str:
    before = call.tokens_out_before
    if call.tokens_out is None:
        return "–" if before is None else f"of {number(before)}"
    if before is None or before <= call.tokens_out:
        return number(call.tokens_out)
    return f"{number(call.tokens_out)} of {number(before)}"


def _tool(tool: str) -> Html:
    return tag("a", tool, href=f"/ui/tool?id={quote(tool)}")


def _who(call: CallStarted | CallFinished) -> str:
    return " · ".join(filter(None, [call.client, call.principal, call.via]))


def _scrolling(columns: Sequence[str], rows: Sequence[Html], title: str) -> Html:
    """A table that a keyboard can scroll where it is wider than the screen."""
    head = [
        tag("th", column, scope="col", class_="number" if column in _NUMBERS else None)
        for column in columns
    ]
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *rows))
    return tag("div", table, class_="wide", tabindex="0", role="region", aria_labelledby=title)
