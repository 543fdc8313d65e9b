"""Statistics of this process since it started, in bounded memory."""

from __future__ import annotations

import math
import threading
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from typing import TypeAlias

from pegboard.core.calls import LOCAL_CALLER
from pegboard.core.circuit_breaker import BreakerState
from pegboard.core.events import (
    BreakerChanged,
    CallFinished,
    CallStarted,
    DescribeAnswered,
    Event,
    ListAnswered,
    SearchAnswered,
    StoreStateChanged,
    UpstreamStateChanged,
)
from pegboard.core.json import JsonObject

OTHERS = "(others)"
"""Where calls are counted for which there is no more room of their own."""

_MAX_PRINCIPALS = 128
"""Principals with figures of their own; who has been silent longest makes room."""
_MAX_GROUPS_PER_PRINCIPAL = 50
_RECENT_PER_PRINCIPAL = 50
_CountedEvent: TypeAlias = CallFinished | ListAnswered | SearchAnswered | DescribeAnswered

_SMALLEST = 1e-5
_GROWTH = math.log(1.1)


class Histogram:
    """Durations in buckets, each a tenth wider than the one before: percentiles within 5 %."""

    __slots__ = ("_buckets", "count", "longest", "total")

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.count = 0
        self.total = 0.0
        self.longest = 0.0

    def add(self, seconds: float, bucket: int | None = None) -> None:
        """Count one duration; whoever adds it to several can say its bucket."""
        self._buckets[duration_bucket(seconds) if bucket is None else bucket] += 1
        self.count += 1
        self.total += seconds
        self.longest = max(self.longest, seconds)

    def percentile(self, percent: float) -> float:
        """The duration that so many percent do not exceed; 0 when there is none."""
        left = math.ceil(self.count * percent / 100)
        for bucket in sorted(self._buckets):
            left -= self._buckets[bucket]
            if left <= 0:
                return min(_bucket_midpoint(bucket), self.longest)
        return 0.0

    def as_json(self) -> JsonObject:
        """Milliseconds, rounded to what the buckets can tell."""
        mean = self.total / self.count if self.count else 0.0
        return {
            "mean_ms": _milliseconds(mean),
            **{f"p{p}_ms": _milliseconds(self.percentile(p)) for p in (50, 95, 99)},
            "max_ms": _milliseconds(self.longest),
        }


@dataclass(slots=True)
class CallTally:
    """What is counted of a group of calls."""

    outcomes: Counter[str] = field(default_factory=Counter[str])
    errors: Counter[str] = field(default_factory=Counter[str])
    durations: Histogram = field(default_factory=Histogram)
    cached: int = 0
    spilled: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out_before: int = 0
    tokens_out: int = 0

    def add(self, call: CallFinished, bucket: int | None = None) -> None:
        """Count one call, in this bucket of durations where it is known."""
        self.outcomes[call.outcome] += 1
        if call.error is not None:
            self.errors[call.error] += 1
        self.durations.add(call.duration, bucket)
        self.cached += call.cached
        self.spilled += call.spilled
        self.retries += call.attempts - 1
        self.tokens_in += call.tokens_in or 0
        self.tokens_out += call.tokens_out or 0
        self.tokens_out_before += call.tokens_out_before or call.tokens_out or 0

    def as_json(self) -> JsonObject:
        """The figures as the page reads them."""
        return {
            "calls": self.durations.count,
            "outcomes": dict(self.outcomes),
            "errors": dict(self.errors),
            **self.durations.as_json(),
            "cached": self.cached,
            "spilled": self.spilled,
            "retries": self.retries,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "tokens_saved": max(0, self.tokens_out_before - self.tokens_out),
        }


