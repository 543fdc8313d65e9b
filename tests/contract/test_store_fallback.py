from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
from tests.real_redis import RedisServer

from pegboard.core.events import Event, StoreStateChanged
from pegboard.core.json import Json
from pegboard.errors import StoreError
from pegboard.ports import Change
from pegboard.store.fallback import FallbackStore
from pegboard.store.memory import MemoryStore
from pegboard.store.redis import RedisStore

pytestmark = pytest.mark.anyio


class Shared(MemoryStore):
    """A shared store that a test can take away."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock=clock)
        self.away = False
        self.asked = 0

    async def get(self, key: str) -> Json:
        self._check()
        return await super().get(key)

    async def update(self, key: str, change: Change, *, ttl: float | None = None) -> Json:
        self._check()
        return await super().update(key, change, ttl=ttl)

    async def publish(self, topic: str, message: Json) -> None:
        self._check()
        await super().publish(topic, message)

    @asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncGenerator[AsyncIterator[Json], None]:
        self._check()
        async with super().subscribe(topic) as messages:
            yield messages

    def _check(self) -> None:
        self.asked += 1
        if self.away:
            raise StoreError("away")


class World:
    """Two replicas that fall back, on one shared store and one clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.shared = Shared(lambda: self.now)
        self.events: list[Event] = []
        self.here, self.there = (
            FallbackStore(
                self.shared,
                local=MemoryStore(clock=lambda: self.now),
                observer=self,
                retry=1.0,
                clock=lambda: self.now,
            )
            for _ in range(2)
        )

    def record(self, event: Event) -> None:
        self.events.append(event)


def put(value: Json) -> Callable[[Json], Json]:
    return lambda _: value


def add_one(value: Json) -> Json:
    return (value or 0) + 1


async def test_while_the_shared_store_is_away_each_replica_goes_on_alone() -> None:
    world = World()
    world.shared.away = True
    assert await world.here.update("k", add_one) == 1
    assert await world.here.update("k", add_one) == 2
    assert await world.there.get("k") is None
    assert not world.here.is_shared


async def test_an_absent_store_is_not_asked_on_every_call() -> None:
    world = World()
    world.shared.away = True
    for _ in range(50):
        await world.here.get("k")
    assert world.shared.asked == 1
    world.now += 1.1
    await world.here.get("k")
    assert world.shared.asked == 2


async def test_it_comes_back_by_itself_and_hands_over_what_was_written_meanwhile() -> None:
    world = World()
    world.shared.away = True
    await world.here.update("spill", put({"rows": 7}), ttl=60)
    world.shared.away = False
    world.now += 2
    assert await world.here.get("spill") == {"rows": 7}
    assert await world.there.get("spill") == {"rows": 7}
    world.now += 59
    assert await world.there.get("spill") is None, "with the time that was left to it"


async def test_what_the_shared_store_has_itself_counts() -> None:
    world = World()
    await world.there.update("k", put("shared"))
    world.shared.away = True
    await world.here.update("k", put("local"))
    world.shared.away = False
    world.now += 2
    assert await world.here.get("k") == "shared"


async def test_a_store_that_goes_away_in_the_middle_of_handing_over_loses_nothing() -> None:
    world = World()
    world.shared.away = True
    await world.here.update("k", put(1))
    world.now += 2
    await world.here.get("k")
    world.shared.away = False
    world.now += 2
    assert await world.here.get("k") == 1


async def test_going_and_coming_are_each_told_once() -> None:
    world = World()
    world.shared.away = True
    for _ in range(3):
        await world.here.get("k")
        world.now += 2
    world.shared.away = False
    for _ in range(3):
        await world.here.get("k")
    told = [(e.available, e.reason) for e in world.events if isinstance(e, StoreStateChanged)]
    assert told == [(False, "away"), (True, None)]


async def test_while_alone_a_replica_hears_its_own_messages() -> None:
    world = World()
    world.shared.away = True
    with anyio.fail_after(5):
        async with world.here.subscribe("t") as messages:
            await world.here.publish("t", "mine")
            assert await anext(messages) == "mine"


async def test_an_error_in_the_subscribers_block_comes_out_as_it_is() -> None:
    world = World()
    with pytest.raises(KeyError):
        async with world.here.subscribe("t"):
            raise KeyError("mine")


async def test_a_change_that_raises_is_no_failure_of_the_store() -> None:
    world = World()
    with pytest.raises(ZeroDivisionError):
        await world.here.update("k", lambda _: 1 / 0)
    assert world.here.is_shared


async def test_a_real_redis_that_is_stopped_and_started_again(own_redis: RedisServer) -> None:
    redis = RedisStore.from_url(f"redis://{own_redis.address}")
    store = FallbackStore(redis, retry=0.01)
    with anyio.fail_after(30):
        async with store.subscribe("t") as messages:
            await store.update("k", put("before"))
            own_redis.stop()
            assert await store.update("n", add_one) == 1
            await store.publish("t", "while alone")
            assert await anext(messages) == "while alone"
            own_redis.start()
            while not store.is_shared:
                await store.get("n")
            assert await redis.get("n") == 1, "handed over"
            assert await anext(messages) is None, "the subscription says that it was interrupted"
            await store.publish("t", "together again")
            assert await anext(messages) == "together again"
    await redis.aclose()


async def test_a_wall_clock_that_is_set_back_does_not_keep_the_store_unused() -> None:
    shared = Shared(lambda: 0.0)
    wall = 100_000.0
    store = FallbackStore(shared, retry=0.01, wall_clock=lambda: wall)
    shared.away = True
    await store.get("k")
    shared.away = False
    wall -= 3_600
    with anyio.fail_after(5):
        while not store.is_shared:
            await anyio.sleep(0.01)
            await store.get("k")
    await store.update("k", lambda _: "kept")
    assert await shared.get("k") == "kept", "the shared store is in use again"
