"""The shared store while it can be reached, this process's memory while it cannot.

    shared ──(StoreError)──> local, and another try every `retry` seconds ──(it answers)──> shared

While the shared store is away, each replica goes on with a state of its own: breakers, sessions and
spilled results live in its memory, and messages reach its own subscribers. When the store is back,
what was written here meanwhile is handed over, key by key as it is next used, where the shared
store has nothing of that name; where it has something, that is what counts.
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

_UNREAD = 256


class FallbackStore:
    """A store that never fails for want of the shared one."""

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
        self._clock = clock  # not the wall clock: set back, it would keep the store unused
        self._wall_clock = wall_clock
        self._away_until: float | None = None

    @property
    def shared(self) -> Store:
        """The shared store alone, which fails while it is away."""
        return self._shared

    @property
    def is_shared(self) -> bool:
        """Whether the shared store answered when it was last asked."""
        return self._away_until is None

    async def get(self, key: str) -> Json:
        """The value, or `None`."""

        async def shared() -> Json:
            await self._hand_over(key)
            return await self._shared.get(key)

        return await self._either(shared, lambda: self._local.get(key))

    async def update(self, key: str, change: Change, *, ttl: float | None = None) -> Json:
        """Apply a pure change atomically, here or for all replicas, and return the new value."""

        async def shared() -> Json:
            await self._hand_over(key)
            return await self._shared.update(key, change, ttl=ttl)

        return await self._either(shared, lambda: self._local.update(key, change, ttl=ttl))

    async def publish(self, topic: str, message: Json) -> None:
        """Tell every subscriber that can be reached."""
        await self._either(
            lambda: self._shared.publish(topic, message),
            lambda: self._local.publish(topic, message),
        )

    @asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncGenerator[AsyncIterator[Json], None]:
        """The topic's messages of all replicas, or of this one alone while it is alone."""
        queue = MessageQueue(_UNREAD)
        failure: Exception | None = None
        async with self._local.subscribe(topic) as own, anyio.create_task_group() as tasks:
            tasks.start_soon(_pass_on, own, queue)
            await tasks.start(self._pass_on_shared, topic, queue)
            try:
                yield queue
            except Exception as exc:
                failure = exc  # to be raised outside of the group, which would wrap it
            finally:
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def aclose(self) -> None:
        """Let go of the connections of the shared store, if it has any."""
        aclose = getattr(self._shared, "aclose", None)
        if aclose is not None:
            await aclose()

    async def _either(
        self, shared: Callable[[], Awaitable[T]], local: Callable[[], Awaitable[T]]
    ) -> T:
        if self._away_until is not None:
            now = self._clock()
            if now < self._away_until:
                return await local()
            self._away_until = now + self._retry  # this one tries; others need not wait for it
        try:
            value = await shared()
        except StoreError as exc:
            self._went_away(exc)
            return await local()
        self._came_back()
        return value

    async def _hand_over(self, key: str) -> None:
        """Give the shared store what was written here meanwhile, where it has nothing itself."""
        taken = self._local.take(key) if len(self._local) else None
        if taken is None:
            return
        value, ttl = taken
        try:
            if await self._shared.get(key) is None:
                await self._shared.update(key, _unless_there(value), ttl=ttl)
        except StoreError:
            await self._local.update(key, _unless_there(value), ttl=ttl)
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
                self._went_away(exc)
                begin()  # without the shared messages: the local ones come already
            begin = partial(queue.put, None)  # what was said until then was missed
            await anyio.sleep(self._retry)

    def _went_away(self, exc: StoreError) -> None:
        was_there = self._away_until is None
        self._away_until = self._clock() + self._retry
        if was_there:
            logger.warning("The shared store is away; going on with local state. %s", exc)
            self._tell(available=False, reason=exc.message)

    def _came_back(self) -> None:
        if self._away_until is not None:
            self._away_until = None
            logger.info("The shared store is back.")
            self._tell(available=True)

    def _tell(self, *, available: bool, reason: str | None = None) -> None:
        at = self._wall_clock()
        record_event(self._observer, StoreStateChanged(at=at, available=available, reason=reason))


def decision_store(store: Store) -> Store:
    """The store for what operators decide, beside the one for everything else.

    The shared store alone, without the local one that stands in for it: a decision is stored for
    all replicas or refused. In memory, one that callers' results cannot push decisions out of.
    """
    if isinstance(store, FallbackStore):
        return store.shared
    return store.decisions if isinstance(store, MemoryStore) else store


async def _pass_on(messages: AsyncIterator[Json], queue: MessageQueue) -> None:
    async for message in messages:
        queue.put(message)


def _unless_there(value: Json) -> Change:
    return lambda old: value if old is None else old
