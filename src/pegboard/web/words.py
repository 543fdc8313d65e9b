"""Figures and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

from pegboard.web.markup import Html, tag


def number(value: float) -> str:
    """`12,345`."""
    return f"{value:,.0f}"


def milliseconds(value: float) -> str:
    """`0.4 ms`, `12 ms`, `1.2 s`."""
    if value >= 1000:
        return f"{value / 1000:.1f} s"
    return f"{value:.1f} ms" if value < 10 else f"{value:.0f} ms"


def clock(at: float, *, day: bool = False) -> Html:
    """A time of day in UTC, or a `day`, which the script turns into the reader's own."""
    when = datetime.fromtimestamp(at, UTC)
    text = when.strftime("%Y-%m-%d" if day else "%H:%M:%S UTC")
    whole = when.isoformat(timespec="seconds")
    return tag("time", text, datetime=whole, data_day=day)


def badge(text: str, kind: str = "") -> Html:
    """A short word on a coloured ground."""
    return tag("span", text, class_=f"badge {kind}".strip())


def several(count: int, one: str, more: str | None = None) -> str:
    """`1 tool`, `2 tools`."""
    return f"{number(count)} {one if count == 1 else more or one + 's'}"
