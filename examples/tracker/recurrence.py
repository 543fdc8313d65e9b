"""When a repeated event takes place: pure functions over days and moments.

A rule repeats daily, weekly or monthly, every n-th time, until a day. A month without the day of
the first occurrence (the 31st of April) is skipped, as RFC 5545 has it.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal, TypeAlias

Frequency: TypeAlias = Literal["daily", "weekly", "monthly"]


@dataclass(frozen=True, slots=True)
class Rule:
    """How an event repeats; `until` is the last day on which it may begin."""

    frequency: Frequency
    every: int = 1
    until: date | None = None


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of time, its end not included."""

    start: datetime
    end: datetime


def occurrences(first: datetime, rule: Rule | None, before: datetime) -> Iterator[datetime]:
    """The starts of an event before a moment, in order."""
    for start in _starts(first, rule):
        if start >= before or (rule and rule.until and start.date() > rule.until):
            return
        yield start


def _starts(first: datetime, rule: Rule | None) -> Iterator[datetime]:
    if rule is None:
        yield first
        return
    step = 0
    while True:
        if rule.frequency == "monthly":
            month = first.month - 1 + step * rule.every
            year, month = first.year + month // 12, month % 12 + 1
            if first.day <= calendar.monthrange(year, month)[1]:
                yield first.replace(year=year, month=month)
        else:
            days = rule.every * (7 if rule.frequency == "weekly" else 1)
            yield first + timedelta(days=days * step)
        step += 1


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same time covered by spans that neither touch nor overlap, in order."""
    out: list[Span] = []
    for span in sorted(spans):
        if out and span.start <= out[-1].end:
            out[-1] = Span(out[-1].start, max(out[-1].end, span.end))
        else:
            out.append(span)
    return out


def gaps(window: Span, busy: Iterable[Span]) -> list[Span]:
    """What is left of a window when busy time is taken out."""
    free: list[Span] = []
    start = window.start
    for span in merged(busy):
        if span.start > start:
            free.append(Span(start, min(span.start, window.end)))
        start = max(start, span.end)
    if start < window.end:
        free.append(Span(start, window.end))
    return [span for span in free if span.start < span.end]
