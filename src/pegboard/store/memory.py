"""A store in this process: bounded, with expiry; safe for tasks and threads.

Values are stored as the bytes of their JSON, as in every store. Messages reach the subscribers in
this process, through one bounded queue each.
"""

from __future__ import annotations

import heapq
import json
import sys
import threading
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property
from typing import NamedTuple

import anyio

from pegboard.core.json import Json
from pegboard.errors import StoreError
from pegboard.ports import Change

_FOREVER = float("inf")


def encode(value: Json) -> bytes:
    """The bytes of a value. Raises `TypeError` or `ValueError` if it is not JSON."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError as exc:
        raise ValueError("The value is nested too deeply to be stored.") from exc
    return text.encode("utf-8", "surrogatepass")  # tools do return lone surrogates


def decode(data: bytes) -> Json:
    """A fresh value, which the caller may change."""
    return json.loads(data.decode("utf-8", "surrogatepass"))


def check_ttl(ttl: float | None) -> float | None:
    """The ttl, or an error: to remove a value, change it to `None`."""
    if ttl is not None and not 0 < ttl < _FOREVER:
        raise ValueError(f"A ttl is a positive number of seconds; got {ttl}.")
    return ttl


class MessageQueue:
    """The unread messages of one subscriber; when it overflows, a single `None` replaces them.

    It belongs to the event loop of its reader: `put` must be called on that loop.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._unread: deque[Json] = deque()
        self._arrived = anyio.Event()

    def put(self, message: Json) -> None:
        """Add a message without waiting for the reader."""
        if len(self._unread) >= self._size:
            # `None` tells the reader to read the state itself; then older messages are useless.
            self._unread.clear()
            message = None
        self._unread.append(message)
        self._arrived.set()

    def __aiter__(self) -> AsyncIterator[Json]:
        return self

    async def __anext__(self) -> Json:
        while not self._unread:
            self._arrived = anyio.Event()
            await self._arrived.wait()
        return self._unread.popleft()


class Topics:
    """The subscribers of each topic."""

    def __init__(self, size: int = 256) -> None:
        self._size = size
        self._queues: defaultdict[str, set[MessageQueue]] = defaultdict(set)

    def publish(self, topic: str, message: Json) -> None:
        """Give each subscriber its own copy."""
        queues = self._queues.get(topic, ())
        data = encode(message)
        for queue in tuple(queues):
            queue.put(decode(data))

    @asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncGenerator[AsyncIterator[Json], None]:
        """The messages published from now on."""
        queue = MessageQueue(self._size)
        self._queues[topic].add(queue)
        try:
            yield queue
        finally:
            self._queues[topic].discard(queue)
            if not self._queues[topic]:
                del self._queues[topic]


class _Entry(NamedTuple):
    data: bytes
    expires_at: float


class MemoryStore:
    """Stores values as bytes, so that nobody holds a reference into the store.

    When it is full, expired entries are evicted first, then the least recently used ones. A message
    reaches the subscribers on the event loop that publishes it.
    """

    def __init__(
        self,
        *,
        max_entries: int = 100_000,
        max_bytes: int = 256 * 1024 * 1024,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._clock = clock
        self._lock = threading.Lock()
        # Not a `BoundedCache`: the total size is bounded too, and every eviction must update it.
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._expiries: list[tuple[float, str]] = []  # a heap, earliest first
        self._bytes = 0
        self._topics = Topics()

    def __len__(self) -> int:
        return len(self._entries)

    @cached_property
    def decisions(self) -> MemoryStore:
        """A separate store for the decisions of operators: few, and never evicted."""
        return MemoryStore(max_entries=sys.maxsize, max_bytes=sys.maxsize, clock=self._clock)

    @property
    def used_bytes(self) -> int:
        """The size of all keys and values, as stored."""
        return self._bytes

    async def get(self, key: str) -> Json:
        """The value, or `None`."""
        if key not in self._entries:  # without the lock: most reads find nothing
            return None
        with self._lock:
            entry = self._find(key)
        return None if entry is None else decode(entry.data)

    async def update(self, key: str, change: Change, *, ttl: float | None = None) -> Json:
        """Apply a pure change atomically and return the new value."""
        check_ttl(ttl)
        with self._lock:
            entry = self._find(key)
            value = change(None if entry is None else decode(entry.data))
            if value is None:
                self._remove(key)
                return None
            data = encode(value)
            self._put(key, _Entry(data, _FOREVER if ttl is None else self._clock() + ttl))
        return decode(data)

    def take(self, key: str) -> tuple[Json, float | None] | None:
        """Remove a value and return it with its time to live; `None` if it is missing."""
        with self._lock:
            entry = self._find(key)
            if entry is None:
                return None
            self._remove(key)
            left = entry.expires_at - self._clock()
            return decode(entry.data), (None if left == _FOREVER else left)

    async def publish(self, topic: str, message: Json) -> None:
        """Send a message to every subscriber of the topic."""
        self._topics.publish(topic, message)

    def subscribe(self, topic: str) -> AbstractAsyncContextManager[AsyncIterator[Json]]:
        """The topic's messages from the moment the block is entered."""
        return self._topics.subscribe(topic)

    def _find(self, key: str) -> _Entry | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.expires_at <= self._clock():
            self._remove(key)
            return None
        self._entries.move_to_end(key)
        return entry

    def _put(self, key: str, entry: _Entry) -> None:
        size = _entry_size(key, entry)
        if size > self._max_bytes:
            raise StoreError(
                f"The value of {key!r} has {size:,} bytes; this store holds {self._max_bytes:,}. "
                "Raise its limit or store less.",
                key=key,
            )
        self._remove(key)
        now = self._clock()
        while self._expiries and self._expiries[0][0] <= now:
            expires_at, expired = heapq.heappop(self._expiries)
            found = self._entries.get(expired)
            # The heap is not updated when an entry is rewritten: its old expiry means nothing.
            if found is not None and found.expires_at == expires_at:
                self._remove(expired)
        while self._entries and (
            len(self._entries) >= self._max_entries or self._bytes + size > self._max_bytes
        ):
            self._remove(next(iter(self._entries)))
        self._entries[key] = entry
        self._bytes += size
        if entry.expires_at < _FOREVER:
            heapq.heappush(self._expiries, (entry.expires_at, key))
        # Rebuilt when most of it is outdated, or rewriting one entry would grow it without end.
        if len(self._expiries) > 2 * len(self._entries) + 64:
            live = ((e.expires_at, k) for k, e in self._entries.items())
            self._expiries = sorted(pair for pair in live if pair[0] < _FOREVER)

    def _remove(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= _entry_size(key, entry)


def _entry_size(key: str, entry: _Entry) -> int:
    return len(key) + len(entry.data)
