"""Statistics of this process since it started, in bounded memory."""

from __future__ import annotations

import math
import threading
from collections import Counter, deque
from dataclasses import dataclass, field

from pegboard.core.breaker import State
from pegboard.core.events import (
    BreakerChanged,
    CallFinished,
    CallRetried,
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
        self._buckets[bucket_of(seconds) if bucket is None else bucket] += 1
        self.count += 1
        self.total += seconds
        self.longest = max(self.longest, seconds)

    def percentile(self, percent: float) -> float:
        """The duration that so many percent do not exceed; 0 when there is none."""
        left = math.ceil(self.count * percent / 100)
        for bucket in sorted(self._buckets):
            left -= self._buckets[bucket]
            if left <= 0:
                return min(_middle(bucket), self.longest)
        return 0.0

    def as_json(self) -> JsonObject:
        """Milliseconds, rounded to what the buckets can tell."""
        mean = self.total / self.count if self.count else 0.0
        return {
            "mean_ms": _ms(mean),
            **{f"p{p}_ms": _ms(self.percentile(p)) for p in (50, 95, 99)},
            "max_ms": _ms(self.longest),
        }


@dataclass(slots=True)
class Tally:
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


class Live:
    """An observer that adds up what it hears; `snapshot` may be asked from any thread.

    At most `most` tools, upstreams and faces each have figures of their own; the rest share one.
    """

    def __init__(self, *, most: int = 2_000, recent: int = 100) -> None:
        self._most = most
        self._lock = threading.Lock()
        self.changes = 0
        """How many events there were: whoever shows the figures can tell whether they are new."""
        self._in_flight = 0
        self._lists: Counter[str] = Counter()
        self._all = Tally()
        self._by: dict[str, dict[str, Tally]] = {"tools": {}, "upstreams": {}, "faces": {}}
        self._asked: dict[str, _Asked] = {k: _Asked() for k in ("list", "search", "describe")}
        self._upstream_states: dict[str, str] = {}
        self._breakers: dict[str, State] = {}
        self._store_available = True
        self._recent: deque[CallFinished] = deque(maxlen=recent)

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
                "calls": self._all.as_json(),
                **{
                    group: {name: tally.as_json() for name, tally in tallies.items()}
                    for group, tallies in self._by.items()
                },
                **{kind: asked.as_json() for kind, asked in self._asked.items()},
                "lists_by_face": dict(self._lists),
                "upstream_states": dict(self._upstream_states),
                "breakers": dict(self._breakers),
                "store_available": self._store_available,
            }

    def recent(self) -> list[CallFinished]:
        """The last calls, newest first."""
        with self._lock:
            return list(reversed(self._recent))

    def _add(self, event: Event) -> None:
        match event:
            case CallStarted():
                self._in_flight += 1
            case CallFinished():
                self._add_call(event)
            case ListAnswered():
                self._lists[event.face] += 1
                self._asked["list"].add(event.duration, event.tokens, event.tokens_full)
            case SearchAnswered():
                self._asked["search"].add(event.duration, event.tokens)
            case DescribeAnswered():
                self._asked["describe"].add(event.duration, event.tokens)
            case BreakerChanged():
                self._note_breaker(event)
            case UpstreamStateChanged():
                if event.upstream in self._upstream_states or self._has_room(self._upstream_states):
                    self._upstream_states[event.upstream] = event.state
            case StoreStateChanged():
                self._store_available = event.available
            case CallRetried():
                pass  # `CallFinished.attempts` says the same
            case _:
                pass

    def _add_call(self, call: CallFinished) -> None:
        self._in_flight = max(0, self._in_flight - 1)
        bucket = bucket_of(call.duration)
        self._all.add(call, bucket)
        self._recent.append(call)
        self._tally("tools", call.tool).add(call, bucket)
        if call.upstream is not None:
            self._tally("upstreams", call.upstream).add(call, bucket)
        if call.face is not None:
            self._tally("faces", call.face).add(call, bucket)

    def _tally(self, group: str, name: str) -> Tally:
        tallies = self._by[group]
        if name not in tallies:
            name = name if self._has_room(tallies) else OTHERS
            tallies.setdefault(name, Tally())
        return tallies[name]

    def _note_breaker(self, event: BreakerChanged) -> None:
        name = f"{event.scope}:{event.name}"
        if event.state == "closed":
            self._breakers.pop(name, None)
        elif name in self._breakers or self._has_room(self._breakers):
            self._breakers[name] = event.state

    def _has_room(self, group: dict[str, Tally] | dict[str, str] | dict[str, State]) -> bool:
        return len(group) < self._most


@dataclass(slots=True)
class _Asked:
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


def bucket_of(seconds: float) -> int:
    """The bucket of a histogram that a duration falls into."""
    return math.ceil(math.log(max(seconds, _SMALLEST) / _SMALLEST) / _GROWTH)


def _middle(bucket: int) -> float:
    return _SMALLEST * math.exp((bucket - 0.5) * _GROWTH) if bucket else _SMALLEST


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
