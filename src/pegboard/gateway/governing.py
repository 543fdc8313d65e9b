"""What a configuration says of identity, permissions, state and trust, as the parts that do it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from pegboard.config.governance import LimitEntry
from pegboard.config.settings import Settings
from pegboard.core.policy import Policy, Rule
from pegboard.core.rate import RateLimit
from pegboard.dispatch.rate import LimitRule, Limits
from pegboard.errors import ConfigError
from pegboard.ports import Observer, Store
from pegboard.store.memory import MemoryStore

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken

    from pegboard.server.auth import Auth


def policy_of(settings: Settings) -> Policy:
    """Who may see and call what."""
    permissions = settings.permissions
    rules = [Rule(**asdict(rule)) for rule in permissions.rules]
    return Policy(rules, default=permissions.default)


REQUESTS_PER_CALL = 10
"""Requests of any kind that each call of an allowance stands for, unless configured."""


def limits_of(settings: Settings, store: Store) -> Limits | None:
    """What bounds how much each principal may do, where there are bounds."""
    if not settings.limits:
        return None
    return Limits(store=store, rules=[_limit_rule(entry) for entry in settings.limits])


def _limit_rule(entry: LimitEntry) -> LimitRule:
    calls, burst = entry.calls, entry.burst
    requests = entry.requests or (None if calls is None else calls * REQUESTS_PER_CALL)
    at_once = None if entry.requests or burst is None else burst * REQUESTS_PER_CALL
    return LimitRule(
        limit=RateLimit(calls=calls, per=entry.per, burst=burst, concurrent=entry.concurrent),
        requests=None
        if requests is None
        else RateLimit(calls=requests, per=entry.per, burst=at_once, unit="requests"),
        principals=entry.principals,
        groups=entry.groups,
    )


def store_of(settings: Settings, observer: Observer | None) -> Store:
    """Where state is kept: here, or shared, with this process's memory while that is away."""
    url = settings.store.url
    if url.startswith("memory:"):
        return MemoryStore()
    try:
        from pegboard.store.redis import RedisStore
    except ImportError as exc:
        raise ConfigError(
            "A shared store needs the Redis client: pip install 'pegboard[redis]'."
        ) from exc
    from pegboard.store.fallback import FallbackStore

    shared = RedisStore.from_url(url, prefix=settings.store.prefix)
    return FallbackStore(shared, observer=observer)


async def close_store(store: Store) -> None:
    """Let go of the connections of a store that has any."""
    aclose = getattr(store, "aclose", None)
    if aclose is not None:
        await aclose()


class CurrentKeys:
    """Verifies static keys by the configuration as it is now, so that one can be taken back."""

    def __init__(self, current: Callable[[], Settings]) -> None:
        self._current = current
        self._settings: Settings | None = None
        self._auth: Auth | None = None

    async def verify_token(self, token: str) -> AccessToken | None:
        """Whom a key stands for; `None` for any other text."""
        settings = self._current()
        if settings is not self._settings:
            self._settings = settings
            self._auth = auth_of(settings) if settings.auth.kind == "keys" else self._auth
        return await self._auth.verifier.verify_token(token) if self._auth else None


def auth_of(settings: Settings) -> Auth | None:
    """How callers over HTTP are asked who they are; `None` where they are not.

    Raises:
        ConfigError: Something that this kind of identity needs is missing.
    """
    auth = settings.auth
    if auth.kind == "none":
        return None
    from pegboard.server.auth import Auth, JwtTokens, KeySet, StaticKey, StaticKeys

    if auth.kind == "keys":
        if not auth.keys:
            raise ConfigError("`auth.kind` is keys and there are none: add [[auth.keys]].")
        keys = [StaticKey(k.principal, k.sha256, k.scopes, k.groups) for k in auth.keys]
        return Auth(verifier=StaticKeys(keys), required_scopes=auth.required_scopes)
    if not auth.issuer or not auth.audience:
        raise ConfigError("`auth.kind` is jwt: set `issuer` and `audience` under [auth].")
    verifier = JwtTokens(
        issuer=auth.issuer,
        audience=auth.audience,
        keys=KeySet(auth.issuer, auth.jwks_url),
        groups_claim=auth.groups_claim,
    )
    resource = auth.resource or (auth.audience if auth.audience.startswith("http") else None)
    return Auth(
        verifier=verifier,
        required_scopes=auth.required_scopes,
        issuer=auth.issuer,
        resource=resource,
    )
