"""Schemas made on first access and kept: bounded, expiring, and counted."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from pegboard.core.tools import Schemas


@dataclass(frozen=True, slots=True)
class CacheStats:
    """How the cache has served since it was made or cleared."""

    hits: int
    misses: int
    size: int
    capacity: int
    """Entries that it holds at most."""
    ttl: float
    """Seconds that an entry lasts."""

    @property
    def hit_rate(self) -> float:
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0


class SchemaCache:
    """Keeps at most `capacity` schemas for `ttl` seconds each; the least recently used go first."""

    def __init__(
        self, clock: Callable[[], float], *, capacity: int = 1024, ttl: float = 300.0
    ) -> None:
        self._clock = clock
        self._capacity = capacity
        self._ttl = ttl
        self._kept: OrderedDict[str, tuple[float, Schemas]] = OrderedDict()
        self._hits = 0
        self._misses = 0
        self._lock = Lock()

    def get(self, key: str, make: Callable[[], Schemas]) -> Schemas:
        """The schemas kept under `key`, made now if they are not there or too old."""
        now = self._clock()
        with self._lock:
            kept = self._kept.get(key)
            if kept and now - kept[0] < self._ttl:
                self._hits += 1
                self._kept.move_to_end(key)
                return kept[1]
            self._misses += 1
        made = make()  # outside the lock: it may take milliseconds, and may raise
        with self._lock:
            self._kept[key] = (now, made)
            self._kept.move_to_end(key)
            while len(self._kept) > self._capacity:
                self._kept.popitem(last=False)
        return made

    def forget(self, key: str) -> None:
        """Drop one entry, if it is there."""
        with self._lock:
            self._kept.pop(key, None)

    def clear(self) -> None:
        """Drop everything and count from zero."""
        with self._lock:
            self._kept.clear()
            self._hits = self._misses = 0

    def purge_expired(self) -> int:
        """Drop what is too old; says how many entries that were."""
        now = self._clock()
        with self._lock:
            old = [key for key, (made_at, _) in self._kept.items() if now - made_at >= self._ttl]
            for key in old:
                del self._kept[key]
        return len(old)

    def stats(self) -> CacheStats:
        with self._lock:
            size = len(self._kept)
            return CacheStats(self._hits, self._misses, size, self._capacity, self._ttl)
