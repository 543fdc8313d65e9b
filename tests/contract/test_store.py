"""What every store promises, held against each of them; two handles stand for two replicas."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar
from uuid import uuid4

import anyio
import anyio.lowlevel
import pytest

from pegboard.core.json import Json
from pegboard.ports import Records, Store
from pegboard.store.fallback import FallbackStore
from pegboard.store.files import FileRecords
from pegboard.store.memory import MemoryStore
from pegboard.store.redis import RedisStore

pytestmark = pytest.mark.anyio


T = TypeVar("T")


@dataclass(frozen=True)
class Pair(Generic[T]):
    """Two stores on one state."""

    here: T
    there: T


Replicas: TypeAlias = Pair[Records]
Stores: TypeAlias = Pair[Store]


ADDRESSES = {
    "redis": ("redis_server", "redis://{}/0"),
    "redis cluster": ("redis_cluster", "redis+cluster://{}"),
    "redis behind a sentinel": ("redis_sentinel", "redis+sentinel://{}/board/0"),
    "redis with a fallback": ("redis_server", "redis://{}/0"),
}


@pytest.fixture(params=["memory", *ADDRESSES])
async def stores(request: pytest.FixtureRequest) -> AsyncIterator[Stores]:
    """Stores that also carry messages."""
    async with _open_stores(request) as pair:
        yield pair


@asynccontextmanager
async def _open_stores(request: pytest.FixtureRequest) -> AsyncGenerator[Stores]:
    if request.param == "memory":
        store = MemoryStore()
        yield Stores(store, store)
        return
    fixture, url = ADDRESSES[request.param]
    address = url.format(request.getfixturevalue(fixture).address)
    prefix = f"{uuid4().hex}:"
    here, there = (RedisStore.from_url(address, prefix=prefix) for _ in range(2))
    if "fallback" in request.param:
        yield Stores(FallbackStore(here), FallbackStore(there))
    else:
        yield Stores(here, there)
    await here.aclose()
    await there.aclose()


@pytest.fixture(params=["files", "memory", *ADDRESSES])
async def replicas(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Replicas]:
    if request.param == "files":
        yield Replicas(FileRecords(tmp_path / "runs"), FileRecords(tmp_path / "runs"))
        return
    async with _open_stores(request) as pair:
        yield Replicas(pair.here, pair.there)


def put(value: Json) -> Callable[[Json], Json]:
    return lambda _: value


def add_one(value: Json) -> Json:
    return (value or 0) + 1


async def test_what_was_never_written_is_none(replicas: Replicas) -> None:
    assert await replicas.here.get("k") is None


async def test_an_update_returns_the_new_value_and_every_replica_sees_it(
    replicas: Replicas,
) -> None:
    assert await replicas.here.update("k", put({"a": [1, None]})) == {"a": [1, None]}
    assert await replicas.there.get("k") == {"a": [1, None]}


async def test_a_change_is_given_what_is_there(replicas: Replicas) -> None:
    await replicas.here.update("k", put([1]))
    assert await replicas.there.update("k", lambda old: [*old, 2]) == [1, 2]


async def test_a_change_to_none_removes_the_value(replicas: Replicas) -> None:
    await replicas.here.update("k", put("x"))
    assert await replicas.here.update("k", put(None)) is None
    assert await replicas.there.get("k") is None


async def test_removing_what_is_not_there_does_nothing(replicas: Replicas) -> None:
    assert await replicas.here.update("k", put(None)) is None


@pytest.mark.parametrize(
    "value",
    [0, False, "", [], {}, 2**60, -1.5, "ü€😀", "\ud800 alone", "line\nbreak\x00", {"": [{}]}],
    ids=repr,
)
async def test_any_json_value_comes_back_as_it_was(replicas: Replicas, value: Json) -> None:
    await replicas.here.update("k", put(value))
    assert await replicas.there.get("k") == value


async def test_a_large_value_comes_back_whole(replicas: Replicas) -> None:
    value = [{"id": n, "text": "x" * 1000} for n in range(2000)]
    await replicas.here.update("k", put(value))
    assert await replicas.there.get("k") == value


@pytest.mark.parametrize("key", ["", "a b", "a\nb", "breaker:tool:ü", "{curly}", "*", "x" * 2000])
async def test_any_text_is_a_key(replicas: Replicas, key: str) -> None:
    await replicas.here.update(key, put(1))
    assert await replicas.there.get(key) == 1
    assert await replicas.there.get(key + "?") is None


async def test_nobody_holds_a_reference_into_the_store(replicas: Replicas) -> None:
    mine = {"list": [1]}
    returned = await replicas.here.update("k", put(mine))
    mine["list"].append(2)
    returned["list"].append(3)
    (await replicas.here.get("k"))["list"].append(4)
    assert await replicas.here.get("k") == {"list": [1]}


async def test_a_change_that_raises_leaves_the_value_as_it_was(replicas: Replicas) -> None:
    await replicas.here.update("k", put(1))
    with pytest.raises(ZeroDivisionError):
        await replicas.here.update("k", lambda old: old / 0)
    assert await replicas.here.get("k") == 1


async def test_a_value_that_is_not_json_is_refused_and_the_old_one_stays(
    replicas: Replicas,
) -> None:
    await replicas.here.update("k", put(1))
    with pytest.raises(TypeError):
        await replicas.here.update("k", put({1, 2}))
    assert await replicas.here.get("k") == 1


async def test_a_value_nested_too_deeply_is_refused(replicas: Replicas) -> None:
    deep: Json = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="too deeply"):
        await replicas.here.update("k", put(deep))
    assert await replicas.here.get("k") is None


async def test_no_update_is_lost_when_many_tasks_and_replicas_write_at_once(
    replicas: Replicas,
) -> None:
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for n in range(60):
                store = replicas.here if n % 2 else replicas.there
                tasks.start_soon(store.update, "k", add_one)
    assert await replicas.here.get("k") == 60


async def test_hundreds_of_tasks_may_use_a_store_at_once(replicas: Replicas) -> None:
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for n in range(500):
                tasks.start_soon(replicas.here.update, f"k{n}", add_one)
    assert [await replicas.there.get(f"k{n}") for n in (0, 250, 499)] == [1, 1, 1]


async def test_a_value_is_gone_when_its_time_is_over(replicas: Replicas) -> None:
    assert await replicas.here.update("k", put(1), ttl=0.05) == 1
    await gone(replicas.there, "k")
    assert await replicas.here.update("k", add_one) == 1


async def test_every_update_sets_the_time_anew_and_without_one_the_value_stays(
    replicas: Replicas,
) -> None:
    await replicas.here.update("short", put(1), ttl=0.05)
    await replicas.here.update("stays", put(1), ttl=0.05)
    await replicas.here.update("longer", put(1), ttl=0.05)
    await replicas.here.update("stays", put(2))
    await replicas.here.update("longer", put(2), ttl=600)
    await gone(replicas.here, "short")
    assert await replicas.here.get("stays") == 2
    assert await replicas.here.get("longer") == 2


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf")])
async def test_a_time_to_live_that_makes_no_sense_is_refused(
    replicas: Replicas, ttl: float
) -> None:
    with pytest.raises(ValueError, match="positive"):
        await replicas.here.update("k", put(1), ttl=ttl)
    assert await replicas.here.get("k") is None


async def test_a_message_reaches_every_subscriber_in_every_replica_in_order(
    stores: Stores,
) -> None:
    with anyio.fail_after(10):
        async with (
            stores.here.subscribe("lists") as first,
            stores.there.subscribe("lists") as second,
        ):
            for n in range(3):
                await stores.here.publish("lists", {"n": n})
            for messages in (first, second):
                assert [await anext(messages) for _ in range(3)] == [{"n": 0}, {"n": 1}, {"n": 2}]


async def test_a_subscriber_hears_its_own_topic_only_and_nothing_from_before(
    stores: Stores,
) -> None:
    with anyio.fail_after(10):
        await stores.here.publish("a", "too early")
        async with stores.there.subscribe("a") as messages:
            await stores.here.publish("b", "another topic")
            await stores.here.publish("a", "mine")
            assert await anext(messages) == "mine"


async def test_publishing_without_any_subscriber_is_no_error(stores: Stores) -> None:
    await stores.here.publish("nobody", 1)
    assert await stores.here.get("nobody") is None


async def test_a_wait_for_messages_can_be_given_up_and_taken_up_again(stores: Stores) -> None:
    with anyio.fail_after(10):
        async with stores.there.subscribe("a") as messages:
            with anyio.move_on_after(0.05) as scope:
                await anext(messages)
            assert scope.cancelled_caught
            await stores.here.publish("a", "later")
            assert await anext(messages) == "later"


async def gone(store: Records, key: str) -> None:
    """Return when the value is no longer there."""
    with anyio.fail_after(5):
        while await store.get(key) is not None:
            await anyio.lowlevel.checkpoint()
