from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from uuid import uuid4

import anyio
import pytest
from redis.asyncio import Redis
from tests.real_redis import RedisServer

from pegboard.core.json import Json
from pegboard.errors import ConfigError, StoreError
from pegboard.store.redis import RedisStore, connect_redis

pytestmark = pytest.mark.anyio


def put(value: Json) -> Callable[[Json], Json]:
    return lambda _: value


def add_one(value: Json) -> Json:
    return (value or 0) + 1


Open = Callable[..., RedisStore]


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    """A way to open stores that are closed after the test."""
    async with AsyncExitStack() as stack:

        def open_store(url: str, prefix: str | None = None) -> RedisStore:
            store = RedisStore.from_url(url, prefix=prefix or f"{uuid4().hex}:")
            stack.push_async_callback(store.aclose)
            return store

        yield open_store


async def test_boards_with_different_prefixes_do_not_see_each_other(
    redis_server: RedisServer, opened: Open
) -> None:
    one = opened(f"redis://{redis_server.address}", prefix="one:")
    two = opened(f"redis://{redis_server.address}", prefix="two:")
    await one.update("k", put(1))
    assert await two.get("k") is None
    with anyio.fail_after(5):
        async with two.subscribe("t") as messages:
            await one.publish("t", "not for you")
            await two.publish("t", "for you")
            assert await anext(messages) == "for you"


async def test_foreign_data_under_our_key_is_a_clear_error(
    redis_server: RedisServer, opened: Open
) -> None:
    store = opened(f"redis://{redis_server.address}", prefix="foreign:")
    redis_server.command("SET", "foreign:k", "<html>")
    redis_server.command("LPUSH", "foreign:list", "x")
    with pytest.raises(StoreError, match="its own prefix"):
        await store.get("k")
    with pytest.raises(StoreError, match="its own prefix"):
        await store.update("k", put(1))
    with pytest.raises(StoreError, match="wrong kind of value"):
        await store.get("list")


async def test_a_forgotten_script_is_loaded_again(redis_server: RedisServer, opened: Open) -> None:
    store = opened(f"redis://{redis_server.address}")
    await store.update("k", add_one)
    redis_server.command("SCRIPT", "FLUSH")
    assert await store.update("k", add_one) == 2


async def test_an_absent_redis_is_a_store_error_everywhere(opened: Open) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        store = opened(f"redis://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(StoreError):
            await store.get("k")
        with pytest.raises(StoreError):
            await store.update("k", put(1))
        with pytest.raises(StoreError):
            await store.publish("t", 1)
        with pytest.raises(StoreError):
            async with store.subscribe("t"):
                pass


async def test_a_redis_that_accepts_and_never_answers_is_a_store_error_in_bounded_time(
    opened: Open,
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        store = opened(f"redis://127.0.0.1:{silent.getsockname()[1]}?socket_timeout=0.1")
        with anyio.fail_after(10), pytest.raises(StoreError):
            await store.get("k")


async def test_a_store_works_again_by_itself_when_redis_is_back(
    own_redis: RedisServer, opened: Open
) -> None:
    store = opened(f"redis://{own_redis.address}")
    await store.update("k", put(1))
    own_redis.stop()
    with pytest.raises(StoreError):
        await store.get("k")
    own_redis.start()
    assert await store.update("k", add_one) == 1, "this Redis keeps nothing over a restart"


async def test_a_subscription_outlives_a_restart_and_says_that_it_may_have_missed_something(
    own_redis: RedisServer, opened: Open
) -> None:
    store = opened(f"redis://{own_redis.address}")
    with anyio.fail_after(20):
        async with store.subscribe("t") as messages:
            await store.publish("t", "before")
            assert await anext(messages) == "before"
            own_redis.stop()
            own_redis.start()
            assert await anext(messages) is None
            await store.publish("t", "after")
            assert await anext(messages) == "after"


async def test_a_subscription_goes_on_trying_while_redis_is_away(own_redis: RedisServer) -> None:
    tried = anyio.Event()

    async def sleep(seconds: float) -> None:
        tried.set()
        await anyio.sleep(0.01)

    store = RedisStore(connect_redis(f"redis://{own_redis.address}"), sleep=sleep)
    heard: list[Json] = []
    with anyio.fail_after(20):
        async with store.subscribe("t") as messages, anyio.create_task_group() as tasks:

            async def listen() -> None:
                heard.append(await anext(messages))

            own_redis.stop()
            tasks.start_soon(listen)
            await tried.wait()
            own_redis.start()
    assert heard == [None]
    await store.aclose()


async def test_a_value_that_changes_all_the_time_is_an_error_in_the_end(
    redis_server: RedisServer, opened: Open
) -> None:
    store = opened(f"redis://{redis_server.address}", prefix="contended:")
    seen: list[Json] = []

    def overtaken(value: Json) -> Json:
        seen.append(value)
        redis_server.command("SET", "contended:k", str(len(seen)))
        return "mine"

    with pytest.raises(StoreError, match="while it was being updated"):
        await store.update("k", overtaken)
    assert seen[:3] == [None, 1, 2]


async def test_a_wrong_password_is_a_store_error_that_does_not_show_it(
    redis_server: RedisServer, opened: Open
) -> None:
    store = opened(f"redis://somebody:hunter2@{redis_server.address}")
    with pytest.raises(StoreError) as caught:
        await store.get("k")
    assert "hunter2" not in str(caught.value)


async def test_tls_and_login_reach_the_connections_behind_a_sentinel() -> None:
    connected = connect_redis("rediss+sentinel://ann:pw@h1:1,h2/board/3?socket_timeout=9")
    client = connected.client
    assert isinstance(client, Redis)
    options = client.connection_pool.connection_kwargs
    assert (options["username"], options["password"], options["db"]) == ("ann", "pw", 3)
    assert options["socket_timeout"] == 9
    assert "SSL" in client.connection_pool.connection_class.__name__
    await client.aclose()


@pytest.mark.parametrize(
    "url",
    ["http://x", "redis+magic://x", "redis+sentinel://host:1", "redis+sentinel:///service", "x"],
)
def test_an_address_that_cannot_be_read_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigError, match=r"redis|sentinel"):
        connect_redis(url)
