"""Calls in progress, recent and rejected calls, and the results that were too large to send.

A stored result is read in pages, as a model reads it, by the caller that made the call. The handle
never reaches the browser: a page is requested by the id of its call, which leads to a handle only
for the caller that made it. To anybody else, the result does not exist.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import quote, urlencode

from pegboard.core.calls import LOCAL_CALLER
from pegboard.core.events import CallFinished, CallRejected, CallStarted
from pegboard.core.json import JsonObject
from pegboard.dashboard.interface import Dashboard, Viewer
from pegboard.dashboard.markup import (
    Child,
    Html,
    Row,
    badge,
    format_milliseconds,
    format_number,
    join,
    pluralize,
    render_table,
    tag,
    time_tag,
)
from pegboard.dashboard.visibility import Visibility
from pegboard.errors import InvalidArguments, ToolNotFound

_FIELDS = {
    "path": ("Path", "such as items[3].body"),
    "grep": ("Filter", "words to find"),
    "select": ("JMESPath", "such as [].title"),
}
"""The parameters of `read_result` that a viewer can set, with their labels and placeholders."""
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
    parameters: JsonObject = {w: query[w][:_MAX_LENGTH] for w in _FIELDS if query.get(w)}
    offset = query.get("offset", "0")
    if not offset.lstrip("-").isdecimal() or len(offset) > 10:
        raise InvalidArguments("The offset must be a whole number.", field="offset")
    if int(offset):
        parameters["offset"] = int(offset)
    answer = await view.read_result({"handle": call.handle, **parameters}, viewer.caller)
    page = json.loads(answer.content[0]["text"])
    expires_at = call.at + view.options.spill_ttl
    tool = view.catalog.get(call.tool)
    name = call.tool if tool is None else view.catalog.address(tool)
    return f"Result of {name}", _render_page(call, name, parameters, page, expires_at)


def _render_page(
    call: CallFinished, name: str, parameters: JsonObject, page: JsonObject, expires_at: float
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
        tag("div", tag("label", label, for_=field),
            tag("input", id=field, name=field, value=parameters.get(field, ""),
                placeholder=placeholder, maxlength=_MAX_LENGTH))
        for field, (label, placeholder) in _FIELDS.items()
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
            tag("h1", "Result of ", tag("code", name)),
            tag("p", tokens, " in total, stored until ", time_tag(expires_at), position,
                class_="quiet", role="status"),
            form,
            tag("pre", tag("code", text), tabindex="0", aria_label="The result"),
            link,
        ]
    )  # fmt: skip


def _result_url(call: str, parameters: JsonObject) -> str:
    return f"/ui/result?{urlencode({'call': call, **parameters})}"


_OUTCOMES = {
    "ok": ("ok", "good"),
    "tool_error": ("failed", "bad"),
    "failed": ("failed", "bad"),
    "refused": ("refused", "warn"),
    "cancelled": ("canceled", ""),
}
_MARKS = {"cached": "cached", "spilled": "stored", "projected": "fields selected"}
"""What was done with a result, by the field of the event."""
_COLUMNS = ("Time", "Tool", "Outcome", "Duration", "Tokens", "Client")
_NUMBERS = ("Duration", "Tokens", "Sent")
_TOOL_COLUMN = 1

Call: TypeAlias = CallFinished | CallRejected


def merge_calls(visible: Visibility, *, only_problems: bool = False) -> list[Call]:
    """Finished and rejected calls together, newest first."""
    calls: list[Call] = [*visible.recent(), *visible.rejected()]
    if only_problems:
        calls = [c for c in calls if isinstance(c, CallRejected) or c.outcome != "ok"]
    return sorted(calls, key=lambda call: call.at, reverse=True)


def render_calls(
    visible: Visibility, *, most: int | None = None, only_problems: bool = False
) -> Html:
    """A table of calls, newest first, with their arguments and errors."""
    calls = merge_calls(visible, only_problems=only_problems)[:most]
    rows: list[Row] = []
    for call in () if only_problems else visible.running():
        tool, state = _tool_link(visible, call.tool), badge("running", "busy")
        rows.append(Row([time_tag(call.at), tool, state, "…", "", _client(call)]))
    for call in calls:
        if isinstance(call, CallFinished):
            rows.append(_finished_row(visible, call))
            continue
        # No tool was found for this one, so its name may be anything that a client sent.
        state = badge("unknown tool" if call.error == ToolNotFound.kind else "refused", "warn")
        cells = [time_tag(call.at), call.name, state, "–", "–", _client(call)]
        key = f"{call.at}-{call.arguments[:16]}"
        rows.append(Row(cells, _details(visible, call, key)))
    if not rows:
        nothing = "No call has failed." if only_problems else "No tool has been called yet."
        return tag("p", nothing, class_="quiet")
    return _calls_table(rows)


def render_finished_calls(visible: Visibility, calls: Iterable[CallFinished]) -> Html:
    """A table of these calls."""
    return _calls_table([_finished_row(visible, call) for call in calls])


def _calls_table(rows: Sequence[Row]) -> Html:
    return render_table(
        _COLUMNS, rows, labelled_by="calls-title", numbers=_NUMBERS, header=_TOOL_COLUMN
    )


def render_stored_results(visible: Visibility) -> Html:
    """The results that were too large to send, with their expiry and a link to read them."""
    lifetime = visible.view.options.spill_ttl
    rows = [
        Row(
            [
                time_tag(call.at),
                _tool_link(visible, call.tool),
                _result_link(visible, call),
                format_number(call.tokens_out_before or 0),
                "–" if call.tokens_out is None else format_number(call.tokens_out),
                time_tag(call.at + lifetime),
            ]
        )
        for call in visible.recent()
        if call.spilled
    ]
    if not rows:
        return tag("p", "No result was too large to send.", class_="quiet")
    columns = ("Time", "Tool", "Result", "Tokens", "Sent", "Stored until")
    return render_table(
        columns, rows, labelled_by="stored-title", numbers=_NUMBERS, header=_TOOL_COLUMN
    )


def problems_link(*, only_problems: bool) -> Html:
    """The links between all calls and those that failed."""
    links = (("/ui/calls", "All calls", False), ("/ui/calls?only=problems", "Problems", True))
    items = [
        tag("li", tag("a", text, href=path,
                      aria_current="true" if chosen == only_problems else None))
        for path, text, chosen in links
    ]  # fmt: skip
    return tag("nav", tag("ul", *items), aria_label="Which calls", class_="pager")


def _result_link(visible: Visibility, call: CallFinished) -> Html | str:
    viewer = visible.viewer
    if can_read_result(viewer, call):
        label = f"Open the result of {visible.name(call.tool)}"
        return tag("a", "Open", href=_result_url(call.id, {}), aria_label=label)
    # Without a handle the call was made through another process, which has the result.
    is_own = call.principal == viewer.caller.principal
    return "in another process" if is_own else "of another caller"


def _finished_row(visible: Visibility, call: CallFinished) -> Row:
    marks = [text for field, text in _MARKS.items() if getattr(call, field)]
    text, kind = _OUTCOMES[call.outcome]
    before, sent = call.tokens_out_before, call.tokens_out
    if sent is None:
        tokens = "–" if before is None else f"of {format_number(before)}"
    elif before is None or before <= sent:
        tokens = format_number(sent)
    else:
        tokens = f"{format_number(sent)} of {format_number(before)}"
    return Row(
        [
            time_tag(call.at),
            _tool_link(visible, call.tool),
            [badge(text, kind), [badge(mark) for mark in marks]],
            format_milliseconds(call.duration * 1000),
            tokens,
            _client(call),
        ],
        _details(visible, call, call.id),
    )


def _details(visible: Visibility, call: Call, key: str) -> Html | None:
    """The error and the arguments of a call, as far as the viewer may see them."""
    found = visible.details(call)
    parts: list[Child] = []
    if call.error:
        message = found.message or "Only the caller can see the message."
        if visible.dashboard.arguments() == "off":
            message = ""
        # The outcome already says these two.
        is_said = message and call.error in (ToolNotFound.kind, "tool_error")
        kind = None if is_said else [tag("code", call.error), " "]
        parts.append(tag("p", kind, message, class_="problem"))
    if found.arguments:
        text = json.dumps(found.arguments, ensure_ascii=False, indent=2)
        # The key lets the script keep it open when the table is updated.
        parts.append(
            tag("details", tag("summary", "Arguments"),
                tag("pre", tag("code", text), tabindex="0"), data_key=key)
        )  # fmt: skip
    return join(parts) if parts else None


def _tool_link(visible: Visibility, tool: str) -> Html | str:
    name = visible.name(tool)
    if visible.view.catalog.get(tool) is None:  # gone, or hidden from this viewer
        return name
    return tag("a", name, href=f"/ui/tool?id={quote(tool)}")


def _client(call: CallStarted | Call) -> str:
    # On a personal machine, every call is by the local user, so the name is left out.
    who = None if call.principal == LOCAL_CALLER.principal else call.principal
    via = f"via {call.via}" if call.via else None
    return " · ".join(filter(None, [call.client, who, via])) or "–"
