"""A store in Redis or Valkey, shared by all replicas, and a client for it from one URL.

    redis://user:password@host:6379/0        rediss:// for TLS, unix:// for a socket
    redis+cluster://host:6379                rediss+cluster://
    redis+sentinel://host:26379,host:26379/service/0

Query parameters are those of `redis-py` (`?ssl_ca_certs=...&socket_timeout=1`).

An update reads the value, applies the pure change here, and swaps the bytes if nobody else did so
in the meantime; otherwise it starts again from what the other writer stored. So every rule is
written once, in Python. A connection that breaks in the middle of a swap can make the change apply
twice.
"""

from __future__ import annotations

import logging
import random as _random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple, TypeAlias, cast
from urllib.parse import urlsplit, urlunsplit

import anyio
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.client import PubSub
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import RedisClusterException, RedisError
from redis.exceptions import TimeoutError as RedisTimeout

from pegboard.core.json import Json
from pegboard.errors import ConfigError, StoreError
from pegboard.ports import Change
from pegboard.store.encoding import check_ttl, decode, encode

Client: TypeAlias = Redis | RedisCluster


class RedisConnection(NamedTuple):
    """A client, and what it needs beside it until it is closed."""

    client: Client
    sentinel: Sentinel | None = None


_SENTINEL_PORT = 26379


def connect_redis(url: str) -> RedisConnection:
    """A client that connects on its first use. Raises `ConfigError` for a URL it cannot read."""
    scheme, _, variant = urlsplit(url).scheme.partition("+")
    try:
        if variant == "cluster":
            return RedisConnection(RedisCluster.from_url(_with_scheme(url, scheme), **_timeouts()))
        if variant == "sentinel":
            return _behind_sentinels(url, scheme)
        if not variant:
            return RedisConnection(Redis.from_url(url, **_timeouts()))
    except ValueError as exc:
        raise ConfigError(f"The address of the Redis store cannot be read: {exc}") from exc
    raise ConfigError(
        f"Unknown kind of Redis store {scheme}+{variant!r}: use redis://, rediss://, unix://, "
        "redis+cluster:// or redis+sentinel://."
    )


def _timeouts() -> dict[str, Any]:
    """A store that hangs must not hang the calls: a second or two, then `StoreError`."""
    return {
        "socket_timeout": 2.0,
        "socket_connect_timeout": 1.0,
        "health_check_interval": 15,
        "retry": Retry(ExponentialWithJitterBackoff(base=0.01, cap=0.1), 2),
    }


def _behind_sentinels(url: str, scheme: str) -> RedisConnection:
    parts = urlsplit(url)
    login, _, hosts = parts.netloc.rpartition("@")
    service, _, database = parts.path.strip("/").partition("/")
    if not service:
        raise ValueError("redis+sentinel:// needs the service's name, as in //host:26379/mymaster")
    plain = parts._replace(
        scheme=scheme, netloc=f"{login}@x" if login else "x", path=f"/{database}"
    )
    options = _timeouts() | cast("dict[str, Any]", parse_url(urlunsplit(plain)))
    options.pop("host", None)
    if options.pop("connection_class", None):
        options["ssl"] = True
    sentinel = Sentinel([_address(h) for h in hosts.split(",")], **options)
    return RedisConnection(sentinel.master_for(service), sentinel)


def _address(host: str) -> tuple[str, int]:
    parts = urlsplit(f"//{host}")
    if not parts.hostname:
        raise ValueError(f"{host!r} is not the address of a sentinel")
    return parts.hostname, parts.port or _SENTINEL_PORT


def _with_scheme(url: str, scheme: str) -> str:
    return urlunsplit(urlsplit(url)._replace(scheme=scheme))


logger = logging.getLogger(__name__)

_SWAP = """
local current = redis.call('GET', KEYS[1]) or ''
if current ~= ARGV[1] then return current end
if ARGV[2] == '' then redis.call('DEL', KEYS[1])
elseif ARGV[3] == '' then redis.call('SET', KEYS[1], ARGV[2])
else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return false
"""
"""Compare and set: nothing comes back when it was done, what is there now when it was not."""

_NOTHING = b""
"""No JSON text is empty, so this stands for "no value"."""

_ATTEMPTS = 100
_AT_ONCE = 32
"""Commands under way; the client keeps a connection for each and refuses beyond a hundred."""

_PATIENCE = 5.0
_PAUSE = 0.2
_AWAY = (RedisError, RedisClusterException, OSError)

Sleep = Callable[[float], Awaitable[None]]


