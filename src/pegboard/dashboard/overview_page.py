"""The first page: statistics, servers, circuit breakers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from pegboard.core.circuit_breaker import BreakerState
from pegboard.core.json import JsonObject
from pegboard.core.tool_lock import hold_reason
from pegboard.dashboard.interface import ServerRow
from pegboard.dashboard.markup import (
    Child,
    Html,
    Row,
    badge,
    format_milliseconds,
    format_number,
    pluralize,
    render_table,
    tag,
)
from pegboard.dashboard.token_costs import ListCosts
from pegboard.modes.mode import View

STATE_NAMES = {"cold": "not started", "ready": "running"}
"""States whose internal names would need an explanation."""
_STATES = {
    "ready": "good", "failed": "bad", "left out": "bad", "starting": "busy", "stopping": "busy",
    "signed in": "good", "sign in": "warn", "sign in again": "warn",
}  # fmt: skip


def render_statistics(view: View, snapshot: JsonObject, cost: ListCosts | None) -> Html:
    """The statistics at the top: tools, token cost, savings, calls."""
    calls = snapshot["calls"]
    held = sum(1 for tool in view.catalog if hold_reason(tool) is not None)
    off = len(view.catalog) - len(view.catalog.enabled) - held
    groups = pluralize(sum(1 for group in view.catalog.groups if group.tool_count), "group")
    lists = pluralize(sum(snapshot["lists_by_mode"].values()), "list")
    failed, refused = count_failed(calls), count_refused(calls)
    results = calls["calls"] - refused
    refused += snapshot["rejected"]
    failures: Child = ", none failed"
    if failed or refused:
        words = [f"{format_number(failed)} failed"] if failed else []
        words += [f"{format_number(refused)} refused"] if refused else []
        failures = [", ", tag("a", ", ".join(words), href="/ui/calls?only=problems")]
    median, slow = "–", "no call has finished yet"
    if results:
        median = format_milliseconds(calls["p50_ms"])
        slow = f"95th percentile {format_slowest(calls)}"
    # Counting a large catalog takes a second: the page is shown before it is done.
    listed, mode, saved = "counting …", "counting definitions", "counting …"
    if cost is not None:
        listed, saved = format_number(cost.shown), format_number(total_tokens_saved(snapshot, cost))
        mode = f"{cost.mode} mode; all tools would be {format_number(cost.whole)}"
    return tag(
        "dl",
        _card("Tools", format_number(len(view.catalog.enabled)),
              f"in {groups}" + (f", {off} disabled" if off else "")
              + (f", {held} held back" if held else "")),
        _card("Tokens in the list", listed, mode),
        _card("Tokens saved so far", saved,
              f"in {lists} and {pluralize(results, 'result')}"),
        _card("Calls", format_number(calls["calls"] + snapshot["rejected"]),
              f"{snapshot['in_flight']} running", failures),
        _card("Median duration", median, slow),
        class_="statistics",
    )  # fmt: skip


def count_failed(tally: JsonObject) -> int:
    """The calls that ran and failed."""
    return tally["outcomes"].get("failed", 0) + tally["outcomes"].get("tool_error", 0)


def count_refused(tally: JsonObject) -> int:
    """The calls that were refused, and so did not run."""
    return tally["outcomes"].get("refused", 0)


def format_slowest(tally: JsonObject | None) -> str:
    """The 95th percentile of the durations; a dash before a call has run."""
    if tally is None or tally["calls"] == count_refused(tally):
        return "–"
    return format_milliseconds(tally["p95_ms"])


def total_tokens_saved(snapshot: JsonObject, cost: ListCosts) -> int:
    """Tokens that clients did not have to read: in lists, by the mode of each, and in results."""
    lists = sum(
        count * max(0, cost.whole - cost.by_mode.get(mode, cost.whole))
        for mode, count in snapshot["lists_by_mode"].items()
    )
    return lists + snapshot["calls"]["tokens_saved"]


_COLUMNS = ("Server", "State", "Tools", "Calls", "Running", "95th percentile")


def render_servers(lines: Sequence[ServerRow], view: View, snapshot: JsonObject) -> Html:
    """The servers that the viewer may see, with their state."""
    tools = Counter(t.server for t in view.catalog.enabled)
    # Those that need attention first; otherwise in the order of the configuration.
    ordered = sorted(lines, key=lambda line: line.problem is None)
    rows = [_server(line, tools[line.name], snapshot) for line in ordered]
    return render_table(_COLUMNS, rows, labelled_by="servers-title", numbers=_COLUMNS[2:])


def render_breakers(open_now: Mapping[str, BreakerState]) -> Html:
    """The circuit breakers that are not closed: servers and tools that failed repeatedly."""
    if not open_now:
        return Html("")
    items = [
        tag("li", tag("strong", name.partition(":")[2]), " ", badge(state, "bad"), " ",
            tag("span", name.partition(":")[0], class_="quiet"))
        for name, state in sorted(open_now.items())
    ]  # fmt: skip
    note = "These failed repeatedly, so calls to them are refused for a while."
    return tag(
        "section",
        tag("h2", "Circuit breakers", id="breakers-title"),
        tag("p", note, class_="quiet"),
        tag("ul", *items, class_="plain"),
    )


def _server(line: ServerRow, tools: int, snapshot: JsonObject) -> Row:
    calls = snapshot["upstreams"].get(line.name)
    name = tag("a", line.name, href=f"/ui/tools?server={quote(line.name)}") if tools else line.name
    return Row(
        [
            name,
            state_badges(line),
            format_number(tools) if tools or line.is_listed else "–",
            format_number(calls["calls"] if calls else 0),
            format_number(line.in_flight),
            format_slowest(calls),
        ],
        problem_line(line),
    )


def state_badge(state: str) -> Html:
    """The state of a server."""
    return badge(STATE_NAMES.get(state, state), _STATES.get(state, ""))


def state_badges(line: ServerRow) -> list[Html]:
    """The state of a server and of the viewer's login; one that is missing leads to its page."""
    shown = [state_badge(line.state)] if line.state != line.login else []
    if line.login is not None:
        login = state_badge(line.login)
        is_link = line.login_page is not None and line.login != "signed in"
        shown.append(tag("a", login, href=line.login_page) if is_link else login)
    return [Html(f"{one} ") for one in shown]


def problem_line(line: ServerRow) -> Html | None:
    """Why a server does not work, and when it is tried again."""
    if not line.problem:
        return None
    retry = f" Retry in {line.retry_after:.0f} s." if line.retry_after > 0 else ""
    # A missing login is for the user to make; nothing has failed.
    is_login = line.state.startswith("sign in")
    return tag("p", line.problem + retry, class_="quiet" if is_login else "problem")


def _card(name: str, value: str, *more: Child) -> Html:
    return tag(
        "div", tag("dt", name), tag("dd", tag("strong", value), tag("span", *more)), class_="card"
    )
