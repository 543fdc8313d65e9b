"""Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.plots import short


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], words: int = 1) -> str:
    """A table whose first columns are words and whose others are figures."""
    lines = [head, [*["---"] * words, *["---:"] * (len(head) - words)], *rows]
    return "\n".join("| " + " | ".join(cell(value) for value in line) + " |" for line in lines)


def cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict) and "median" in value:
        low, high = short(value["low"]), short(value["high"])
        middle = short(value["median"])
        return middle if low == high else f"{middle} ({low}-{high})"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return short(value) if isinstance(value, int | float) else str(value)


def missing(found: dict[str, Any]) -> str:
    """A line for whoever could not be measured, or nothing."""
    reasons = {name: one["missing"] for name, one in found.items() if one.get("missing")}
    return "".join(f"\n\nNot measured: {name} ({why})." for name, why in reasons.items())