class LiveStatistics:
    """An observer that adds up what it hears; `snapshot` may be asked from any thread.

    At most `most` tools, upstreams and modes each have figures of their own; the rest share one.
    Each principal has the same figures of their own calls, as long as there is room for them.
    """

    def __init__(self, *, most: int = 2_000, recent: int = 100) -> None:
        self._most = most
        self._lock = threading.Lock()
        self.changes = 0
        """How many events there were: whoever shows the figures can tell whether they are new."""
        self._in_flight = 0
        self._everybody = _Statistics(most, recent)
        self._people: OrderedDict[str, _Statistics] = OrderedDict()
        self._upstream_states: dict[str, str] = {}
        self._breakers: dict[str, BreakerState] = {}
        self._store_available = True

    def record(self, event: Event) -> None:
        """Add one event up."""
        with self._lock:
            self.changes += 1
            self._add(event)

    def snapshot(self) -> JsonObject:
        """All figures as they are now."""
        with self._lock:
            return {
                "in_flight": self._in_flight,
                **self._everybody.as_json(),
                "upstream_states": dict(self._upstream_states),
                "breakers": dict(self._breakers),
                "store_available": self._store_available,
            }

    def snapshot_of(self, principal: str) -> JsonObject:
        """The figures of one principal's own calls, lists and searches."""
        with self._lock:
            return self._figures_of(principal).as_json()

    @property
    def breakers(self) -> dict[str, BreakerState]:
        """The breakers that are not closed, by `scope:name`."""
        with self._lock:
            return dict(self._breakers)

    def recent(self) -> list[CallFinished]:
        """The last calls, newest first."""
        with self._lock:
            return list(reversed(self._everybody.recent))

    def recent_of(self, principal: str) -> list[CallFinished]:
        """The last calls of one principal, newest first, however many others have made since."""
        with self._lock:
            return list(reversed(self._figures_of(principal).recent))

    def _figures_of(self, principal: str) -> _Statistics:
        # Where nobody is asked who they are, all calls are `local`: there is no second copy.
        if principal == LOCAL_CALLER.principal and not self._people:
            return self._everybody
        return self._people.get(principal) or _Statistics(0, 0)

    def _add(self, event: Event) -> None:
        match event:
            case CallStarted():
                self._in_flight += 1
            case CallFinished():
                self._in_flight = max(0, self._in_flight - 1)
                self._count(event)
            case ListAnswered() | SearchAnswered() | DescribeAnswered():
                self._count(event)
            case BreakerChanged():
                self._note_breaker(event)
            case UpstreamStateChanged():
                if event.upstream in self._upstream_states or self._has_room(self._upstream_states):
                    self._upstream_states[event.upstream] = event.state
            case StoreStateChanged():
                self._store_available = event.available
            case _:
                pass

    def _count(self, event: _CountedEvent) -> None:
        self._everybody.add(event)
        if event.principal == LOCAL_CALLER.principal:
            return
        own = self._people.get(event.principal)
        if own is None:
            own = self._people[event.principal] = _Statistics(
                _MAX_GROUPS_PER_PRINCIPAL, _RECENT_PER_PRINCIPAL
            )
            if len(self._people) > _MAX_PRINCIPALS:
                self._people.popitem(last=False)
        self._people.move_to_end(event.principal)
        own.add(event)

    def _note_breaker(self, event: BreakerChanged) -> None:
        name = f"{event.scope}:{event.name}"
        if event.state == "closed":
            self._breakers.pop(name, None)
        elif name in self._breakers or self._has_room(self._breakers):
            self._breakers[name] = event.state

    def _has_room(self, group: dict[str, str] | dict[str, BreakerState]) -> bool:
        return len(group) < self._most


class _Statistics:
    """Figures of everybody's calls, or of one principal's."""

    __slots__ = ("_all", "_asked", "_by", "_lists", "_most", "recent")

    def __init__(self, most: int, recent: int) -> None:
        self._most = most
        self._lists: Counter[str] = Counter()
        self._all = CallTally()
        self._by: dict[str, dict[str, CallTally]] = {"tools": {}, "upstreams": {}, "modes": {}}
        self._asked: dict[str, _QueryTally] = {
            k: _QueryTally() for k in ("list", "search", "describe")
        }
        self.recent: deque[CallFinished] = deque(maxlen=recent)

    def add(self, event: _CountedEvent) -> None:
        match event:
            case CallFinished():
                self._add_call(event)
            case ListAnswered():
                self._lists[event.mode] += 1
                self._asked["list"].add(event.duration, event.tokens, event.tokens_full)
            case SearchAnswered():
                self._asked["search"].add(event.duration, event.tokens)
            case DescribeAnswered():
                self._asked["describe"].add(event.duration, event.tokens)

    def as_json(self) -> JsonObject:
        return {
            "calls": self._all.as_json(),
            **{
                group: {name: tally.as_json() for name, tally in tallies.items()}
                for group, tallies in self._by.items()
            },
            **{kind: asked.as_json() for kind, asked in self._asked.items()},
            "lists_by_mode": dict(self._lists),
        }

    def _add_call(self, call: CallFinished) -> None:
        bucket = duration_bucket(call.duration)
        self._all.add(call, bucket)
        self.recent.append(call)
        self._tally("tools", call.tool).add(call, bucket)
        if call.upstream is not None:
            self._tally("upstreams", call.upstream).add(call, bucket)
        if call.mode is not None:
            self._tally("modes", call.mode).add(call, bucket)

    def _tally(self, group: str, name: str) -> CallTally:
        tallies = self._by[group]
        if name not in tallies:
            name = name if len(tallies) < self._most else OTHERS
            tallies.setdefault(name, CallTally())
        return tallies[name]


@dataclass(slots=True)
class _QueryTally:
    """How often something was asked for, how long it took, and what it cost."""

    durations: Histogram = field(default_factory=Histogram)
    tokens: int = 0
    saved: int = 0

    def add(self, duration: float, tokens: int | None, instead_of: int | None = None) -> None:
        self.durations.add(duration)
        self.tokens += tokens or 0
        if instead_of is not None and tokens is not None:
            self.saved += max(0, instead_of - tokens)

    def as_json(self) -> JsonObject:
        return {
            "count": self.durations.count,
            **self.durations.as_json(),
            "tokens": self.tokens,
            "tokens_saved": self.saved,
        }


def duration_bucket(seconds: float) -> int:
    """The bucket of a histogram that a duration falls into."""
    return math.ceil(math.log(max(seconds, _SMALLEST) / _SMALLEST) / _GROWTH)


def _bucket_midpoint(bucket: int) -> float:
    return _SMALLEST * math.exp((bucket - 0.5) * _GROWTH) if bucket else _SMALLEST


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)
