"""A Redis client from one URL: a single server, a cluster, or a service that sentinels look after.

    redis://user:password@host:6379/0        rediss:// for TLS, unix:// for a socket
    redis+cluster://host:6379                rediss+cluster://
    redis+sentinel://host:26379,host:26379/service/0

Query parameters are those of `redis-py` (`?ssl_ca_certs=...&socket_timeout=1`).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias, cast
from urllib.parse import urlsplit, urlunsplit

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import ExponentialWithJitterBackoff

from pegboard.errors import ConfigError

Client: TypeAlias = Redis | RedisCluster


class Connected(NamedTuple):
    """A client, and what it needs beside it until it is closed."""

    client: Client
    sentinel: Sentinel | None = None


_SENTINEL_PORT = 26379


def connect(url: str) -> Connected:
    """A client that connects on its first use. Raises `ConfigError` for a URL it cannot read."""
    scheme, _, variant = urlsplit(url).scheme.partition("+")
    try:
        if variant == "cluster":
            return Connected(RedisCluster.from_url(_with_scheme(url, scheme), **_patience()))
        if variant == "sentinel":
            return _behind_sentinels(url, scheme)
        if not variant:
            return Connected(Redis.from_url(url, **_patience()))
    except ValueError as exc:
        raise ConfigError(f"The address of the Redis store cannot be read: {exc}") from exc
    raise ConfigError(
        f"Unknown kind of Redis store {scheme}+{variant!r}: use redis://, rediss://, unix://, "
        "redis+cluster:// or redis+sentinel://."
    )


def _patience() -> dict[str, Any]:
    """A store that hangs must not hang the calls: a second or two, then `StoreError`."""
    return {
        "socket_timeout": 2.0,
        "socket_connect_timeout": 1.0,
        "health_check_interval": 15,
        "retry": Retry(ExponentialWithJitterBackoff(base=0.01, cap=0.1), 2),
    }


def _behind_sentinels(url: str, scheme: str) -> Connected:
    parts = urlsplit(url)
    login, _, hosts = parts.netloc.rpartition("@")
    service, _, database = parts.path.strip("/").partition("/")
    if not service:
        raise ValueError("redis+sentinel:// needs the service's name, as in //host:26379/mymaster")
    plain = parts._replace(
        scheme=scheme, netloc=f"{login}@x" if login else "x", path=f"/{database}"
    )
    options = _patience() | cast("dict[str, Any]", parse_url(urlunsplit(plain)))
    options.pop("host", None)
    if options.pop("connection_class", None):
        options["ssl"] = True
    sentinel = Sentinel([_address(h) for h in hosts.split(",")], **options)
    return Connected(sentinel.master_for(service), sentinel)


def _address(host: str) -> tuple[str, int]:
    parts = urlsplit(f"//{host}")
    if not parts.hostname:
        raise ValueError(f"{host!r} is not the address of a sentinel")
    return parts.hostname, parts.port or _SENTINEL_PORT


def _with_scheme(url: str, scheme: str) -> str:
    return urlunsplit(urlsplit(url)._replace(scheme=scheme))
