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

_LABELS = {"path": "Path", "grep": "Filter", "select": "JMESPath"}
"""The parameters of `read_result` that a viewer can set, and the labels of their fields."""
_MAX_LENGTH = 500


def can_read_result(viewer: Viewer, call: CallFinished) -> bool:
    """Whether a viewer may read the stored result of a call: only the caller who made it."""
    return call.handle is not None and call.principal == viewer.caller.principal


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
    parameters: JsonObject = {w: query[w][:_MAX_LENGTH] for w in _LABELS if query.get(w)}
    offset = query.get("offset", "0")
    if not offset.lstrip("-").isdecimal() or len(offset) > 10:
        raise InvalidArguments("The offset must be a whole number.", field="offset")
    if int(offset):
        parameters["offset"] = int(offset)
    answer = await view.read_result({"handle": call.handle, **parameters}, viewer.caller)
    page = json.loads(answer.content[0]["text"])
    expires_at = call.at + view.options.spill_ttl
    return f"Result of {call.tool}", _render_page(call, parameters, page, expires_at)


def _render_page(
    call: CallFinished, parameters: JsonObject, page: JsonObject, expires_at: float
) -> Html:
    text = page.get("text")
    if text is None:
        value = page.get("value", page.get("matches"))
        text = json.dumps(value, ensure_ascii=False, indent=2)
    tokens = pluralize(call.tokens_out_before or 0, "token")
    position = ""
    if "total" in page:
        first = min(page.get("offset", 0) + 1, page["total"])
        position = f"; showing from item {format_number(first)} of {format_number(page['total'])}"
    fields = [
        tag("div", tag("label", label, for_=name),
            tag("input", id=name, name=name, value=parameters.get(name, ""), maxlength=_MAX_LENGTH))
        for name, label in _LABELS.items()
    ]  # fmt: skip
    form = tag(
        "form",
        tag("input", type="hidden", name="call", value=call.id),
        *fields,
        tag("button", "Read", type="submit", class_="primary"),
        method="get",
        action="/ui/result",
        class_="fields",
    )
    link = None
    if isinstance(page.get("next"), dict):
        # The next page is requested by the id of the call; the handle stays on the server.
        further = {k: v for k, v in page["next"].items() if k != "handle"}
        address = _result_url(call.id, {**parameters, **further})
        link = tag("p", tag("a", "Next page", href=address, rel="next"))
    return join(
        [
            tag("h1", "Result of ", tag("code", call.tool)),
            tag("p", tokens, " in total, stored until ", time_tag(expires_at), position,
                class_="quiet", role="status"),
            form,
            tag("pre", tag("code", text), tabindex="0", aria_label="The result"),
            link,
        ]
    )  # fmt: skip


def _result_url(call: str, parameters: JsonObject) -> str:
    return f"/ui/result?{urlencode({'call': call, **parameters})}"


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
    if can_read_result(viewer, call):
        label = f"Open the result of {call.tool}"
        return tag("a", "Open", href=_result_url(call.id, {}), aria_label=label)
    # Without a handle the call was made through another process, which has the result.
    is_own = call.principal == viewer.caller.principal
    return "in another process" if is_own else "of another caller"


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
