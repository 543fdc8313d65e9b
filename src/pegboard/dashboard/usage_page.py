"""The usage page: calls and saved tokens over time, by server and by tool.

Its numbers come from the call history, which outlives the process. It is for operators, because the
history does not say whose calls it counts.

The bar charts are SVG, without a library and without inline styles. The bars are stretched to the
width of the page. Their labels are HTML below them, because text in a stretched picture would be
stretched too. Each chart has a text for screen readers, and the page shows the same numbers as a
table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self
from urllib.parse import urlencode

from pegboard.dashboard.markup import Child, Html, Row, format_number, join, render_table, tag
from pegboard.dashboard.token_costs import ListCosts
from pegboard.observe.call_history import HOUR, HistoryRow

PERIODS = {"day": "24 hours", "week": "7 days", "month": "30 days", "quarter": "90 days"}
_DAYS = {"week": 7, "month": 30, "quarter": 90}
_MAX_RANKED = 15


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """What the usage page shows: a period, and perhaps one server or one tool."""

    period: str = "week"
    server: str = ""
    tool: str = ""

    @classmethod
    def parse(cls, values: Mapping[str, str]) -> Self:
        """Parse the query of a URL; values that are not valid are ignored."""
        period = values.get("period", "")
        return cls(
            period=period if period in PERIODS else "week",
            server=values.get("server", "")[:200],
            tool=values.get("tool", "")[:200],
        )

    def url(self, **changes: str) -> str:
        """The URL of this page with some values changed."""
        values = {"period": self.period, "server": self.server, "tool": self.tool, **changes}
        return f"/ui/usage?{urlencode({k: v for k, v in values.items() if v})}"

    def admits(self, row: HistoryRow) -> bool:
        """Whether a row belongs to the chosen server and tool."""
        if self.server and row.server != self.server:
            return False
        return not self.tool or row.name == self.tool

    @property
    def is_filtered(self) -> bool:
        return bool(self.server or self.tool)


@dataclass(frozen=True, slots=True)
class Interval:
    """One bar of the charts."""

    begin: float
    end: float
    label: str


def day_intervals(days: int, now: datetime) -> list[Interval]:
    """The last days in the time zone of the server, today included."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    starts = [today - timedelta(days=back) for back in reversed(range(days))]
    ends = [*starts[1:], now + timedelta(hours=1)]
    return [
        Interval(start.timestamp(), end.timestamp(), f"{start:%b} {start.day}")
        for start, end in zip(starts, ends, strict=True)
    ]


def hour_intervals(now: datetime) -> list[Interval]:
    """The last 24 hours."""
    last = now.replace(minute=0, second=0, microsecond=0)
    starts = [last - timedelta(hours=back) for back in reversed(range(24))]
    return [Interval(s.timestamp(), s.timestamp() + HOUR, f"{s:%H:%M}") for s in starts]


def intervals(query: UsageQuery, now: datetime) -> list[Interval]:
    """The bars of the chosen period."""
    return hour_intervals(now) if query.period == "day" else day_intervals(_DAYS[query.period], now)


def render_recent(
    rows: Sequence[HistoryRow], bars: Sequence[Interval], costs: ListCosts | None
) -> Html:
    """The charts of the overview; nothing before the first call."""
    if not rows:
        return Html("")
    charts = render_charts(rows, bars, costs, f"last {len(bars)} days")
    link = tag("p", tag("a", "More about usage", href="/ui/usage"))
    return tag("section", tag("h2", "Usage"), charts, link)


