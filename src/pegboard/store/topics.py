"""Messages to whoever listens in this process, one bounded queue each."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import anyio

from pegboard.core.json import Json
from pegboard.store.encoding import decode, encode


class Queue:
    """What one subscriber has not read yet; when it overflows, a single `None` says so.

    Belongs to the event loop of its reader: `put` is called on that loop.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: deque[Json] = deque()
        self._arrived = anyio.Event()

    def put(self, message: Json) -> None:
        """Leave a message without waiting for the reader."""
        if len(self._waiting) >= self._size:
            self._waiting.clear()
            message = None
        self._waiting.append(message)
        self._arrived.set()

    def __aiter__(self) -> AsyncIterator[Json]:
        return self

    async def __anext__(self) -> Json:
        while not self._waiting:
            self._arrived = anyio.Event()
            await self._arrived.wait()
        return self._waiting.popleft()


class Topics:
    """Who listens to what."""

    def __init__(self, size: int = 256) -> None:
        self._size = size
        self._queues: defaultdict[str, set[Queue]] = defaultdict(set)

    def publish(self, topic: str, message: Json) -> None:
        """Leave each subscriber its own copy."""
        queues = self._queues.get(topic, ())
        data = encode(message)
        for queue in tuple(queues):
            queue.put(decode(data))

    @asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncGenerator[AsyncIterator[Json], None]:
        """The messages left from now on."""
        queue = Queue(self._size)
        self._queues[topic].add(queue)
        try:
            yield queue
        finally:
            self._queues[topic].discard(queue)
            if not self._queues[topic]:
                del self._queues[topic]
