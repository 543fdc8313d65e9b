"""Calls in progress, recent calls, and the results that were too large to send.

A stored result is read in pages, as a model reads it, by the caller that made the call. The handle
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
    format_milliseconds,
    format_number,
    join,
    pluralize,
    tag,
    time_tag,
)
from pegboard.errors import InvalidArguments

_PARAMETERS = ("path", "grep", "select")
_MAX_LENGTH = 500


def can_read_result(viewer: Viewer, call: CallFinished) -> bool:
    """Whether a viewer may read the stored result of a call: only the caller who made it."""
    return call.handle is not None and call.principal == viewer.caller.principal


def stored_result_url(call: CallFinished) -> str:
    """The address of the stored result of a call."""
    return _result_url(call.id, {})


async def stored_result_page(
    viewer: Viewer, dashboard: Dashboard, query: Mapping[str, str]
) -> tuple[str, Html]:
    """The title and the body of a page of a stored result.

    Raises:
        InvalidArguments: The viewer has no stored result of this call, or the query is not valid.
        InvalidField: The path does not exist, or the expression is not valid.
    """
    call_id = query.get("call", "")
    own = dashboard.live.recent_of(viewer.caller.principal)
    call = next((c for c in own if c.id == call_id and can_read_result(viewer, c)), None)
    view = await dashboard.view(viewer.caller)
    if call is None or call.handle is None or view.read_result is None:
        raise InvalidArguments("There is no such result, or it has expired. Call the tool again.")
    reading = _parse_query(query)
    answer = await view.read_result({"handle": call.handle, **reading}, viewer.caller)
    part = json.loads(answer.content[0]["text"])
    return f"Result of {call.tool}", _body(call, reading, part, view.options.spill_ttl)


def _parse_query(query: Mapping[str, str]) -> JsonObject:
    reading: JsonObject = {w: query[w][:_MAX_LENGTH] for w in _PARAMETERS if query.get(w)}
    offset = query.get("offset", "0")
    if not offset.lstrip("-").isdecimal() or len(offset) > 10:
        raise InvalidArguments("The offset must be a whole number.", field="offset")
    return {**reading, "offset": int(offset)} if int(offset) else reading


def _body(call: CallFinished, reading: JsonObject, part: JsonObject, lifetime: float) -> Html:
    next_page = part.pop("next", None)
    text = part.pop("text", None)
    shown = text if text is not None else _format_json(part.pop("value", part.pop("matches", None)))
    summary = [pluralize(call.tokens_out_before or 0, "token"), " in total, stored until ",
            time_tag(call.at + lifetime)]  # fmt: skip
    if "total" in part:
        first = min(part.get("offset", 0) + 1, part["total"])
        summary += [f"; showing from item {format_number(first)} of {format_number(part['total'])}"]
    return join(
        [
            tag("h1", "Result of ", tag("code", call.tool)),
            tag("p", *summary, class_="quiet", role="status"),
            _form(call, reading),
            tag("pre", tag("code", shown), tabindex="0", aria_label="The result"),
            _next_link(call, reading, next_page),
        ]
    )


def _form(call: CallFinished, reading: JsonObject) -> Html:
    labels = {"path": "Path", "grep": "Filter", "select": "JMESPath"}
    fields = [
        tag("div", tag("label", labels[word], for_=word),
            tag("input", id=word, name=word, value=reading.get(word, ""), maxlength=_MAX_LENGTH))
        for word in _PARAMETERS
    ]  # fmt: skip
    return tag(
        "form",
        tag("input", type="hidden", name="call", value=call.id),
        *fields,
        tag("button", "Read", type="submit", class_="primary"),
        method="get",
        action="/ui/result",
        class_="fields",
    )


def _next_link(call: CallFinished, reading: JsonObject, next_page: object) -> Html | None:
    if not isinstance(next_page, dict):
        return None
    parameters = {**reading, **{str(k): v for k, v in next_page.items() if k != "handle"}}
    return tag("p", tag("a", "Next page", href=_result_url(call.id, parameters), rel="next"))


def _result_url(call: str, parameters: JsonObject) -> str:
    return f"/ui/result?{urlencode({'call': call, **parameters})}"


def _format_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


_OUTCOME_BADGES = {"ok": "good", "tool_error": "bad", "failed": "bad", "refused": "warn"}
_COLUMNS = ("Time", "Tool", "Outcome", "Duration", "Tokens", "Caller")
_NUMBERS = ("Duration", "Tokens", "Sent")


def render_calls(
    running: Iterable[CallStarted], done: Sequence[CallFinished], *, most: int
) -> Html:
    """A table of calls, newest first."""
    rows = [_running_row(call) for call in running] + [_finished_row(call) for call in done[:most]]
    if not rows:
        return tag("p", "No tool has been called yet.", class_="quiet")
    return _scrollable_table(_COLUMNS, rows, "calls-title")


def render_stored_results(viewer: Viewer, done: Iterable[CallFinished], lifetime: float) -> Html:
    """The results that were too large to send, with their expiry and a link to read them."""
    rows = [
        tag(
            "tr",
            tag("td", time_tag(call.at)),
            tag("th", _tool_link(call.tool), scope="row"),
            tag("td", _result_link(viewer, call)),
            tag("td", format_number(call.tokens_out_before or 0), class_="number"),
            tag(
                "td",
                "–" if call.tokens_out is None else format_number(call.tokens_out),
                class_="number",
            ),
            tag("td", time_tag(call.at + lifetime)),
        )
        for call in done
        if call.spilled
    ]
    if not rows:
        return tag("p", "No result was too large to send.", class_="quiet")
    return _scrollable_table(
        ("Time", "Tool", "Result", "Tokens", "Sent", "Stored until"), rows, "stored-title"
    )


def _result_link(viewer: Viewer, call: CallFinished) -> Html | str:
    if not can_read_result(viewer, call):
        return (
            "of another caller"
            if call.principal != viewer.caller.principal
            else "in another process"
        )
    return tag(
        "a", "Open", href=stored_result_url(call), aria_label=f"Open the result of {call.tool}"
    )


def _running_row(call: CallStarted) -> Html:
    return tag(
        "tr",
        tag("td", time_tag(call.at)),
        tag("th", _tool_link(call.tool), scope="row"),
        tag("td", badge("running", "busy")),
        tag("td", "…", class_="number"),
        tag("td", "", class_="number"),
        tag("td", _caller(call)),
    )


def _finished_row(call: CallFinished) -> Html:
    marks = [word for word in ("cached", "spilled", "projected") if getattr(call, word)]
    return tag(
        "tr",
        tag("td", time_tag(call.at)),
        tag("th", _tool_link(call.tool), scope="row"),
        tag("td", badge(call.error or call.outcome, _OUTCOME_BADGES.get(call.outcome, "")),
            [badge(mark) for mark in marks]),
        tag("td", format_milliseconds(call.duration * 1000), class_="number"),
        tag("td", _tokens(call), class_="number"),
        tag("td", _caller(call)),
    )  # fmt: skip


def _tokens(call: CallFinished) -> str:
    before = call.tokens_out_before
    if call.tokens_out is None:
        return "–" if before is None else f"of {format_number(before)}"
    if before is None or before <= call.tokens_out:
        return format_number(call.tokens_out)
    return f"{format_number(call.tokens_out)} of {format_number(before)}"


def _tool_link(tool: str) -> Html:
    return tag("a", tool, href=f"/ui/tool?id={quote(tool)}")


def _caller(call: CallStarted | CallFinished) -> str:
    return " · ".join(filter(None, [call.client, call.principal, call.via]))


def _scrollable_table(columns: Sequence[str], rows: Sequence[Html], title: str) -> Html:
    """A table that can be scrolled with the keyboard if it is wider than the screen."""
    head = [
        tag("th", column, scope="col", class_="number" if column in _NUMBERS else None)
        for column in columns
    ]
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *rows))
    return tag("div", table, class_="wide", tabindex="0", role="region", aria_labelledby=title)
