"""HTML as a value, and the small formats that every page uses.

Text is escaped unless it is already `Html`, so escaping cannot be forgotten. Invisible characters
of a text are shown as code points; attributes keep them, because forms send attributes back.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from typing import TypeAlias

from pegboard.core.sanitization import escape_hidden

_VOID = frozenset({"input", "link", "meta", "br", "img"})


class Html(str):
    """A string that is HTML already and is not escaped."""

    __slots__ = ()


Child: TypeAlias = "str | int | Iterable[Child] | None"
Attribute: TypeAlias = str | int | float | bool | None


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """An element; `class_` means `class`, `data_x` `data-x`; `None` and `False` are omitted."""
    opening = f"<{name}{''.join(map(_attribute, attributes.items()))}>"
    if name in _VOID:
        return Html(opening)
    return Html(f"{opening}{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Html:
    """The children as one piece of HTML."""
    return Html("".join(map(_text, children)))


def _text(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    # Hidden characters could make a tool look like another one.
    if isinstance(child, str | int):
        return escape(escape_hidden(str(child)))
    return join(child)


def _attribute(item: tuple[str, Attribute]) -> str:
    name, value = item
    if value is None or value is False:
        return ""
    written = name.rstrip("_").replace("_", "-")
    return f" {written}" if value is True else f' {written}="{escape(str(value))}"'


def format_number(value: float) -> str:
    """`12,345`."""
    return f"{value:,.0f}"


def format_milliseconds(value: float) -> str:
    """`0.4 ms`, `12 ms`, `1.2 s`."""
    if value >= 1000:
        return f"{value / 1000:.1f} s"
    return f"{value:.1f} ms" if value < 10 else f"{value:.0f} ms"


def time_tag(at: float, *, day: bool = False) -> Html:
    """A time of day in UTC, or a date; the script converts it to the reader's time zone."""
    when = datetime.fromtimestamp(at, UTC)
    text = when.strftime("%Y-%m-%d" if day else "%H:%M:%S UTC")
    whole = when.isoformat(timespec="seconds")
    return tag("time", text, datetime=whole, data_day=day)


def badge(text: str, kind: str = "") -> Html:
    """A short word on a colored background."""
    return tag("span", text, class_=f"badge {kind}".strip())


def pluralize(count: int, one: str, more: str | None = None) -> str:
    """`1 tool`, `2 tools`."""
    return f"{format_number(count)} {one if count == 1 else more or one + 's'}"
