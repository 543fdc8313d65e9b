"""The cache layer: one run for many like calls of a read-only tool.

Two things, both for read-only tools alone. Calls that are alike and under way at once share one
run. And where a tool has been given a time to live, its result is kept that long, unless some tool
of the same server that is not read-only was called since. Errors are shared with whoever waits and
never kept.

Nothing runs in the background: the first caller runs the call and the others wait for it. When the
first is cancelled, its run is cancelled with it and one of the others takes over: a read may be
run again.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from anyio import Event

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.json import compact
from pegboard.core.tools import Tool
from pegboard.dispatch.call_events import call_notes
from pegboard.ports import Handler, Layer

_PLAIN_PARAMS: Final = frozenset(("_meta",))
_encoder: Final = json.JSONEncoder(sort_keys=True, default=repr)


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """Which results are kept, by globs over tool ids and names with seconds to live, how many."""

    ttl: Mapping[str, float] = field(default_factory=dict[str, float])
    entries: int = 512
    bytes: int = 32 * 1024 * 1024
    share: bool = True

    def ttl_of(self, tool: Tool) -> float | None:
        """The seconds that results of a tool are kept; `None` for not at all. The first fits."""
        for pattern, ttl in self.ttl.items():
            if fnmatchcase(tool.id, pattern) or fnmatchcase(tool.name, pattern):
                return ttl if ttl > 0 else None
        return None


@dataclass(frozen=True, slots=True)
class _CachedResult:
    result: CallResult
    expires_at: float
    server: str | None
    size: int


class ResultCache:
    """Results by key: least recently used ones go first, expired ones when they are met."""

    def __init__(self, policy: CachePolicy, clock: Callable[[], float]) -> None:
        self.policy = policy
        self.hits = 0
        self.misses = 0
        self._clock = clock
        self._kept: OrderedDict[str, _CachedResult] = OrderedDict()
        self._bytes = 0
        self._writes: Counter[str | None] = Counter()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: str) -> CallResult | None:
        """The kept result, if it is still good."""
        kept = self._kept.get(key)
        if kept is not None and kept.expires_at <= self._clock():
            self._drop(key)
            kept = None
        if kept is None:
            self.misses += 1
            return None
        self.hits += 1
        self._kept.move_to_end(key)
        return _copy(kept.result)

    def put(self, key: str, result: CallResult, *, server: str | None, ttl: float) -> None:
        """Keep a result, unless it alone is larger than all that may be kept."""
        size = len(compact(result.wire))
        if size > self.policy.bytes:
            return
        self._drop(key)
        self._kept[key] = _CachedResult(_copy(result), self._clock() + ttl, server, size)
        self._bytes += size
        while len(self._kept) > self.policy.entries or self._bytes > self.policy.bytes:
            self._drop(next(iter(self._kept)))

    def writes(self, server: str | None) -> int:
        """How often results of a server were forgotten: one begun before the last time is stale."""
        return self._writes[server]

    def forget(self, server: str | None) -> None:
        """Drop what is kept of a server, since something there may have changed."""
        self._writes[server] += 1
        for key in [key for key, kept in self._kept.items() if kept.server == server]:
            self._drop(key)

    def _drop(self, key: str) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= kept.size


class _SharedRun:
    """A run that others wait for; without result and error when it was cancelled."""

    def __init__(self) -> None:
        self.landed = Event()
        self.result: CallResult | None = None
        self.error: Exception | None = None


def cache_layer(*, clock: Callable[[], float], policy: CachePolicy | None = None) -> Layer:
    """A layer that shares and keeps results of read-only tools. `clock` is monotonic seconds."""
    return cache_layer_over(ResultCache(policy or CachePolicy(), clock))


def cache_layer_over(cache: ResultCache) -> Layer:
    """The same over a cache that the caller also holds, for its statistics."""

    def layer(inner: Handler) -> Handler:
        flights: dict[str, _SharedRun] = {}

        async def handle(call: ToolCall) -> CallResult:
            if call.tool.risk != "read":
                return await _write(call, inner, cache)
            ttl = cache.policy.ttl_of(call.tool)
            # Two calls are one only where somebody says that they change nothing: a name does not.
            share = cache.policy.share and call.tool.risk_source != "inferred"
            if call.params.keys() - _PLAIN_PARAMS or not (ttl or share):
                return await inner(call)
            key = call_key(call)
            while True:
                kept = cache.get(key) if ttl else None
                if kept is not None:
                    call_notes().cached = True
                    return kept
                flight = flights.get(key)
                if flight is None:
                    return await _lead(call, inner, key, cache=cache, flights=flights)
                await flight.landed.wait()
                if flight.error is not None:
                    raise flight.error
                if flight.result is not None:
                    call_notes().cached = True
                    return _copy(flight.result)

        return handle

    return layer


async def _write(call: ToolCall, inner: Handler, cache: ResultCache) -> CallResult:
    cache.forget(call.tool.server)
    try:
        return await inner(call)
    finally:
        cache.forget(call.tool.server)  # a read that began meanwhile may have seen the old state


async def _lead(
    call: ToolCall, inner: Handler, key: str, *, cache: ResultCache, flights: dict[str, _SharedRun]
) -> CallResult:
    """Run a call for everybody who waits for one like it."""
    flight = flights[key] = _SharedRun()
    began = cache.writes(call.tool.server)
    try:
        result = await inner(call)
    except (
        Exception
    ) as error:  # for the others too; a cancellation is no Exception and is ours alone
        flight.error = error
        raise
    else:
        if result.is_complete:  # an unfinished one continues with its own caller
            flight.result = result
            ttl = cache.policy.ttl_of(call.tool)
            if ttl and not result.is_error and began == cache.writes(call.tool.server):
                cache.put(key, result, server=call.tool.server, ttl=ttl)
        return result
    finally:
        del flights[key]
        flight.landed.set()


def call_key(call: ToolCall) -> str:
    """Equal for calls of one tool definition with equal arguments by one caller.

    Not `core.json.canonical`, which writes integers beyond 2**53 as texts: here 1 and "1" must
    differ.
    """
    parts = [
        call.tool.id,
        call.tool.digest,
        call.caller.principal,
        call.caller.session,
        call.arguments,
    ]
    return hashlib.sha256(_encoder.encode(parts).encode()).hexdigest()


def _copy(result: CallResult) -> CallResult:
    """A result that others may add to without changing what is kept."""
    return CallResult(dict(result.wire))
