"""Statistics of this process since it started, in bounded memory: the numbers of the dashboard.

    LiveStatistics   one observer for all events
      _Statistics    of all calls, and of the calls of each principal
        CallTally    of all calls, of each tool, each upstream, each mode
        Histogram    of durations

    InFlight         the calls between their start and their end
    CombinedObserver passes each event to several observers

All of it is bounded: a gateway may run for months, and clients choose the names of what they call.
"""

from __future__ import annotations

import math
import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TypeAlias

from pegboard.core.caches import BoundedCache
from pegboard.core.calls import LOCAL_CALLER
from pegboard.core.circuit_breaker import BreakerState
from pegboard.core.events import (
    BreakerChanged,
    CallFinished,
    CallRejected,
    CallStarted,
    DescribeAnswered,
    Event,
    ListAnswered,
    RunFinished,
    SearchAnswered,
    StoreStateChanged,
    UpstreamStateChanged,
)
from pegboard.core.json import JsonObject
from pegboard.ports import Observer, record_event

OTHERS = "(others)"
"""The name under which calls are counted once there are too many tools, upstreams or modes."""

_MAX_PRINCIPALS = 128
"""Principals with statistics of their own; the least recently active one is evicted."""
_MAX_GROUPS_PER_PRINCIPAL = 50
_RECENT_PER_PRINCIPAL = 50
_MAX_RUNS = 100
_MAX_CALLS_PER_RUN = 200
"""Calls of one run that its page can show."""
_CountedEvent: TypeAlias = (
    CallFinished | CallRejected | ListAnswered | SearchAnswered | DescribeAnswered | RunFinished
)

_SMALLEST = 1e-5
_GROWTH = math.log(1.1)


class Histogram:
    """Durations in exponential buckets, each 10% wider than the last: percentiles within 5%."""

    __slots__ = ("_buckets", "count", "longest", "total")

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.count = 0
        self.total = 0.0
        self.longest = 0.0

    def add(self, seconds: float, bucket: int | None = None) -> None:
        """Count one duration; `bucket` saves computing it when it is added to several."""
        self._buckets[duration_bucket(seconds) if bucket is None else bucket] += 1
        self.count += 1
        self.total += seconds
        self.longest = max(self.longest, seconds)

    def percentile(self, percent: float) -> float:
        """The duration that this percentage of durations does not exceed; 0 without any."""
        remaining = math.ceil(self.count * percent / 100)
        for bucket in sorted(self._buckets):
            remaining -= self._buckets[bucket]
            if remaining <= 0:
                middle = _SMALLEST * math.exp((bucket - 0.5) * _GROWTH) if bucket else _SMALLEST
                return min(middle, self.longest)
        return 0.0

    def as_json(self) -> JsonObject:
        """Mean, percentiles and maximum in milliseconds."""
        mean = self.total / self.count if self.count else 0.0
        return {
            "mean_ms": _milliseconds(mean),
            **{f"p{p}_ms": _milliseconds(self.percentile(p)) for p in (50, 95, 99)},
            "max_ms": _milliseconds(self.longest),
        }


