"""The charts of a measurement, drawn as SVG without scripts, in light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pegboard.core.options import ModeName
from pegboard.measure.measuring import Measurement

ROW = 30
TOP = 46
"""Pixels for the title and what it is about."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """What there is to draw on: pixels in all, for names at the left, for figures at the right."""

    width: int
    labels: int
    figures: int

    @property
    def letters(self) -> int:
        """How long a name may be."""
        return self.labels // 8


WIDE = Sheet(720, labels=160, figures=150)
NARROW = Sheet(340, labels=104, figures=106)

STYLE = """
.chart { font: 13px system-ui, sans-serif; }
.chart text { fill: #1f2328; } .chart .title { font-weight: 600; font-size: 15px; }
.chart .note { fill: #59636e; } .chart .bar { fill: #6e7781; } .chart .ours { fill: #1a7f37; }
@media (prefers-color-scheme: dark) {
  .chart text { fill: #e6edf3; } .chart .note { fill: #9198a1; }
  .chart .bar { fill: #8b949e; } .chart .ours { fill: #3fb950; }
}
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its name, its length, and a word behind the figure."""

    label: str
    value: float
    note: str = ""
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars under a title, and a line that says what they are."""

    title: str
    about: str
    bars: tuple[Bar, ...]

    @property
    def height(self) -> int:
        return TOP + ROW * len(self.bars) + 10


def render_svg(charts: Sequence[Chart]) -> str:
    """A whole SVG file with the charts one below the other."""
    height = sum(chart.height for chart in charts)
    parts: list[str] = []
    top = 0
    for chart in charts:
        drawn = _titled(chart) + _bars(chart, WIDE, TOP)
        parts.append(f'<g transform="translate(0 {top})">{drawn}</g>')
        top += chart.height
    title = escape("; ".join(chart.title for chart in charts))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE.width} {height}" '
        f'width="{WIDE.width}" height="{height}" role="img" aria-label="{title}" class="chart">'
        f"<style>{STYLE}</style>{''.join(parts)}</svg>\n"
    )


def figure(chart: Chart, sheet: Sheet) -> str:
    """The bars of one chart, to stand in a page that has the style and says what they are."""
    label = escape(f"{chart.title}. {chart.about}")
    height = ROW * len(chart.bars)
    return (
        f'<svg viewBox="0 0 {sheet.width} {height}" role="img" aria-label="{label}" '
        f'class="chart">{_bars(chart, sheet, 0)}</svg>'
    )


def _titled(chart: Chart) -> str:
    return (
        f'<text x="0" y="16" class="title">{escape(chart.title)}</text>'
        f'<text x="0" y="34" class="note">{escape(chart.about)}</text>'
    )


def _bars(chart: Chart, sheet: Sheet, top: int) -> str:
    largest = max((bar.value for bar in chart.bars), default=0) or 1
    room = sheet.width - sheet.labels - sheet.figures
    parts: list[str] = []
    for index, bar in enumerate(chart.bars):
        middle = top + index * ROW + ROW / 2
        length = max(bar.value / largest * room, 1.0)
        kind = "ours" if bar.is_ours else "bar"
        parts += [
            f'<text x="{sheet.labels - 8}" y="{middle + 4:.0f}" text-anchor="end">'
            f"{escape(_short(bar.label, sheet.letters))}</text>",
            f'<rect class="{kind}" x="{sheet.labels}" y="{middle - 9:.0f}" width="{length:.1f}" '
            'height="18" rx="2"/>',
            f'<text x="{sheet.labels + length + 6:.1f}" y="{middle + 4:.0f}">{bar.value:,.0f}'
            f'<tspan class="note"> {escape(bar.note)}</tspan></text>',
        ]
    return "".join(parts)


def _short(label: str, limit: int) -> str:
    return label if len(label) <= limit else label[: limit - 1] + "…"


MOST_SERVERS = 12


def build_charts(measured: Measurement) -> list[Chart]:
    """The list, the session without and with a cache, and the servers."""
    use = measured.use
    about = f"{use.tools} tools used in {use.turns} turns; tokens of the base price"
    return [
        Chart(
            "What the list costs",
            f"Tokens ({measured.tokenizer}) before anything is asked",
            tuple(_bar(measured, mode, cost.list) for mode, cost in measured.modes.items()),
        ),
        Chart(
            "What a session costs without a prompt cache",
            about,
            tuple(_bar(measured, mode, cost.plain) for mode, cost in measured.sessions.items()),
        ),
        Chart(
            "What a session costs with a prompt cache",
            f"{about}; a changed list voids the cache",
            tuple(_bar(measured, mode, cost.cached) for mode, cost in measured.sessions.items()),
        ),
        Chart(
            "What the servers cost",
            f"Tokens of all their tools; the {MOST_SERVERS} dearest",
            tuple(
                Bar(server.name, server.tokens, f"{server.tools} tools")
                for server in measured.servers[:MOST_SERVERS]
            ),
        ),
    ]


def _bar(measured: Measurement, mode: ModeName, value: float) -> Bar:
    return Bar(mode, value, "", is_ours=mode == "proxy")
