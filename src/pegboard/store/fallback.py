"""The shared store while it is available, the memory of this process while it is not.

    shared ──(StoreError)──> local, with a retry every `retry` seconds ──(it answers)──> shared

While the shared store is unavailable, each replica continues with its own state: breakers, sessions
and stored results are in its memory, and messages reach its own subscribers. When the store is
available again, each key that was written here is handed over when it is next used, unless the
shared store has a value under it, which wins.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import anyio
from anyio.abc import TaskStatus

from pegboard.core.events import StoreStateChanged
from pegboard.core.json import Json
from pegboard.errors import StoreError
from pegboard.ports import Change, Observer, Store, record_event
from pegboard.store.memory import MemoryStore, MessageQueue

logger = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_UNREAD = 256


class FallbackStore:
    """A store that works without the shared one."""

    def __init__(
        self,
        shared: Store,
        *,
        local: MemoryStore | None = None,
        observer: Observer | None = None,
        retry: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._shared = shared
        self._local = MemoryStore() if local is None else local
        self._observer = observer
        self._retry = retry
        self._clock = clock  # not the wall clock, which may be set back: no retry for hours
        self._wall_clock = wall_clock
        self._unavailable_until: float | None = None

    @property
    def shared(self) -> Store:
        """The shared store alone, which fails while it is unavailable."""
        return self._shared

    @property
    def is_shared(self) -> bool:
        """Whether the shared store answered the last request."""
        return self._unavailable_until is None

    async def get(self, key: str) -> Json:
        """The value, or `None`."""

        async def shared() -> Json:
            await self._move_to_shared(key)
            return await self._shared.get(key)

        return await self._either(shared, lambda: self._local.get(key))

    async def update(self, key: str, change: Change, *, ttl: float | None = None) -> Json:
        """Apply a pure change atomically, for all replicas or here, and return the new value."""

        async def shared() -> Json:
            await self._move_to_shared(key)
            return await self._shared.update(key, change, ttl=ttl)

        return await self._either(shared, lambda: self._local.update(key, change, ttl=ttl))

    async def publish(self, topic: str, message: Json) -> None:
        """Send a message to every subscriber that can be reached."""
        await self._either(
            lambda: self._shared.publish(topic, message),
            lambda: self._local.publish(topic, message),
        )

    @asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncGenerator[AsyncIterator[Json], None]:
        """The topic's messages of all replicas, or of this one while the store is unavailable."""
        queue = MessageQueue(_MAX_UNREAD)
        failure: Exception | None = None
        # Both at once: while the shared store is unavailable, messages are published locally.
        async with self._local.subscribe(topic) as own, anyio.create_task_group() as tasks:
            tasks.start_soon(_pass_on, own, queue)
            await tasks.start(self._pass_on_shared, topic, queue)
            try:
                yield queue
            except Exception as exc:
                failure = exc  # raised outside the group, which would wrap it
            finally:
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def aclose(self) -> None:
        """Close the connections of the shared store, if it has any."""
        aclose = getattr(self._shared, "aclose", None)  # not part of the `Store` protocol
        if aclose is not None:
            await aclose()

    async def _either(
        self, shared: Callable[[], Awaitable[T]], local: Callable[[], Awaitable[T]]
    ) -> T:
        if self._unavailable_until is not None:
            now = self._clock()
            if now < self._unavailable_until:
                return await local()
            # This request retries; concurrent ones stay local and need not wait for it.
            self._unavailable_until = now + self._retry
        try:
            value = await shared()
        except StoreError as exc:
            self._mark_unavailable(exc)
            return await local()
        if self._unavailable_until is not None:
            self._unavailable_until = None
            logger.info("The shared store is available again.")
            self._notify(available=True)
        return value

    async def _move_to_shared(self, key: str) -> None:
        """Move a value that was written here to the shared store, unless it has one."""
        # Nothing is local after a healthy start, so this costs a shared store nothing.
        taken = self._local.take(key) if len(self._local) else None
        if taken is None:
            return
        value, ttl = taken
        try:
            if await self._shared.get(key) is None:
                await self._shared.update(key, _if_missing(value), ttl=ttl)
        except StoreError:
            # Unavailable again: put it back for the next attempt.
            await self._local.update(key, _if_missing(value), ttl=ttl)
            raise

    async def _pass_on_shared(
        self, topic: str, queue: MessageQueue, *, task_status: TaskStatus[None]
    ) -> None:
        begin = task_status.started
        while True:
            try:
                async with self._shared.subscribe(topic) as messages:
                    begin()
                    await _pass_on(messages, queue)
            except StoreError as exc:
                self._mark_unavailable(exc)
                begin()  # without the shared messages: the local ones arrive already
            begin = partial(queue.put, None)  # messages until then were missed: say so
            await anyio.sleep(self._retry)

    def _mark_unavailable(self, exc: StoreError) -> None:
        was_available = self._unavailable_until is None
        self._unavailable_until = self._clock() + self._retry
        if was_available:
            logger.warning("The shared store is unavailable; using local state. %s", exc)
            self._notify(available=False, reason=exc.message)

    def _notify(self, *, available: bool, reason: str | None = None) -> None:
        at = self._wall_clock()
        record_event(self._observer, StoreStateChanged(at=at, available=available, reason=reason))


def decision_store(store: Store) -> Store:
    """The store for the decisions of operators.

    It is the shared store without its local fallback: a decision is stored for all replicas or
    rejected. In memory it is a separate store, from which results of callers can evict nothing.
    """
    if isinstance(store, FallbackStore):
        return store.shared
    return store.decisions if isinstance(store, MemoryStore) else store


async def _pass_on(messages: AsyncIterator[Json], queue: MessageQueue) -> None:
    async for message in messages:
        queue.put(message)


def _if_missing(value: Json) -> Change:
    return lambda old: value if old is None else old