class RedisStore:
    """Keeps values under `prefix`. Belongs to one event loop; close it with `aclose`."""

    def __init__(
        self,
        connected: RedisConnection,
        *,
        prefix: str = "pegboard:",
        random: Callable[[], float] = _random.random,
        sleep: Sleep = anyio.sleep,
    ) -> None:
        self._client: Any = connected.client  # its commands are typed for sync and async at once
        self._sentinel = connected.sentinel
        self._swap = self._client.register_script(_SWAP)
        self._turn = anyio.Semaphore(_AT_ONCE, fast_acquire=True)
        self._prefix = prefix
        self._random = random
        self._sleep = sleep

    @classmethod
    def from_url(cls, url: str, *, prefix: str = "pegboard:") -> RedisStore:
        """A store at any address that `redis_urls` reads. Raises `ConfigError`."""
        return cls(connect_redis(url), prefix=prefix)

    async def get(self, key: str) -> Json:
        """The value, or `None`."""
        data = await self._read(key)
        return _value(key, data) if data else None

    async def update(self, key: str, change: Change, *, ttl: float | None = None) -> Json:
        """Apply a pure change atomically and return the new value."""
        expiry = "" if check_ttl(ttl) is None else max(1, round((ttl or 0) * 1000))
        known = await self._read(key)
        for attempt in range(_ATTEMPTS):
            value = change(_value(key, known) if known else None)
            data = _NOTHING if value is None else encode(value)
            found = await self._ask(self._swap, [self._prefix + key], [known, data, expiry])
            if found is None:
                return decode(data) if data else None
            known = found
            await self._sleep(self._random() * min(0.05, 0.001 * 2**attempt))
        raise StoreError(
            f"{key!r} changed {_ATTEMPTS} times while it was being updated. Try again.", key=key
        )

    async def publish(self, topic: str, message: Json) -> None:
        """Tell every subscriber of the topic, in every replica."""
        await self._ask(self._client.publish, self._prefix + topic, encode(message))

    @asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncGenerator[AsyncIterator[Json], None]:
        """The topic's messages from the moment the block is entered."""
        subscription = _Subscription(self._client, self._prefix + topic, self._sleep)
        try:
            with _border():
                await subscription.begin()
            yield subscription
        finally:
            with anyio.CancelScope(shield=True):
                await subscription.end()

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()
        for sentinel in self._sentinel.sentinels if self._sentinel else ():
            await sentinel.aclose()

    async def _read(self, key: str) -> bytes:
        return await self._ask(self._client.get, self._prefix + key) or _NOTHING

    async def _ask(self, command: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """The server's answer, when it is this command's turn."""
        with _border():
            async with self._turn:
                return await command(*arguments)


class _Subscription:
    """One channel's messages; subscribes again after a broken connection and says so by `None`."""

    def __init__(self, client: Any, channel: str, sleep: Sleep) -> None:
        self._client = client
        self._channel = channel
        self._sleep = sleep
        self._pubsub: PubSub | None = None

    async def begin(self) -> None:
        """Subscribe, and wait until the server has confirmed it."""
        await (
            self._client.initialize()
        )  # a cluster's client must know the nodes before it subscribes
        self._pubsub = pubsub = self._client.pubsub()
        await pubsub.subscribe(self._channel)
        if await pubsub.get_message(timeout=_PATIENCE) is None:
            raise RedisTimeout(f"no answer to SUBSCRIBE within {_PATIENCE} s")

    async def end(self) -> None:
        pubsub, self._pubsub = self._pubsub, None
        if pubsub is not None:
            await pubsub.aclose()

    def __aiter__(self) -> AsyncIterator[Json]:
        return self

    async def __anext__(self) -> Json:
        while True:
            try:
                if self._pubsub is None:
                    await self.begin()
                    return None
                message = await self._pubsub.get_message(timeout=_PATIENCE)
            except _AWAY:
                await self.end()
                await self._sleep(_PAUSE)
                continue
            match message:
                case {"type": "message", "data": bytes(data)}:
                    return self._decoded(data)
                case {"type": "subscribe"}:  # the client connected again by itself
                    return None
                case _:
                    continue

    def _decoded(self, data: bytes) -> Json:
        """The message, or `None` for one that is not ours: anybody can publish on a channel."""
        try:
            return decode(data)
        except (ValueError, RecursionError):
            logger.warning("A message on %s is not JSON and is ignored.", self._channel)
            return None


@contextmanager
def _border() -> Generator[None, None, None]:
    """Foreign exceptions become ours."""
    try:
        yield
    except _AWAY as exc:
        raise StoreError(f"The Redis store failed ({type(exc).__name__}: {exc}).") from exc


def _value(key: str, data: bytes) -> Json:
    try:
        return decode(data)
    except (ValueError, RecursionError) as exc:
        raise StoreError(
            f"Redis holds something that is not ours at {key!r}: give this board its own prefix.",
            key=key,
        ) from exc