@dataclass(slots=True)
class CallTally:
    """Counts for a group of calls."""

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
        """Count one call; `bucket` is that of its duration, if it is known."""
        self.outcomes[call.outcome] += 1
        if call.error is not None:
            self.errors[call.error] += 1
        # A refused call did not run, so its duration would make the tool look fast.
        if call.outcome != "refused":
            self.durations.add(call.duration, bucket)
        self.cached += call.cached
        self.spilled += call.spilled
        # The first attempt is the call itself.
        self.retries += call.attempts - 1
        self.tokens_in += call.tokens_in or 0
        self.tokens_out += call.tokens_out or 0
        # A call that nothing shortened counts on both sides, so that it saves nothing.
        self.tokens_out_before += call.tokens_out_before or call.tokens_out or 0

    def as_json(self) -> JsonObject:
        """The counts as the dashboard reads them."""
        return {
            "calls": self.outcomes.total(),
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
    """An observer that counts events; its methods may be called from any thread.

    Args:
        max_groups: How many tools, upstreams and modes have counts of their own; the rest share
            one.
        recent: How many recent calls are stored.
    """

    def __init__(self, *, max_groups: int = 2_000, recent: int = 100) -> None:
        self._max_groups = max_groups
        self._lock = threading.Lock()
        self.changes = 0
        """The number of events so far: the dashboard sends an update when it has changed."""
        self._in_flight = 0
        self._total = _Statistics(max_groups, recent)
        self._by_principal: BoundedCache[str, _Statistics] = BoundedCache(_MAX_PRINCIPALS)
        self._run_calls: BoundedCache[str, list[CallFinished]] = BoundedCache(_MAX_RUNS)
        self._upstream_states: dict[str, str] = {}
        self._breakers: dict[str, BreakerState] = {}
        self._store_available = True

    def record(self, event: Event) -> None:
        """Count one event."""
        # The dashboard may take a snapshot in another thread meanwhile.
        with self._lock:
            self.changes += 1
            match event:
                case CallStarted():
                    self._in_flight += 1
                case CallFinished():
                    # Never below zero: the journal of another process has only ends, no starts.
                    self._in_flight = max(0, self._in_flight - 1)
                    self._count(event)
                    if event.parent is not None:
                        calls = self._run_calls.get(event.parent)
                        if calls is None:
                            calls = self._run_calls.put(event.parent, [])
                        # The first ones: they explain a run better than its last.
                        if len(calls) < _MAX_CALLS_PER_RUN:
                            calls.append(event)
                case CallRejected() | ListAnswered() | SearchAnswered() | DescribeAnswered():
                    self._count(event)
                case RunFinished():
                    self._count(event)
                case BreakerChanged():
                    name = f"{event.scope}:{event.name}"
                    if event.state == "closed":
                        self._breakers.pop(name, None)
                    elif name in self._breakers or self._has_room(self._breakers):
                        self._breakers[name] = event.state
                case UpstreamStateChanged():
                    states = self._upstream_states
                    if event.upstream in states or self._has_room(states):
                        states[event.upstream] = event.state
                case StoreStateChanged():
                    self._store_available = event.available
                case _:
                    pass

    def snapshot(self) -> JsonObject:
        """All statistics as they are now."""
        with self._lock:
            return {
                "in_flight": self._in_flight,
                **self._total.as_json(),
                "upstream_states": dict(self._upstream_states),
                "breakers": dict(self._breakers),
                "store_available": self._store_available,
            }

    def snapshot_of(self, principal: str) -> JsonObject:
        """The statistics of one principal's own calls, lists and searches."""
        with self._lock:
            return self._statistics_of(principal).as_json()

    @property
    def breakers(self) -> dict[str, BreakerState]:
        """The breakers that are not closed, by `scope:name`."""
        with self._lock:
            return dict(self._breakers)

    def recent(self) -> list[CallFinished]:
        """The last calls, newest first."""
        with self._lock:
            return list(reversed(self._total.recent))

    def recent_of(self, principal: str) -> list[CallFinished]:
        """The last calls by one principal, newest first; calls of others do not evict them."""
        with self._lock:
            return list(reversed(self._statistics_of(principal).recent))

    def rejected(self) -> list[CallRejected]:
        """The last calls that were rejected before a tool was found for them, newest first."""
        with self._lock:
            return list(reversed(self._total.rejected))

    def rejected_of(self, principal: str) -> list[CallRejected]:
        """The last rejected calls by one principal, newest first."""
        with self._lock:
            return list(reversed(self._statistics_of(principal).rejected))

    @property
    def has_runs(self) -> bool:
        """Whether a program has been run."""
        return bool(self._total.runs)

    def recent_runs(self) -> list[RunFinished]:
        """The last runs of programs, newest first."""
        with self._lock:
            return list(reversed(self._total.runs))

    def recent_runs_of(self, principal: str) -> list[RunFinished]:
        """The last runs of one principal, newest first."""
        with self._lock:
            return list(reversed(self._statistics_of(principal).runs))

    def calls_of_run(self, run: str) -> list[CallFinished]:
        """The first calls that a program made, newest first."""
        with self._lock:
            return list(reversed(self._run_calls.get(run) or ()))

    def _statistics_of(self, principal: str) -> _Statistics:
        # Without authentication all calls are of the local principal: the total is theirs, and no
        # second copy is counted.
        if principal == LOCAL_CALLER.principal and not self._by_principal:
            return self._total
        return self._by_principal.get(principal) or _Statistics(0, 0)

    def _count(self, event: _CountedEvent) -> None:
        self._total.add(event)
        # One user, one set of counts: the total is theirs.
        if event.principal == LOCAL_CALLER.principal:
            return
        own = self._by_principal.get(event.principal)
        if own is None:
            own = _Statistics(_MAX_GROUPS_PER_PRINCIPAL, _RECENT_PER_PRINCIPAL)
            self._by_principal.put(event.principal, own)
        own.add(event)

    def _has_room(self, group: dict[str, str] | dict[str, BreakerState]) -> bool:
        return len(group) < self._max_groups


class _Statistics:
    """The statistics of all calls, or of one principal's."""

    __slots__ = (
        "_all",
        "_by",
        "_lists",
        "_max_groups",
        "_queries",
        "_rejections",
        "recent",
        "rejected",
        "runs",
    )

    def __init__(self, max_groups: int, recent: int) -> None:
        self._max_groups = max_groups
        self._lists: Counter[str] = Counter()
        self._all = CallTally()
        self._by: dict[str, dict[str, CallTally]] = {"tools": {}, "upstreams": {}, "modes": {}}
        self._queries: dict[str, _QueryTally] = {
            k: _QueryTally() for k in ("list", "search", "describe")
        }
        self._rejections = 0
        self.recent: deque[CallFinished] = deque(maxlen=recent)
        # Apart, so that a client that guesses names does not evict the calls that were made.
        self.rejected: deque[CallRejected] = deque(maxlen=recent)
        self.runs: deque[RunFinished] = deque(maxlen=min(recent, _MAX_RUNS))

    def add(self, event: _CountedEvent) -> None:
        match event:
            case CallFinished():
                # One logarithm for the three or four histograms of a call.
                bucket = duration_bucket(event.duration)
                self._all.add(event, bucket)
                self.recent.append(event)
                self._tally("tools", event.tool).add(event, bucket)
                if event.upstream is not None:
                    self._tally("upstreams", event.upstream).add(event, bucket)
                if event.mode is not None:
                    self._tally("modes", event.mode).add(event, bucket)
            case CallRejected():
                self._rejections += 1
                self.rejected.append(event)
            case ListAnswered():
                self._lists[event.mode] += 1
                self._queries["list"].add(event.duration, event.tokens, event.tokens_full)
            case SearchAnswered():
                self._queries["search"].add(event.duration, event.tokens)
            case RunFinished():
                self.runs.append(event)
            case DescribeAnswered():
                self._queries["describe"].add(event.duration, event.tokens)

    def as_json(self) -> JsonObject:
        return {
            "calls": self._all.as_json(),
            **{
                group: {name: tally.as_json() for name, tally in tallies.items()}
                for group, tallies in self._by.items()
            },
            **{kind: tally.as_json() for kind, tally in self._queries.items()},
            "lists_by_mode": dict(self._lists),
            "rejected": self._rejections,
        }

    def _tally(self, group: str, name: str) -> CallTally:
        tallies = self._by[group]
        if name not in tallies:
            # Names come from clients, which can invent new ones without end.
            name = name if len(tallies) < self._max_groups else OTHERS
            tallies.setdefault(name, CallTally())
        return tallies[name]


@dataclass(slots=True)
class _QueryTally:
    """Counts for lists, searches or descriptions: how many, how long, how many tokens."""

    durations: Histogram = field(default_factory=Histogram)
    tokens: int = 0
    saved: int = 0

    def add(self, duration: float, tokens: int | None, full_tokens: int | None = None) -> None:
        self.durations.add(duration)
        self.tokens += tokens or 0
        if full_tokens is not None and tokens is not None:
            self.saved += max(0, full_tokens - tokens)

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


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)


class CombinedObserver:
    """Passes each event to all observers; one that fails does not affect the others."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def record(self, event: Event) -> None:
        """Pass an event to all of them."""
        for observer in self._observers:
            record_event(observer, event)


class InFlight:
    """An observer that tracks calls in progress."""

    def __init__(self) -> None:
        self._calls: dict[str, CallStarted] = {}

    def record(self, event: Event) -> None:
        """Note a start or an end."""
        match event:
            case CallStarted():
                self._calls[event.id] = event
            case CallFinished():
                self._calls.pop(event.id, None)
            case _:
                pass

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def calls(self) -> tuple[CallStarted, ...]:
        """The calls in progress, oldest first."""
        return tuple(self._calls.values())
