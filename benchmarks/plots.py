"""Plots as SVG text: bars in groups and lines, readable on a light and on a dark page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 760
LABELS = 170
ROW = 20
COLOURS = ("#2f7ed8", "#e08214", "#3a9d5d", "#b35ad6", "#d64545", "#1fa3a3", "#8c7a4f", "#7f7f7f")
STYLE = (
    "<style>text{font:12px system-ui,sans-serif;fill:#1f2328}.m{fill:#59636e}"
    ".a{stroke:#59636e;stroke-opacity:.35}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.m{fill:#9198a1}}</style>"
)


@dataclass(frozen=True, slots=True)
class Axis:
    """From a value to a place; logarithmic where values differ by more than a page can show."""

    low: float
    high: float
    start: float
    length: float
    log: bool = False

    def at(self, value: float) -> float:
        if self.log:
            value = max(value, self.low)
            part = (math.log(value) - math.log(self.low)) / (
                math.log(self.high) - math.log(self.low) or 1
            )
        else:
            part = (value - self.low) / (self.high - self.low or 1)
        return self.start + part * self.length


def bars(
    title: str, groups: Mapping[str, Mapping[str, float]], *, unit: str, log: bool = False
) -> str:
    """Horizontal bars: one group of contestants per question, each bar with its number."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    values = [value for group in groups.values() for value in group.values() if value > 0]
    if not values:
        return ""
    low = min(values) / 2 if log else 0.0
    axis = Axis(low, max(values), LABELS, WIDTH - LABELS - 90, log)
    parts: list[str] = []
    y = 50
    for label, group in groups.items():
        parts.append(f'<text x="8" y="{y + 13}" font-weight="600">{escape(label)}</text>')
        y += ROW
        for name, value in group.items():
            parts.append(_bar(name, value, y, axis, COLOURS[names.index(name) % len(COLOURS)]))
            y += ROW
        y += 8
    scale = ", logarithmic" if log else ""
    return _page(title, f"{unit}{scale}", parts, y + 8)


def _bar(name: str, value: float, y: int, axis: Axis, colour: str) -> str:
    width = max(1.0, axis.at(value) - axis.start) if value > 0 else 1.0
    return (
        f'<text class="m" x="{LABELS - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>'
        f'<rect x="{LABELS}" y="{y + 3}" width="{width:.1f}" height="{ROW - 7}" rx="2" '
        f'fill="{colour}"/>'
        f'<text x="{LABELS + width + 6:.1f}" y="{y + 13}">{short(value)}</text>'
    )


def lines(
    title: str, series: Mapping[str, Sequence[tuple[float, float]]], *, across: str, unit: str
) -> str:
    """Lines over a logarithmic ground, one per contestant, named at their ends."""
    points = [point for one in series.values() for point in one if point[1] > 0]
    if not points:
        return ""
    x = Axis(min(p[0] for p in points), max(p[0] for p in points), 70, WIDTH - 270, True)
    y = Axis(min(p[1] for p in points) / 1.5, max(p[1] for p in points) * 1.5, 330, -270, True)
    parts = [_ground(x, y, sorted({p[0] for p in points}), across)]
    ends = _apart([(name, y.at(one[-1][1])) for name, one in series.items() if one])
    for number, (name, one) in enumerate(series.items()):
        if one:
            parts.append(_line(name, one, x, y, ends[name], COLOURS[number % len(COLOURS)]))
    return _page(title, f"{unit}, both ways logarithmic", parts, 380)


def _line(
    name: str, points: Sequence[tuple[float, float]], x: Axis, y: Axis, end: float, colour: str
) -> str:
    places = [(x.at(a), y.at(b)) for a, b in points if b > 0]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in places)
    return (
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}'
        f'<text x="{places[-1][0] + 8:.1f}" y="{end + 4:.1f}">{escape(name)} '
        f'<tspan class="m">{short(points[-1][1])}</tspan></text>'
    )


def _apart(ends: list[tuple[str, float]]) -> dict[str, float]:
    """Places for the names, so that none covers another."""
    placed: dict[str, float] = {}
    last = -math.inf
    for name, y in sorted(ends, key=lambda end: end[1]):
        last = max(y, last + 15)
        placed[name] = last
    return placed


def _ground(x: Axis, y: Axis, ticks: Sequence[float], across: str) -> str:
    parts = [f'<line class="a" x1="70" y1="330" x2="{x.start + x.length}" y2="330"/>']
    parts += [
        f'<text class="m" x="{x.at(t):.1f}" y="348" text-anchor="middle">{short(t)}</text>'
        for t in ticks
    ]
    power = math.ceil(math.log10(y.low))
    while 10**power <= y.high:
        at = y.at(10**power)
        parts.append(
            f'<line class="a" x1="70" y1="{at:.1f}" x2="{x.start + x.length}" y2="{at:.1f}"/>'
            f'<text class="m" x="62" y="{at + 4:.1f}" text-anchor="end">{short(10**power)}</text>'
        )
        power += 1
    parts.append(f'<text class="m" x="70" y="368">{escape(across)}</text>')
    return "".join(parts)


def _page(title: str, unit: str, parts: Sequence[str], height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(title, quote=True)}">{STYLE}'
        f'<text x="8" y="20" font-weight="700" style="font-size:14px">{escape(title)}</text>'
        f'<text class="m" x="8" y="38">{escape(unit)}</text>{"".join(parts)}</svg>\n'
    )


def short(value: float) -> str:
    """A number as people write it: 12,345 or 1.23."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"