def render_charts(
    rows: Sequence[HistoryRow], bars: Sequence[Interval], costs: ListCosts | None, period: str
) -> Html:
    """The two charts: calls, and tokens saved."""
    calls: list[Bar] = []
    saved: list[Bar] = []
    for bar in bars:
        here = [row for row in rows if bar.begin <= row.hour < bar.end]
        made = [row for row in here if row.kind != "list"]
        count, failed = sum(r.count for r in made), sum(r.failed for r in made)
        calls.append(Bar(bar.label, count, failed))
        saved.append(Bar(bar.label, sum(tokens_saved(row, costs) for row in here)))
    note = "lists and results" if costs else "counting lists …"
    return tag(
        "div",
        bar_chart("Calls", calls, "calls", description=f"{period}; red: failed or refused"),
        bar_chart("Tokens saved", saved, "tokens", description=f"{period}; {note}"),
        class_="charts",
    )


def tokens_saved(row: HistoryRow, costs: ListCosts | None) -> int:
    """Tokens that clients did not have to read, counted with the catalog of today."""
    if row.kind != "list" or costs is None:
        return row.tokens_saved
    return row.count * max(0, costs.whole - costs.by_mode.get(row.name, costs.whole))


def render_usage(
    query: UsageQuery,
    rows: Sequence[HistoryRow],
    bars: Sequence[Interval],
    costs: ListCosts | None,
    tool_name: Callable[[str], str],
) -> Html:
    """The whole page below its heading."""
    period = f"last {PERIODS[query.period]}"
    inside = [row for row in rows if row.hour >= bars[0].begin]
    # Lists and rejected calls belong to no server, so a filter leaves them out.
    chosen = [row for row in inside if not query.is_filtered or query.admits(row)]
    if not inside:
        nothing = "No calls have been recorded in this period yet."
        return join([_period_links(query), tag("p", nothing, class_="quiet")])
    filtered = None
    if query.is_filtered:
        name = f"Only {tool_name(query.tool)}" if query.tool else f"Only server {query.server}"
        everything = tag("a", "Show everything", href=query.url(server="", tool=""))
        filtered = tag("p", name, ". ", everything)
    return join(
        [
            _period_links(query),
            filtered,
            render_charts(chosen, bars, costs, period),
            _ranking("By server", "server", chosen, query, lambda row: row.server, str),
            _ranking("By tool", "tool", chosen, query, lambda row: row.name, tool_name),
            _numbers_table(chosen, bars, costs),
            tag("p", "Tokens saved by lists are computed from today's catalog: the tokens of all "
                "definitions, minus those of the list that was sent.", class_="quiet"),
        ]
    )  # fmt: skip


def _period_links(query: UsageQuery) -> Html:
    items = [
        tag("li", tag("a", text, href=query.url(period=key),
                      aria_current="true" if key == query.period else None))
        for key, text in PERIODS.items()
    ]  # fmt: skip
    return tag("nav", tag("ul", *items), aria_label="Period", class_="pager")


def _ranking(
    title: str,
    field: str,
    rows: Iterable[HistoryRow],
    query: UsageQuery,
    key: Callable[[HistoryRow], str],
    name: Callable[[str], str],
) -> Html | None:
    """The servers or tools that were called most."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        if row.kind == "call" and key(row):
            count = counts[key(row)]
            count[0] += row.count
            count[1] += row.failed
            count[2] += row.tokens_saved
    if not counts:
        return None
    ranked = sorted(counts.items(), key=lambda item: (-item[1][0], item[0]))
    highest = ranked[0][1][0]
    shown = [
        Row([
            tag("a", name(one), href=query.url(**{field: one})),
            tag("div", format_number(calls), share_bar(calls, highest)),
            format_number(failed),
            format_number(saved),
        ])
        for one, (calls, failed, saved) in ranked[:_MAX_RANKED]
    ]  # fmt: skip
    columns = (field.capitalize(), "Calls", "Failed or refused", "Tokens saved in results")
    rest = len(ranked) - len(shown)
    more = tag("p", f"and {format_number(rest)} more", class_="quiet") if rest else None
    table = render_table(columns, shown, labelled_by=f"by-{field}", numbers=columns[1:])
    return tag("section", tag("h2", title, id=f"by-{field}"), table, more)


def _numbers_table(
    rows: Sequence[HistoryRow], bars: Sequence[Interval], costs: ListCosts | None
) -> Html:
    """The numbers of the charts, for those who cannot see them."""
    lines: list[Row] = []
    for bar in reversed(bars):
        here = [row for row in rows if bar.begin <= row.hour < bar.end]
        made = [row for row in here if row.kind != "list"]
        lists = sum(row.count for row in here if row.kind == "list")
        values = (
            sum(r.count for r in made),
            sum(r.failed for r in made),
            lists,
            sum(tokens_saved(row, costs) for row in here),
        )
        if any(values):
            cells: list[Child] = [bar.label, *map(format_number, values)]
            lines.append(Row(cells))
    columns = ("Time", "Calls", "Failed or refused", "Lists", "Tokens saved")
    table = render_table(columns, lines, label="Usage over time", numbers=columns[1:])
    return tag("details", tag("summary", "The charts as a table"), table)


_HEIGHT = 100
_BAR = 10
_GAP = 2


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: a label for the axis, a value, and the part of it that failed."""

    label: str
    value: int
    failed: int = 0


