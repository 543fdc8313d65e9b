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
from pegboard.store.memory import check_ttl, decode, encode

logger = logging.getLogger(__name__)

Client: TypeAlias = Redis | RedisCluster

_SENTINEL_PORT = 26379


class RedisConnection(NamedTuple):
    """A client, and the sentinels that it needs until it is closed."""

    client: Client
    sentinel: Sentinel | None = None


def connect_redis(url: str) -> RedisConnection:
    """A client that connects on first use. Raises `ConfigError` for an invalid URL."""
    scheme, _, variant = urlsplit(url).scheme.partition("+")
    try:
        if variant == "cluster":
            plain = urlunsplit(urlsplit(url)._replace(scheme=scheme))
            return RedisConnection(RedisCluster.from_url(plain, **_timeouts()))
        if variant == "sentinel":
            return _connect_sentinels(url, scheme)
        if not variant:
            return RedisConnection(Redis.from_url(url, **_timeouts()))
    except ValueError as exc:
        raise ConfigError(f"The URL of the Redis store is not valid: {exc}") from exc
    raise ConfigError(
        f"Unknown scheme of a Redis store {scheme}+{variant!r}: use redis://, rediss://, unix://, "
        "redis+cluster:// or redis+sentinel://."
    )


def _timeouts() -> dict[str, Any]:
    """A store that hangs must not hang the calls: `StoreError` after a second or two."""
    return {
        "socket_timeout": 2.0,
        "socket_connect_timeout": 1.0,
        "health_check_interval": 15,
        "retry": Retry(ExponentialWithJitterBackoff(base=0.01, cap=0.1), 2),
    }


def _connect_sentinels(url: str, scheme: str) -> RedisConnection:
    parts = urlsplit(url)
    login, _, hosts = parts.netloc.rpartition("@")
    service, _, database = parts.path.strip("/").partition("/")
    if not service:
        raise ValueError("redis+sentinel:// needs a service name, as in //host:26379/mymaster")
    # Without the hosts, of which `redis-py` would accept only one.
    plain = parts._replace(
        scheme=scheme, netloc=f"{login}@x" if login else "x", path=f"/{database}"
    )
    options = _timeouts() | cast("dict[str, Any]", parse_url(urlunsplit(plain)))
    options.pop("host", None)  # the sentinels say where the master is
    if options.pop("connection_class", None):
        options["ssl"] = True
    addresses: list[tuple[str, int]] = []
    for host in hosts.split(","):
        address = urlsplit(f"//{host}")  # handles IPv6 addresses in brackets
        if not address.hostname:
            raise ValueError(f"{host!r} is not the address of a sentinel")
        addresses.append((address.hostname, address.port or _SENTINEL_PORT))
    sentinel = Sentinel(addresses, **options)
    return RedisConnection(sentinel.master_for(service), sentinel)


_SWAP = """
local current = redis.call('GET', KEYS[1]) or ''
if current ~= ARGV[1] then return current end
if ARGV[2] == '' then redis.call('DEL', KEYS[1])
elseif ARGV[3] == '' then redis.call('SET', KEYS[1], ARGV[2])
else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return false
"""
"""Compare and set: returns nothing if it was done, otherwise the current value."""

_NOTHING = b""
"""Stands for "no value", since no JSON text is empty."""

_ATTEMPTS = 100
_MAX_COMMANDS = 32
"""Concurrent commands; the client opens a connection for each and fails beyond a hundred."""

_SUBSCRIBE_TIMEOUT = 5.0
_RECONNECT_PAUSE = 0.2
_FAILURES = (RedisError, RedisClusterException, OSError)

Sleep = Callable[[float], Awaitable[None]]


