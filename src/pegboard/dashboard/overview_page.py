"""The first page: statistics, servers, circuit breakers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from pegboard.core.circuit_breaker import BreakerState
from pegboard.core.json import JsonObject
from pegboard.dashboard.interface import ServerRow
from pegboard.dashboard.markup import (
    Child,
    Html,
    badge,
    format_milliseconds,
    format_number,
    pluralize,
    tag,
)
from pegboard.dashboard.token_costs import ListCosts
from pegboard.modes.mode import View

_STATES = {
    "ready": "good", "failed": "bad", "left out": "bad", "starting": "busy", "stopping": "busy",
}  # fmt: skip


def render_statistics(view: View, snapshot: JsonObject, cost: ListCosts | None) -> Html:
    """The statistics at the top: tools, token cost, savings, calls."""
    calls = snapshot["calls"]
    off = len(view.catalog) - len(view.catalog.enabled)
    groups = pluralize(sum(1 for group in view.catalog.groups if group.tool_count), "group")
    lists = pluralize(sum(snapshot["lists_by_mode"].values()), "list")
    failed = calls["calls"] - calls["outcomes"].get("ok", 0)
    failures: Child = ", none failed"
    if failed:
        failures = [", ", tag("a", f"{format_number(failed)} failed", href="/ui/calls")]
    median, slow = "–", "no call has finished yet"
    if calls["calls"]:
        median = format_milliseconds(calls["p50_ms"])
        slow = f"95th percentile {format_milliseconds(calls['p95_ms'])}"
    # Counting a large catalog takes a second: the page is shown before it is done.
    listed, mode, saved = "counting …", "counting definitions", "counting …"
    if cost is not None:
        listed, saved = format_number(cost.shown), format_number(tokens_saved(snapshot, cost))
        mode = f"{cost.mode} mode; all tools would be {format_number(cost.whole)}"
    return tag(
        "dl",
        _card("Tools", format_number(len(view.catalog.enabled)),
              f"in {groups}" + (f", {off} switched off" if off else "")),
        _card("Tokens in the list", listed, mode),
        _card("Tokens saved so far", saved,
              f"in {lists} and {pluralize(calls['calls'], 'result')}"),
        _card("Calls", format_number(calls["calls"]), f"{snapshot['in_flight']} running", failures),
        _card("Median duration", median, slow),
        class_="statistics",
    )  # fmt: skip


def tokens_saved(snapshot: JsonObject, cost: ListCosts) -> int:
    """Tokens that clients did not have to read: in lists, by the mode of each, and in results."""
    lists = sum(
        count * max(0, cost.whole - cost.by_mode.get(mode, cost.whole))
        for mode, count in snapshot["lists_by_mode"].items()
    )
    return lists + snapshot["calls"]["tokens_saved"]


def render_servers(lines: Sequence[ServerRow], view: View, snapshot: JsonObject) -> Html:
    """The servers that the viewer may see, with their state."""
    tools = Counter(t.server for t in view.catalog.enabled)
    rows = [
        _server(line, tools[line.name], snapshot)
        for line in lines
        # A server without tools for this viewer is shown only if it needs attention.
        if tools[line.name] or line.problem or line.state in ("starting", "disabled")
    ]
    numbers = ("Tools", "Calls", "Running", "95th percentile")
    head = tag(
        "tr",
        *[tag("th", c, scope="col") for c in ("Server", "State")],
        *[tag("th", c, scope="col", class_="number") for c in numbers],
    )
    return tag(
        "div",
        tag("table", tag("thead", head), tag("tbody", *rows)),
        class_="wide",
        tabindex="0",
        role="region",
        aria_labelledby="servers-title",
    )


def render_breakers(open_now: Mapping[str, BreakerState]) -> Html:
    """The circuit breakers that are not closed: servers and tools that failed repeatedly."""
    if not open_now:
        return tag("p", "All circuit breakers are closed.", class_="quiet")
    items = [
        tag("li", tag("strong", name.partition(":")[2]), " ", badge(state, "bad"), " ",
            tag("span", name.partition(":")[0], class_="quiet"))
        for name, state in sorted(open_now.items())
    ]  # fmt: skip
    return tag("ul", *items, class_="plain")


def _server(line: ServerRow, tools: int, snapshot: JsonObject) -> Html:
    calls = snapshot["upstreams"].get(line.name, {})
    name = tag("a", line.name, href=f"/ui/tools?server={quote(line.name)}") if tools else line.name
    version = " ".join(filter(None, [line.version, line.era]))
    retry = f" Retry in {line.retry_after:.0f} s." if line.retry_after > 0 else ""
    # Before the first call, the latency of the server itself is the best estimate.
    duration = calls["p95_ms"] if calls else line.latency and line.latency * 1000
    cells: list[Child] = [
        format_number(tools),
        format_number(calls.get("calls", 0)),
        format_number(line.in_flight),
        "–" if duration is None else format_milliseconds(duration),
    ]
    return tag(
        "tr",
        tag("th", name, tag("small", version) if version else None, scope="row"),
        tag("td", badge(line.state, _STATES.get(line.state, "")),
            tag("small", line.problem + retry, class_="problem") if line.problem else None),
        *[tag("td", cell, class_="number") for cell in cells],
    )  # fmt: skip


def _card(name: str, value: str, *more: Child) -> Html:
    return tag(
        "div", tag("dt", name), tag("dd", tag("strong", value), tag("span", *more)), class_="card"
    )