def bar_chart(title: str, bars: Sequence[Bar], unit: str, *, description: str = "") -> Html:
    """A chart with one bar for each hour or day; `unit` is the word for one of its values."""
    highest = max((bar.value for bar in bars), default=0)
    total = sum(bar.value for bar in bars)
    shapes: list[Html] = []
    for index, bar in enumerate(bars):
        shapes.append(_bar(bar, index * (_BAR + _GAP), highest, unit))
    width = max(1, len(bars) * (_BAR + _GAP) - _GAP)
    summary = (
        f"{title}: {format_number(total)} in total, at most {format_number(highest)} at a time."
    )
    picture = tag(
        "svg", *shapes, viewBox=f"0 0 {width} {_HEIGHT}", preserveAspectRatio="none", role="img",
        aria_label=summary, class_="bars",
    )  # fmt: skip
    axis = [bars[index].label for index in sorted({0, len(bars) // 2, len(bars) - 1})]
    return tag(
        "figure",
        tag("figcaption", tag("strong", title), " ", tag("span", description, class_="quiet")),
        tag("div", format_number(highest), class_="highest quiet", aria_hidden="true"),
        picture,
        tag("div", *[tag("span", label) for label in axis], class_="axis quiet",
            aria_hidden="true"),
        class_="card chart",
    )  # fmt: skip


def _bar(bar: Bar, x: int, highest: int, unit: str) -> Html:
    height = _scaled(bar.value, highest)
    failed = min(height, _scaled(bar.failed, highest))
    text = f"{bar.label}: {format_number(bar.value)} {unit}"
    if bar.failed:
        text += f", {format_number(bar.failed)} failed"
    parts = [tag("title", text)]
    # A rectangle over the whole height, so that the tooltip of a low bar can be found too.
    parts.append(tag("rect", x=x, y=0, width=_BAR, height=_HEIGHT, class_="ground"))
    if height:
        parts.append(
            tag("rect", x=x, y=_HEIGHT - height, width=_BAR, height=height - failed, class_="value")
        )
    if failed:
        parts.append(
            tag("rect", x=x, y=_HEIGHT - failed, width=_BAR, height=failed, class_="failed")
        )
    return tag("g", *parts)


def share_bar(value: int, highest: int) -> Html:
    """A small horizontal bar for a cell of a table; the number beside it says the same."""
    width = _scaled(value, highest)
    return tag(
        "svg",
        tag("rect", x=0, y=0, width=100, height=8, class_="ground"),
        tag("rect", x=0, y=0, width=width, height=8, class_="value"),
        viewBox="0 0 100 8", preserveAspectRatio="none", class_="share", aria_hidden="true",
    )  # fmt: skip


def _scaled(value: int, highest: int) -> int:
    """The height of a value; at least 2, so that one call is visible beside a thousand."""
    return max(2, round(_HEIGHT * value / highest)) if value and highest else 0
