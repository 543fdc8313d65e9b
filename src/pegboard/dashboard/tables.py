"""Tables that fit every screen.

On a wide screen they are tables. On a phone, each row becomes a card in which every value has the
name of its column beside it (`data-label`), so that no column is out of sight.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pegboard.dashboard.markup import Child, Html, tag


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
        cells = [
            _cell(content, name, is_header=index == header, is_number=name in numbers)
            for index, (name, content) in enumerate(zip(columns, row.cells, strict=True))
        ]
        body.append(tag("tr", *cells, class_="joined" if row.more else None))
        if row.more:
            more = tag("td", row.more, colspan=len(columns))
            body.append(tag("tr", more, class_="more"))
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body), class_="cards")
    # A region that can be scrolled must be reachable with the keyboard, and have a name.
    return tag("div", table, class_="wide", tabindex="0", role="region",
               aria_labelledby=labelled_by, aria_label=label)  # fmt: skip


def _cell(content: Child, column: str, *, is_header: bool, is_number: bool) -> Html:
    style = "number" if is_number else None
    if is_header:
        return tag("th", content, scope="row", class_=style)
    return tag("td", content, class_=style, data_label=column or None)
