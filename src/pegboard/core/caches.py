"""Caches of bounded size: when one is full, the least recently used entry is evicted.

`BoundedCache` is behind everything that is remembered per caller, per tool or per session, where
clients and servers decide how many keys there are. `SchemaCache` adds expiry and counters, for the
schemas that are generated from Python functions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from pegboard.core import defaults
from pegboard.core.tools import Schemas

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """At most `capacity` entries; reading or writing one makes it the most recently used."""

    __slots__ = ("_entries", "capacity")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._entries: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        """Whether there is an entry; looking does not count as a use."""
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        """The keys, least recently used first."""
        return iter(self._entries)

    def get(self, key: K) -> V | None:
        """The value, which is then the most recently used; `None` if there is none."""
        try:
            self._entries.move_to_end(key)
            return self._entries[key]
        except KeyError:  # never there, or just evicted by another thread
            return None

    def put(self, key: K, value: V) -> V:
        """Store a value, evict what no longer fits, and return the value."""
        self._entries[key] = value
        self._entries.move_to_end(key)  # assigning to a key that exists leaves it in its old place
        if len(self._entries) > self.capacity:
            self._entries.popitem(last=False)
        return value

    def pop(self, key: K) -> V | None:
        """Remove and return a value; `None` if there is none."""
        return self._entries.pop(key, None)

    def items(self) -> list[tuple[K, V]]:
        """All entries, least recently used first; a copy, so that entries may be removed."""
        return list(self._entries.items())

    def clear(self) -> None:
        self._entries.clear()


@dataclass(frozen=True, slots=True)
class CacheStats:
    """How a cache has performed since it was created or cleared."""

    hits: int
    misses: int
    size: int
    capacity: int
    """The most entries that it holds."""
    ttl: float
    """Seconds until an entry expires."""

    @property
    def hit_rate(self) -> float:
        lookups = self.hits + self.misses
        return self.hits / lookups if lookups else 0.0


class SchemaCache:
    """Generated schemas: at most `capacity`, each for `ttl` seconds. Safe for threads."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        capacity: int = defaults.SCHEMA_CACHE_SIZE,
        ttl: float = defaults.SCHEMA_CACHE_TTL,
    ) -> None:
        self._clock = clock
        self._ttl = ttl
        self._entries: BoundedCache[str, tuple[float, Schemas]] = BoundedCache(capacity)
        self._hits = 0
        self._misses = 0
        self._lock = Lock()

    def get(self, key: str, make: Callable[[], Schemas]) -> Schemas:
        """The schemas cached under `key`, generated now if they are missing or expired."""
        now = self._clock()  # one reading for the lookup and for the new entry
        with self._lock:
            entry = self._entries.get(key)
            if entry and now - entry[0] < self._ttl:
                self._hits += 1
                return entry[1]
            self._misses += 1
        # Outside the lock, because it may take milliseconds and may raise. Two threads that miss at
        # the same time both generate, which is harmless.
        made = make()
        with self._lock:
            self._entries.put(key, (now, made))
        return made

    def forget(self, key: str) -> None:
        """Remove one entry, if it is there."""
        with self._lock:
            self._entries.pop(key)

    def clear(self) -> None:
        """Remove all entries and reset the counters."""
        with self._lock:
            self._entries.clear()
            self._hits = self._misses = 0

    def purge_expired(self) -> int:
        """Remove the expired entries and return how many there were."""
        now = self._clock()
        with self._lock:
            expired = [k for k, (made_at, _) in self._entries.items() if now - made_at >= self._ttl]
            for key in expired:
                self._entries.pop(key)
        return len(expired)

    def stats(self) -> CacheStats:
        with self._lock:
            return CacheStats(
                self._hits, self._misses, len(self._entries), self._entries.capacity, self._ttl
            )
