"""The cache layer: one run for many identical calls to a read-only tool.

It does two things, both for read-only tools alone. Identical calls that are in flight at the same
time share one run (single-flight). And if a tool has a time to live, its result is cached for that
long, unless a tool of the same server that is not read-only was called since. Errors are shared
with the callers that wait, and never cached.

Nothing runs in the background: the first caller runs the call and the others wait for it. When the
first is canceled, its run is canceled with it and one of the others takes over: a read may be
repeated.
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
"""Protocol extras that do not change the answer; a call with any other is not shared."""

_encoder: Final = json.JSONEncoder(sort_keys=True, default=repr)


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """Which results are cached: seconds to live by globs over tool ids and names; and how many."""

    ttl: Mapping[str, float] = field(default_factory=dict[str, float])
    entries: int = 512
    bytes: int = 32 * 1024 * 1024
    share: bool = True

    def ttl_of(self, tool: Tool) -> float | None:
        """The seconds that results of a tool are cached; `None`: not at all. First match wins."""
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
    """Results by key: the least recently used are evicted first, expired ones when they are read.

    Not a `BoundedCache`, since the total size is bounded too, and every eviction must update it.
    """

    def __init__(self, policy: CachePolicy, clock: Callable[[], float]) -> None:
        self.policy = policy
        self.hits = 0
        self.misses = 0
        self._clock = clock
        self._entries: OrderedDict[str, _CachedResult] = OrderedDict()
        self._bytes = 0
        self._writes: Counter[str | None] = Counter()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> CallResult | None:
        """The cached result, unless it has expired."""
        entry = self._entries.get(key)
        if entry is not None and entry.expires_at <= self._clock():
            self._remove(key)
            entry = None
        if entry is None:
            self.misses += 1
            return None
        self.hits += 1
        self._entries.move_to_end(key)
        return _copy(entry.result)

    def put(self, key: str, result: CallResult, *, server: str | None, ttl: float) -> None:
        """Cache a result, unless it alone is larger than the whole cache."""
        size = len(compact(result.wire))
        if size > self.policy.bytes:
            return
        self._remove(key)
        self._entries[key] = _CachedResult(_copy(result), self._clock() + ttl, server, size)
        self._bytes += size
        while len(self._entries) > self.policy.entries or self._bytes > self.policy.bytes:
            self._remove(next(iter(self._entries)))

    def writes(self, server: str | None) -> int:
        """How often a server was invalidated: a read that began before the last time is stale."""
        return self._writes[server]

    def invalidate(self, server: str | None) -> None:
        """Remove the results of a server, since something there may have changed."""
        self._writes[server] += 1
        for key in [key for key, entry in self._entries.items() if entry.server == server]:
            self._remove(key)

    def _remove(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.size


class _SharedRun:
    """A run that others wait for; has neither result nor error if it was canceled."""

    def __init__(self) -> None:
        self.finished = Event()
        self.result: CallResult | None = None
        self.error: Exception | None = None


def cache_layer(*, clock: Callable[[], float], policy: CachePolicy | None = None) -> Layer:
    """A layer that shares and caches results of read-only tools. `clock` is monotonic seconds."""
    return cache_layer_for(ResultCache(policy or CachePolicy(), clock))


def cache_layer_for(cache: ResultCache) -> Layer:
    """The same over a cache that the caller also holds, for its statistics."""

    def layer(inner: Handler) -> Handler:
        runs: dict[str, _SharedRun] = {}

        async def handle(call: ToolCall) -> CallResult:
            if call.tool.risk != "read":
                cache.invalidate(call.tool.server)
                try:
                    return await inner(call)
                finally:
                    # Again: a read that began in the meantime may have seen the old state.
                    cache.invalidate(call.tool.server)
            ttl = cache.policy.ttl_of(call.tool)
            # Sharing needs a declaration that the tool changes nothing: its name is not enough.
            share = cache.policy.share and call.tool.risk_source != "inferred"
            if call.params.keys() - _PLAIN_PARAMS or not (ttl or share):
                return await inner(call)
            key = call_key(call)
            while True:
                cached = cache.get(key) if ttl else None
                if cached is not None:
                    call_notes().cached = True
                    return cached
                run = runs.get(key)
                if run is None:
                    return await _lead(call, inner, key, cache=cache, runs=runs)
                await run.finished.wait()
                if run.error is not None:
                    raise run.error
                if run.result is not None:
                    call_notes().cached = True
                    return _copy(run.result)
                # The run was canceled: look again, and perhaps lead the next one.

        return handle

    return layer


async def _lead(
    call: ToolCall, inner: Handler, key: str, *, cache: ResultCache, runs: dict[str, _SharedRun]
) -> CallResult:
    """Run a call for everybody who waits for an identical one."""
    run = runs[key] = _SharedRun()
    began = cache.writes(call.tool.server)
    try:
        result = await inner(call)
    except Exception as error:  # not a cancellation, which concerns this caller alone
        run.error = error
        raise
    else:
        if result.is_complete:  # an unfinished one continues with its own caller
            run.result = result
            ttl = cache.policy.ttl_of(call.tool)
            if ttl and not result.is_error and began == cache.writes(call.tool.server):
                cache.put(key, result, server=call.tool.server, ttl=ttl)
        return result
    finally:
        del runs[key]
        run.finished.set()


def call_key(call: ToolCall) -> str:
    """Equal for calls to one tool definition with equal arguments by one caller.

    Not `core.json.canonical`, which writes integers beyond 2**53 as texts: here 1 and "1" must
    differ.
    """
    parts = [
        call.tool.id,
        call.tool.digest,  # a changed definition must not get results of the old one
        call.caller.principal,
        call.caller.session,  # a server may answer by what it knows of the session
        call.arguments,
    ]
    return hashlib.sha256(_encoder.encode(parts).encode()).hexdigest()


def _copy(result: CallResult) -> CallResult:
    """A result that layers may add to without changing the cached one."""
    return CallResult(dict(result.wire))
