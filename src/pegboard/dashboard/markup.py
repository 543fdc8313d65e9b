"""HTML as a value, tables, and the small formats that every page uses.

Text is escaped unless it is already `Html`, so escaping cannot be forgotten. Invisible characters
of a text are shown as code points; attributes keep them, because forms send attributes back.

Tables fit every screen. On a phone, each row becomes a card in which every value has the name of
its column beside it (`data-label`), so that no column is out of sight.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
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
    opening = f"<{name}"
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        written = key.rstrip("_").replace("_", "-")
        opening += f" {written}" if value is True else f' {written}="{escape(str(value))}"'
    opening += ">"
    if name in _VOID:
        return Html(opening)
    return Html(f"{opening}{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Html:
    """The children as one piece of HTML."""
    pieces: list[str] = []
    for child in children:
        if isinstance(child, Html):
            pieces.append(child)
        elif isinstance(child, str | int):
            # Hidden characters could make a tool look like another one.
            pieces.append(escape(escape_hidden(str(child))))
        elif child is not None:
            pieces.append(join(child))
    return Html("".join(pieces))


def format_number(value: float) -> str:
    """`12,345`."""
    return f"{value:,.0f}"


def format_milliseconds(value: float) -> str:
    """`< 0.1 ms`, `0.4 ms`, `12 ms`, `1.2 s`."""
    if value < 0.05:
        return "< 0.1 ms"
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


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row, and what is shown below them over the whole width."""

    cells: Sequence[Child]
    more: Html | None = None


def render_table(
    columns: Sequence[str],
    rows: Sequence[Row],
    *,
    labelled_by: str | None = None,
    label: str | None = None,
    numbers: Collection[str] = (),
    header: int = 0,
) -> Html:
    """A table; `header` is the index of the cell that names its row.

    A column without a name, for buttons, has an empty text. The table itself is named by the
    element with the id `labelled_by`, or by `label`.
    """
    head = [
        tag("th", name, scope="col", class_="number" if name in numbers else None)
        if name
        else tag("td", "")
        for name in columns
    ]
    body: list[Html] = []
    for row in rows:
        cells: list[Html] = []
        for index, (name, content) in enumerate(zip(columns, row.cells, strict=True)):
            style = "number" if name in numbers else None
            if index == header:
                cells.append(tag("th", content, scope="row", class_=style))
            else:
                cells.append(tag("td", content, class_=style, data_label=name or None))
        body.append(tag("tr", *cells, class_="joined" if row.more else None))
        if row.more:
            more = tag("td", row.more, colspan=len(columns))
            body.append(tag("tr", more, class_="more"))
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body), class_="cards")
    # A region that can be scrolled must be reachable with the keyboard, and have a name.
    return tag("div", table, class_="wide", tabindex="0", role="region",
               aria_labelledby=labelled_by, aria_label=label)  # fmt: skip