class RedisStore:
    """Stores values under `prefix`. Belongs to one event loop; close it with `aclose`."""

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
        self._turn = anyio.Semaphore(_MAX_COMMANDS, fast_acquire=True)
        self._prefix = prefix
        self._random = random
        self._sleep = sleep

    @classmethod
    def from_url(cls, url: str, *, prefix: str = "pegboard:") -> RedisStore:
        """A store at any URL in the forms above. Raises `ConfigError`."""
        return cls(connect_redis(url), prefix=prefix)

    async def get(self, key: str) -> Json:
        """The value, or `None`."""
        data = await self._read(key)
        return _decode_value(key, data) if data else None

    async def update(self, key: str, change: Change, *, ttl: float | None = None) -> Json:
        """Apply a pure change atomically and return the new value."""
        # `PX` takes whole milliseconds, and rejects 0.
        expiry = "" if check_ttl(ttl) is None else max(1, round((ttl or 0) * 1000))
        known = await self._read(key)
        # Optimistic: contention on one key is rare, and the loser starts from the winner's value.
        for attempt in range(_ATTEMPTS):
            value = change(_decode_value(key, known) if known else None)
            data = _NOTHING if value is None else encode(value)
            found = await self._run(self._swap, [self._prefix + key], [known, data, expiry])
            if found is None:
                return decode(data) if data else None
            known = found
            # Random pauses, so that replicas that collided do not collide again.
            await self._sleep(self._random() * min(0.05, 0.001 * 2**attempt))
        raise StoreError(
            f"{key!r} changed {_ATTEMPTS} times while it was being updated. Try again.", key=key
        )

    async def publish(self, topic: str, message: Json) -> None:
        """Send a message to every subscriber of the topic, in every replica."""
        await self._run(self._client.publish, self._prefix + topic, encode(message))

    @asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncGenerator[AsyncIterator[Json], None]:
        """The topic's messages from the moment the block is entered."""
        subscription = _Subscription(self._client, self._prefix + topic, self._sleep)
        try:
            with _translate_errors():
                await subscription.begin()
            yield subscription
        finally:
            # Shielded, or the connection of a canceled reader would stay subscribed.
            with anyio.CancelScope(shield=True):
                await subscription.end()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()
        for sentinel in self._sentinel.sentinels if self._sentinel else ():
            await sentinel.aclose()

    async def _read(self, key: str) -> bytes:
        return await self._run(self._client.get, self._prefix + key) or _NOTHING

    async def _run(self, command: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """The answer to a command, with a limit on concurrent ones."""
        with _translate_errors():
            async with self._turn:
                return await command(*arguments)


class _Subscription:
    """The messages of one channel; a `None` after a reconnect says that some may be missing."""

    def __init__(self, client: Any, channel: str, sleep: Sleep) -> None:
        self._client = client
        self._channel = channel
        self._sleep = sleep
        self._pubsub: PubSub | None = None

    async def begin(self) -> None:
        """Subscribe, and wait until the server has confirmed it."""
        # A cluster's client must know the nodes before it subscribes.
        await self._client.initialize()
        self._pubsub = pubsub = self._client.pubsub()
        await pubsub.subscribe(self._channel)
        # Without the confirmation, a message published right now could be missed.
        if await pubsub.get_message(timeout=_SUBSCRIBE_TIMEOUT) is None:
            raise RedisTimeout(f"no answer to SUBSCRIBE within {_SUBSCRIBE_TIMEOUT} s")

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
                message = await self._pubsub.get_message(timeout=_SUBSCRIBE_TIMEOUT)
            except _FAILURES:
                await self.end()
                await self._sleep(_RECONNECT_PAUSE)
                continue
            match message:
                case {"type": "message", "data": bytes(data)}:
                    try:
                        return decode(data)
                    except (ValueError, RecursionError):  # anybody can publish on a channel
                        channel = self._channel
                        logger.warning("A message on %s is not JSON and is ignored.", channel)
                        return None
                case {"type": "subscribe"}:  # the client has reconnected by itself
                    return None
                case _:
                    continue


@contextmanager
def _translate_errors() -> Generator[None, None, None]:
    """Turn exceptions of the client into ours."""
    try:
        yield
    except _FAILURES as exc:
        raise StoreError(f"The Redis store failed ({type(exc).__name__}: {exc}).") from exc


def _decode_value(key: str, data: bytes) -> Json:
    try:
        return decode(data)
    except (ValueError, RecursionError) as exc:
        raise StoreError(
            f"Redis has a value of another program at {key!r}: give this board its own prefix.",
            key=key,
        ) from exc
