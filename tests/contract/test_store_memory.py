from __future__ import annotations

import threading
from collections.abc import Callable

import anyio
import pytest

from pegboard.core.json import Json
from pegboard.errors import StoreError
from pegboard.store.memory import MemoryStore

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def put(value: Json) -> Callable[[Json], Json]:
    return lambda _: value


def add_one(value: Json) -> Json:
    return (value or 0) + 1


async def test_when_full_what_was_used_longest_ago_makes_room() -> None:
    store = MemoryStore(max_entries=3)
    for key in "abc":
        await store.update(key, put(key))
    await store.get("a")
    await store.update("d", put("d"))
    assert [k for k in "abcd" if await store.get(k)] == ["a", "c", "d"]


async def test_when_full_what_has_expired_goes_before_what_is_still_wanted() -> None:
    clock = Clock()
    store = MemoryStore(max_entries=3, clock=clock)
    await store.update("old", put(1))
    await store.update("expired", put(2), ttl=5)
    await store.update("new", put(3))
    clock.now += 6
    await store.update("one more", put(4))
    assert len(store) == 3
    assert await store.get("old") == 1


async def test_a_rewritten_value_lives_by_its_last_time_to_live() -> None:
    clock = Clock()
    store = MemoryStore(max_entries=2, clock=clock)
    await store.update("a", put(1), ttl=5)
    await store.update("a", put(2), ttl=500)
    clock.now += 6
    await store.update("b", put(3))
    await store.update("c", put(4))
    assert await store.get("a") is None, "evicted as the least recently used"
    await store.update("c", put(5), ttl=500)
    clock.now += 6
    assert await store.get("c") == 5


async def test_the_bytes_kept_never_exceed_the_bound() -> None:
    store = MemoryStore(max_bytes=1000)
    for n in range(50):
        await store.update(f"k{n}", put("x" * 90))
        assert store.used_bytes <= 1000
    assert len(store) == 10
    assert await store.get("k49") == "x" * 90


async def test_a_value_larger_than_the_store_is_refused_and_displaces_nothing() -> None:
    store = MemoryStore(max_bytes=1000)
    await store.update("k", put("small"))
    with pytest.raises(StoreError, match="Raise its limit or store less"):
        await store.update("k", put("x" * 2000))
    assert await store.get("k") == "small"


async def test_memory_is_given_back_when_everything_is_removed() -> None:
    store = MemoryStore()
    for n in range(100):
        await store.update(str(n), put([n]), ttl=60)
    for n in range(100):
        await store.update(str(n), put(None))
    assert (len(store), store.used_bytes) == (0, 0)


async def test_rewriting_one_key_for_ever_does_not_grow_the_store() -> None:
    store = MemoryStore()
    for _ in range(5000):
        await store.update("k", add_one, ttl=60)
    assert await store.get("k") == 5000
    assert len(store._expiries) < 100  # pyright: ignore[reportPrivateUsage] the bound itself


async def test_no_update_is_lost_between_threads() -> None:
    store = MemoryStore()

    async def write() -> None:
        for _ in range(200):
            await store.update("k", add_one)

    threads = [threading.Thread(target=anyio.run, args=(write,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert await store.get("k") == 1600


async def test_a_reader_too_slow_is_told_that_it_missed_something() -> None:
    store = MemoryStore()
    async with store.subscribe("t") as messages:
        for n in range(300):
            await store.publish("t", n)
        with anyio.fail_after(5):
            first = await anext(messages)
            rest = [await anext(messages) for _ in range(300 - 257)]
    assert first is None
    assert rest == list(range(257, 300))


async def test_subscribers_get_copies_of_their_own() -> None:
    store = MemoryStore()
    async with store.subscribe("t") as first, store.subscribe("t") as second:
        await store.publish("t", [1])
        (await anext(first)).append(2)
        assert await anext(second) == [1]
