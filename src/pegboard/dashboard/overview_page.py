"""The first page: figures, servers, breakers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pegboard.core.circuit_breaker import BreakerState
from pegboard.core.json import JsonObject
from pegboard.dashboard.interface import ServerRow
from pegboard.dashboard.markup import Child, Html, badge, join, milliseconds, number, pluralize, tag
from pegboard.dashboard.token_costs import Cost
from pegboard.modes.mode import View

_STATES = {
    "ready": "good", "failed": "bad", "left out": "bad", "starting": "busy", "stopping": "busy",
}  # fmt: skip


def render_figures(view: View, snapshot: JsonObject, cost: Cost | None) -> Html:
    """What there is, what it costs, what was saved, what is going on."""
    calls = snapshot["calls"]
    failed = calls["calls"] - calls["outcomes"].get("ok", 0)
    return tag(
        "dl",
        _figure("Tools", number(len(view.catalog.enabled)), _groups(view)),
        _figure("Tokens of the list", _tokens(cost and cost.shown), _shown(cost)),
        _figure("Tokens saved so far", _tokens(tokens_saved(snapshot, cost)), _savings(snapshot)),
        _figure("Calls", number(calls["calls"]), _calls(snapshot, failed)),
        _figure("Median time", milliseconds(calls["p50_ms"]) if calls["calls"] else "–",
                f"95th percentile {milliseconds(calls['p95_ms'])}" if calls["calls"] else
                "no call has ended yet"),
        class_="figures",
    )  # fmt: skip


def tokens_saved(snapshot: JsonObject, cost: Cost | None) -> int | None:
    """Tokens that clients were not sent: in lists, by the mode of each, and in results."""
    if cost is None:
        return None
    lists = sum(
        count * max(0, cost.whole - cost.by_mode.get(mode, cost.whole))
        for mode, count in snapshot["lists_by_mode"].items()
    )
    return lists + snapshot["calls"]["tokens_saved"]


def render_servers(lines: Sequence[ServerRow], view: View, snapshot: JsonObject) -> Html:
    """The servers that this viewer may know of, with their state."""
    tools = Counter(t.server for t in view.catalog.enabled)
    rows = [
        _server(line, tools[line.name], snapshot)
        for line in lines
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
    """What is not asked at present because it kept failing."""
    if not open_now:
        return tag("p", "All breakers are closed.", class_="quiet")
    items = [
        tag("li", tag("strong", name.partition(":")[2]), " ", badge(state, "bad"), " ",
            tag("span", name.partition(":")[0], class_="quiet"))
        for name, state in sorted(open_now.items())
    ]  # fmt: skip
    return tag("ul", *items, class_="plain")


def _server(line: ServerRow, tools: int, snapshot: JsonObject) -> Html:
    figures = snapshot["upstreams"].get(line.name, {})
    name = tag("a", line.name, href=f"/ui/tools?server={line.name}") if tools else line.name
    said = " ".join(filter(None, [line.version, line.era]))
    retry = f" Tried again in {line.retry_after:.0f} s." if line.retry_after > 0 else ""
    cells: list[Child] = [
        number(tools),
        number(figures.get("calls", 0)),
        number(line.in_flight),
        _time(line, figures),
    ]
    return tag(
        "tr",
        tag("th", name, tag("small", said) if said else None, scope="row"),
        tag("td", badge(line.state, _STATES.get(line.state, "")),
            tag("small", line.problem + retry, class_="problem") if line.problem else None),
        *[tag("td", cell, class_="number") for cell in cells],
    )  # fmt: skip


def _time(line: ServerRow, figures: JsonObject) -> str:
    """How long its calls take; before there were any, how long it takes to answer at all."""
    if figures:
        return milliseconds(figures["p95_ms"])
    return "–" if line.latency is None else milliseconds(line.latency * 1000)


def _figure(name: str, value: str, *more: Child) -> Html:
    return tag(
        "div", tag("dt", name), tag("dd", tag("strong", value), tag("span", *more)), class_="card"
    )


def _groups(view: View) -> str:
    off = len(view.catalog) - len(view.catalog.enabled)
    groups = sum(1 for g in view.catalog.groups if g.tool_count)
    return f"in {pluralize(groups, 'group')}" + (f", {off} switched off" if off else "")


def _tokens(tokens: int | None) -> str:
    return "counting …" if tokens is None else number(tokens)


def _shown(cost: Cost | None) -> str:
    if cost is None:
        return "definitions are being counted"
    return f"{cost.mode} mode; everything would be {number(cost.whole)}"


def _savings(snapshot: JsonObject) -> str:
    lists = sum(snapshot["lists_by_mode"].values())
    return f"in {pluralize(lists, 'list')} and {pluralize(snapshot['calls']['calls'], 'result')}"


def _calls(snapshot: JsonObject, failed: int) -> Html:
    running = f"{snapshot['in_flight']} running"
    if not failed:
        return join([running, ", none failed"])
    return join([running, ", ", tag("a", f"{number(failed)} not well", href="/ui/calls")])
