"""A measurement for people: SVG charts, and a report in one HTML file.

Both use no script, load nothing, and follow the light or dark setting of the reader's system.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from pegboard.core.options import ModeName
from pegboard.measure.measurement import Measurement, format_difference, format_percent

MOST_SERVERS = 12
ROW = 30
TOP = 46
"""Pixels for the title and the subtitle."""


@dataclass(frozen=True, slots=True)
class ChartSize:
    """Pixels of a chart: in total, for labels at the left, for numbers at the right."""

    width: int
    labels: int
    numbers: int

    @property
    def label_length(self) -> int:
        """The maximum length of a label."""
        return self.labels // 8


WIDE_SIZE = ChartSize(720, labels=160, numbers=150)
NARROW_SIZE = ChartSize(340, labels=104, numbers=116)

CHART_STYLE = """
.chart { font: 13px system-ui, sans-serif; }
.chart text { fill: #1f2328; } .chart .title { font-weight: 600; font-size: 15px; }
.chart .note { fill: #59636e; } .chart .bar { fill: #6e7781; } .chart .ours { fill: #1a7f37; }
@media (prefers-color-scheme: dark) {
  .chart text { fill: #e6edf3; } .chart .note { fill: #9198a1; }
  .chart .bar { fill: #8b949e; } .chart .ours { fill: #3fb950; }
}
"""


@dataclass(frozen=True, slots=True)
class CostBar:
    """One bar: its label, its length, and a note after the number."""

    label: str
    value: float
    note: str = ""
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars with a title and a subtitle."""

    title: str
    subtitle: str
    bars: tuple[CostBar, ...]

    @property
    def height(self) -> int:
        return TOP + ROW * len(self.bars) + 10


def render_svg(charts: Sequence[Chart]) -> str:
    """An SVG file with the charts one below the other."""
    height = sum(chart.height for chart in charts)
    parts: list[str] = []
    top = 0
    for chart in charts:
        drawn = (
            f'<text x="0" y="16" class="title">{escape(chart.title)}</text>'
            f'<text x="0" y="34" class="note">{escape(chart.subtitle)}</text>'
            f"{_bars(chart, WIDE_SIZE, TOP)}"
        )
        parts.append(f'<g transform="translate(0 {top})">{drawn}</g>')
        top += chart.height
    title = escape("; ".join(chart.title for chart in charts))
    # The style is inside the file: an SVG that is shown as an image loads nothing else.
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE_SIZE.width} {height}" '
        f'width="{WIDE_SIZE.width}" height="{height}" role="img" aria-label="{title}" '
        'class="chart">'
        f"<style>{CHART_STYLE}</style>{''.join(parts)}</svg>\n"
    )


def _bar_chart(chart: Chart, size: ChartSize) -> str:
    """The bars of one chart, for an HTML page that has the style and the caption."""
    label = escape(f"{chart.title}. {chart.subtitle}")
    height = ROW * len(chart.bars)
    return (
        f'<svg viewBox="0 0 {size.width} {height}" role="img" aria-label="{label}" '
        f'class="chart">{_bars(chart, size, 0)}</svg>'
    )


def _bars(chart: Chart, size: ChartSize, top: int) -> str:
    # The longest bar fills the room; an empty chart must not divide by zero.
    largest = max((bar.value for bar in chart.bars), default=0) or 1
    room = size.width - size.labels - size.numbers
    parts: list[str] = []
    for index, bar in enumerate(chart.bars):
        middle = top + index * ROW + ROW / 2
        # At least one pixel, so that a small value is not mistaken for none.
        length = max(bar.value / largest * room, 1.0)
        kind = "ours" if bar.is_ours else "bar"
        label = bar.label
        if len(label) > size.label_length:
            label = label[: size.label_length - 1] + "…"
        parts += [
            f'<text x="{size.labels - 8}" y="{middle + 4:.0f}" text-anchor="end">'
            f"{escape(label)}</text>",
            f'<rect class="{kind}" x="{size.labels}" y="{middle - 9:.0f}" width="{length:.1f}" '
            'height="18" rx="2"/>',
            f'<text x="{size.labels + length + 6:.1f}" y="{middle + 4:.0f}">{bar.value:,.0f}'
            f'<tspan class="note"> {escape(bar.note)}</tspan></text>',
        ]
    return "".join(parts)


def build_charts(measured: Measurement) -> list[Chart]:
    """The charts of a measurement: the list, a session without and with a cache, the servers."""
    use = measured.use
    about = f"{use.tools} tools used in {use.turns} turns; in tokens at the base price"
    return [
        Chart(
            "Cost of the list",
            f"Tokens ({measured.tokenizer}) before the first request",
            tuple(_bar(mode, cost.list) for mode, cost in measured.modes.items()),
        ),
        Chart(
            "Cost of a session without a prompt cache",
            about,
            tuple(_bar(mode, cost.plain) for mode, cost in measured.sessions.items()),
        ),
        Chart(
            "Cost of a session with a prompt cache",
            f"{about}; a changed list invalidates the cache",
            tuple(_bar(mode, cost.cached) for mode, cost in measured.sessions.items()),
        ),
        Chart(
            "Cost of each server",
            f"Tokens of all their tools; the {MOST_SERVERS} most expensive",
            tuple(
                CostBar(server.name, server.tokens, f"{server.tools} tools")
                for server in measured.servers[:MOST_SERVERS]
            ),
        ),
    ]


def _bar(mode: ModeName, value: float) -> CostBar:
    return CostBar(mode, value, "", is_ours=mode == "proxy")


_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 800px; margin: 2rem auto; padding: 0 1rem;
  color: #1f2328; background: #fff; }
h2 { margin: 2.5rem 0 .5rem; } h1 { line-height: 1.2; }
table { border-collapse: collapse; width: 100%; margin: 0 0 1rem;
  font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #d1d9e0; }
td.n, th.n { text-align: right; } .wide { overflow-x: auto; } svg { width: 100%; height: auto; }
th, td { vertical-align: top; overflow-wrap: anywhere; } td.n { white-space: nowrap; }
th.n, .modes td { overflow-wrap: normal; }
figure { margin: 2rem 0; } figcaption { font-weight: 600; } .narrow { display: none; }
.note { color: #59636e; font-size: .875rem; font-weight: 400; display: block; }
summary { cursor: pointer; padding: .5rem 0; }
@media (max-width: 40rem) {
  body { margin: 1rem auto; } .narrow { display: block; } .broad { display: none; }
  th, td { padding: .3rem .4rem; } .stacked thead { display: none; }
  .stacked tr { display: block; border-bottom: 1px solid #d1d9e0; padding: .5rem 0; }
  .stacked td { display: inline; border: 0; padding: 0 .4rem 0 0; }
  .stacked td:first-child { display: block; font-weight: 600; }
  .stacked td.n::after { content: " tokens "; }
  .modes :is(th, td):is(:nth-child(3), :nth-child(4), :nth-child(5), :nth-child(8)) {
    display: none; }
}
@media (prefers-color-scheme: dark) {
  body { color: #e6edf3; background: #0d1117; } th, td { border-color: #3d444d; }
  .note { color: #9198a1; } .stacked tr { border-color: #3d444d; }
}
"""


def render_report(measured: Measurement) -> str:
    """The HTML report."""
    proxy, saved = measured.modes["proxy"].list, format_difference(measured.saved("proxy"))
    summary = (
        f"{len(measured.tools):,} tools from {_count_servers(measured)} cost "
        f"<strong>{measured.everything:,}</strong> tokens before the first request. Through "
        f"Pegboard the list costs <strong>{proxy:,}</strong>, {saved}."
    )
    head = [
        "mode",
        "list",
        "instructions",
        "saved",
        "first definition",
        "session",
        "with cache",
        "requests",
    ]
    rows = [
        [
            mode,
            f"{cost.list:,}",
            f"{cost.instructions:,}",
            format_percent(measured.saved(mode)),
            f"{cost.first_definition:,}",
            f"{measured.sessions[mode].plain:,.0f}",
            f"{measured.sessions[mode].cached:,.0f}",
            f"{measured.sessions[mode].requests:,}",
        ]
        for mode, cost in measured.modes.items()
    ]
    charts = "".join(map(_chart_html, build_charts(measured)))
    use, prices = measured.use, measured.prices
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Token cost of these tools</title><style>{_STYLE}{CHART_STYLE}</style></head><body>"
        f"<h1>Token cost of these tools</h1><p>{summary}</p>"
        f"{_section('Modes', head, rows, kind='modes')}{charts}{_detail_tables(measured)}"
        f'<p class="note">Counted with {escape(measured.tokenizer)}: what a model reads of the '
        f"list (name, description, inputSchema) and of each answer. A session uses {use.tools} "
        f"tools in {use.turns} turns that add {use.conversation} tokens each. Price of a token: "
        f"{prices.base:g} uncached, {prices.write:g} written to the cache, {prices.read:g} read "
        "from it. Every request sends the list and the answers that were read to find tools. A "
        "request that only finds a tool also sends the conversation. A changed list invalidates "
        "the cache.</p></body></html>\n"
    )


def _chart_html(chart: Chart) -> str:
    # SVG text does not reflow: there is a chart for wide screens and one for narrow ones, and the
    # style shows one of them.
    return (
        f"<figure><figcaption>{escape(chart.title)}"
        f'<span class="note">{escape(chart.subtitle)}</span></figcaption>'
        f'<div class="broad">{_bar_chart(chart, WIDE_SIZE)}</div>'
        f'<div class="narrow">{_bar_chart(chart, NARROW_SIZE)}</div></figure>'
    )


def _count_servers(measured: Measurement) -> str:
    """The number of servers, and of those that could not be listed."""
    present, missing = len(measured.servers), len(measured.failures)
    count = f"{present:,} server{'' if present == 1 else 's'}"
    return f"{count} ({missing:,} more could not be listed)" if missing else count


def _detail_tables(measured: Measurement) -> str:
    """The servers, the most expensive tools, and the recorded results."""
    rows = [[s.name, f"{s.tools:,}", f"{s.tokens:,}"] for s in measured.servers]
    rows += [[name, "-", reason] for name, reason in measured.failures.items()]
    servers = _section("Servers", ["server", "tools", "tokens"], rows)
    if len(rows) > MOST_SERVERS:
        # The chart above already shows the most expensive ones, so a long table starts closed.
        title, _, table = servers.partition("</h2>")
        count = _count_servers(measured)
        servers = f"{title}</h2><details><summary>{count}</summary>{table}</details>"
    rows = [
        [
            tool.id,
            f"{tool.tokens:,}",
            "; ".join(f"{r.kind} ({r.tokens}): {r.advice}" for r in tool.reasons),
        ]
        for tool in measured.expensive_tools
    ]
    head = ["tool", "tokens", "reasons and advice"]
    tools = _section("The most expensive tools", head, rows, words=2, kind="stacked")
    rows = [[r.tool, f"{r.whole:,}", f"{r.given:,}"] for r in measured.results]
    results = _section("Recorded results", ["tool", "in full", "as sent"], rows) if rows else ""
    return servers + tools + results


def _section(
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    words: int | None = None,
    kind: str = "",
) -> str:
    def cells(tag: str, values: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{'' if i in (0, words) else ' class=n'}>{escape(value)}</{tag}>"
            for i, value in enumerate(values)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    # A wide table scrolls inside its box, which needs the focus to be scrolled with the keyboard.
    return (
        f'<h2>{escape(title)}</h2><div class="wide" tabindex="0" role="region" '
        f'aria-label="{escape(title)}"><table class="{kind}"><thead><tr>{cells("th", head)}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>"
    )
