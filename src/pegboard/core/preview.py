"""Previews: a large value made small with its structure kept, saying everywhere what it leaves out.

    [{"id": 1, "body": "The quick… +4,310 characters"}, {…}, "… 898 more"]

Whatever starts with `…` is ours, not the tool's.
"""

from __future__ import annotations

from dataclasses import dataclass

from pegboard.core.budget import Count, within
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.outline import MORE


@dataclass(frozen=True, slots=True)
class Detail:
    """How much of each part a preview shows."""

    rows: int
    keys: int
    characters: int
    depth: int


_DETAILS = (
    Detail(rows=5, keys=40, characters=400, depth=6),
    Detail(rows=3, keys=40, characters=160, depth=6),
    Detail(rows=3, keys=30, characters=80, depth=5),
    Detail(rows=2, keys=25, characters=60, depth=4),
    Detail(rows=1, keys=20, characters=40, depth=4),
    Detail(rows=1, keys=15, characters=30, depth=3),
    Detail(rows=1, keys=8, characters=20, depth=2),
    Detail(rows=0, keys=4, characters=20, depth=1),
    Detail(rows=0, keys=0, characters=20, depth=0),
)


def preview(value: Json, budget: int, count: Count) -> Json:
    """As much of the value as fits the budget; its mere size where nothing does."""
    if isinstance(value, str):
        return _head_and_tail(value, budget, count)
    small: Json = None
    for detail in _DETAILS:
        small = _sample(value, detail, detail.depth)
        if within(compact(small), budget, count):
            break
    return small


def _sample(value: Json, detail: Detail, depth: int) -> Json:
    if isinstance(value, str):
        return _shortened(value, detail.characters)
    if isinstance(value, dict):
        return (
            _some_keys(value, detail, depth)
            if depth or not value
            else f"{MORE} {len(value):,} keys"
        )
    if isinstance(value, list):
        return (
            _some_rows(value, detail, depth)
            if depth or not value
            else f"{MORE} {len(value):,} items"
        )
    return value


def _some_keys(value: JsonObject, detail: Detail, depth: int) -> JsonObject:
    shown = list(value)[: detail.keys]
    small = {_shortened(key, 80): _sample(value[key], detail, depth - 1) for key in shown}
    if len(value) > len(shown):
        small[MORE] = f"{len(value) - len(shown):,} more keys"
    return small


def _some_rows(value: list[Json], detail: Detail, depth: int) -> list[Json]:
    small = [_sample(item, detail, depth - 1) for item in value[: detail.rows]]
    if len(value) > detail.rows:
        small.append(f"{MORE} {len(value) - detail.rows:,} more")
    return small


def _shortened(text: str, characters: int) -> str:
    left_out = len(text) - characters
    # A mark that is as long as what it stands for helps nobody.
    return text if left_out <= 20 else f"{text[:characters]}{MORE} +{left_out:,} characters"


def _head_and_tail(text: str, budget: int, count: Count) -> str:
    """The first lines and the last: a log says at its end how it ended."""
    lines = text.split("\n")
    small = ""
    for head, tail, width in (
        (40, 10, 300),
        (20, 5, 200),
        (10, 3, 160),
        (5, 2, 100),
        (2, 1, 60),
        (1, 0, 20),
    ):
        if len(lines) > head + tail:
            left_out = f"{MORE} {len(lines) - head - tail:,} more lines"
            shown = [*lines[:head], left_out, *lines[len(lines) - tail :]]
        else:
            shown = lines
        small = "\n".join(_shortened(line, width) for line in shown)
        if within(small, budget, count):
            break
    return small
