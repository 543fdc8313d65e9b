"""The calls under way, the last ones, and the results that were kept back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import quote

from pegboard.core.events import CallFinished, CallStarted
from pegboard.web.interface import Viewer
from pegboard.web.kept import address, may_open
from pegboard.web.markup import Html, badge, milliseconds, number, tag, time_tag

_ENDINGS = {"ok": "good", "tool_error": "bad", "failed": "bad", "refused": "warn"}
_COLUMNS = ("Time", "Tool", "Outcome", "Took", "Tokens", "By")
_NUMBERS = ("Took", "Tokens", "Sent")


def calls(running: Iterable[CallStarted], done: Sequence[CallFinished], *, most: int) -> Html:
    """A table of calls, newest first."""
    rows = [_running(call) for call in running] + [_done(call) for call in done[:most]]
    if not rows:
        return tag("p", "No tool has been called yet.", class_="quiet")
    return _scrolling(_COLUMNS, rows, "calls-title")


def kept(viewer: Viewer, done: Iterable[CallFinished], life: float) -> Html:
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
    if not may_open(viewer, call):
        return "of another caller" if call.principal != viewer.caller.principal else "elsewhere"
    return tag("a", "Open", href=address(call), aria_label=f"Open the result of {call.tool}")


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
