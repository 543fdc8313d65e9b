"""Caches: bounded, and for schemas expiring and counted."""

from __future__ import annotations

import random
from threading import Barrier, Thread

import pytest

from pegboard.core.caches import BoundedCache, SchemaCache
from pegboard.core.tools import Schemas


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def schemas(name: str) -> Schemas:
    return Schemas({"type": "object", "title": name})


def test_a_schema_is_generated_once_and_then_cached() -> None:
    made: list[str] = []

    def make() -> Schemas:
        made.append("a")
        return schemas("a")

    cache = SchemaCache(Clock())
    assert cache.get("a", make) is cache.get("a", make)
    assert made == ["a"]
    stats = cache.stats()
    assert (stats.hits, stats.misses, stats.size, stats.hit_rate) == (1, 1, 1, 0.5)


def test_an_empty_cache_has_a_hit_rate() -> None:
    assert SchemaCache(Clock()).stats().hit_rate == 0.0


def test_the_least_recently_used_schema_is_evicted_first() -> None:
    cache = SchemaCache(Clock(), capacity=2)
    first = cache.get("a", lambda: schemas("a"))
    cache.get("b", lambda: schemas("b"))
    assert cache.get("a", lambda: schemas("again")) is first
    cache.get("c", lambda: schemas("c"))
    assert cache.get("a", lambda: schemas("again")) is first
    assert cache.get("b", lambda: schemas("new b")).input["title"] == "new b"
    assert cache.stats().size == 2


def test_what_is_older_than_its_ttl_is_made_anew() -> None:
    clock = Clock()
    cache = SchemaCache(clock, ttl=300.0)
    first = cache.get("a", lambda: schemas("a"))
    clock.now = 299.9
    assert cache.get("a", lambda: schemas("late")) is first
    clock.now = 300.0
    assert cache.get("a", lambda: schemas("late")).input["title"] == "late"


def test_purging_drops_only_what_has_expired_and_says_how_many() -> None:
    clock = Clock()
    cache = SchemaCache(clock, ttl=10.0)
    cache.get("old", lambda: schemas("old"))
    clock.now = 5.0
    cache.get("young", lambda: schemas("young"))
    clock.now = 12.0
    assert cache.purge_expired() == 1
    assert cache.purge_expired() == 0
    assert cache.stats().size == 1


def test_forgetting_and_clearing() -> None:
    cache = SchemaCache(Clock())
    cache.get("a", lambda: schemas("a"))
    cache.get("b", lambda: schemas("b"))
    cache.forget("a")
    cache.forget("never there")
    assert cache.stats().size == 1
    cache.clear()
    stats = cache.stats()
    assert (stats.hits, stats.misses, stats.size) == (0, 0, 0)


def test_a_schema_that_cannot_be_generated_is_not_cached() -> None:
    cache = SchemaCache(Clock())

    def broken() -> Schemas:
        raise ValueError("no hints")

    with pytest.raises(ValueError, match="no hints"):
        cache.get("a", broken)
    assert cache.get("a", lambda: schemas("a")).input["title"] == "a"


def test_a_session_of_200_calls_over_20_tools_hits_more_than_four_times_in_five() -> None:
    """REQUIREMENTS A6: 200 calls, Zipf over 20 tools."""
    chance = random.Random(7)
    weights = [1 / rank for rank in range(1, 21)]
    cache = SchemaCache(Clock())
    for tool in chance.choices(range(20), weights=weights, k=200):
        cache.get(f"tool_{tool}", lambda: schemas("x"))
    assert cache.stats().hit_rate > 0.8


def test_many_threads_share_one_cache() -> None:
    cache = SchemaCache(Clock(), capacity=8)
    ready = Barrier(8)

    def work(seed: int) -> None:
        chance = random.Random(seed)
        ready.wait()
        for _ in range(500):
            key = str(chance.randrange(16))
            assert cache.get(key, lambda key=key: schemas(key)).input["title"] == key

    threads = [Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats = cache.stats()
    assert stats.hits + stats.misses == 8 * 500
    assert stats.size <= 8


def test_a_full_cache_evicts_the_least_recently_used_entry() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    assert cache.put("c", 3) == 3
    assert list(cache) == ["a", "c"]
    assert cache.get("b") is None
    assert len(cache) == 2


def test_writing_an_entry_again_counts_as_a_use() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.put("a", 3)
    cache.put("c", 4)
    assert cache.items() == [("a", 3), ("c", 4)]


def test_checking_for_an_entry_is_not_a_use() -> None:
    cache: BoundedCache[str, int] = BoundedCache(1)
    cache.put("a", 1)
    assert "a" in cache
    assert cache.pop("a") == 1
    assert cache.pop("a") is None
    assert "a" not in cache
    cache.put("b", 2)
    cache.clear()
    assert len(cache) == 0
