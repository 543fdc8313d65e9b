"""Charts as SVG of our own: they need no script, and follow the reader's light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 720
LABELS = 160
"""Pixels for the names at the left."""
FIGURES = 150
"""Pixels for the figures behind the longest bar."""
ROW = 30
TOP = 46

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


def drawing(charts: Sequence[Chart]) -> str:
    """A whole SVG file with the charts one below the other."""
    height = sum(chart.height for chart in charts)
    parts: list[str] = []
    top = 0
    for chart in charts:
        parts.append(f'<g transform="translate(0 {top})">{_drawn(chart)}</g>')
        top += chart.height
    title = escape("; ".join(chart.title for chart in charts))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" aria-label="{title}" class="chart"><style>{STYLE}</style>'
        f"{''.join(parts)}</svg>\n"
    )


def figure(chart: Chart) -> str:
    """One chart to stand in a page that has the style already."""
    label = escape(f"{chart.title}. {chart.about}")
    return (
        f'<svg viewBox="0 0 {WIDTH} {chart.height}" role="img" aria-label="{label}" '
        f'class="chart">{_drawn(chart)}</svg>'
    )


def _drawn(chart: Chart) -> str:
    largest = max((bar.value for bar in chart.bars), default=0) or 1
    room = WIDTH - LABELS - FIGURES
    parts = [
        f'<text x="0" y="16" class="title">{escape(chart.title)}</text>',
        f'<text x="0" y="34" class="note">{escape(chart.about)}</text>',
    ]
    for index, bar in enumerate(chart.bars):
        middle = TOP + index * ROW + ROW / 2
        length = max(bar.value / largest * room, 1.0)
        kind = "ours" if bar.is_ours else "bar"
        parts += [
            f'<text x="{LABELS - 8}" y="{middle + 4:.0f}" text-anchor="end">'
            f"{escape(_short(bar.label))}</text>",
            f'<rect class="{kind}" x="{LABELS}" y="{middle - 9:.0f}" width="{length:.1f}" '
            'height="18" rx="2"/>',
            f'<text x="{LABELS + length + 6:.1f}" y="{middle + 4:.0f}">{bar.value:,.0f}'
            f'<tspan class="note"> {escape(bar.note)}</tspan></text>',
        ]
    return "".join(parts)


def _short(label: str, limit: int = 20) -> str:
    return label if len(label) <= limit else label[: limit - 1] + "…"
