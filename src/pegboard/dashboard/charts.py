"""Bar charts as SVG, without a library and without inline styles.

The bars are stretched to the width of the page. Their labels are HTML below them, because text in a
stretched picture would be stretched too. Each chart has a text for screen readers, and the page
shows the same numbers as a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pegboard.dashboard.markup import Html, format_number, tag

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
    summary = f"{title}: {format_number(total)} in all, at most {format_number(highest)} at a time."
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
