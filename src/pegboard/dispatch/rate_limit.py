"""The rate limit layer: limits how much each principal may do, across all replicas.

There are two limits each: *calls*, which are requests that servers carry out (tools, resources,
prompts, tasks), and *requests*, which are all requests of the protocol, including lists and
searches.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import anyio

from pegboard.core.calls import Caller, CallResult, ToolCall
from pegboard.core.json import Json
from pegboard.core.token_bucket import RateLimit, RateLimitRefusal, TokenBucket
from pegboard.errors import Busy, StoreError
from pegboard.ports import Handler, Layer, Store

_RELEASE_TIMEOUT = 2.0
"""Seconds for releasing a concurrent call when its caller has already left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRule:
    """A limit and whom it applies to: these principals or groups, by glob; without any, everybody.

    Each principal that it applies to has their own bucket.
    """

    limit: RateLimit
    requests: RateLimit | None = None
    """The limit on requests of any kind."""
    principals: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def applies_to(self, caller: Caller) -> bool:
        if not self.principals and not self.groups:
            return True
        return any(fnmatchcase(caller.principal, p) for p in self.principals) or any(
            fnmatchcase(group, p) for p in self.groups for group in caller.groups
        )


@dataclass(frozen=True, kw_only=True)
class RateLimits:
    """The rules; the first one that applies to a caller decides."""

    store: Store
    rules: Sequence[LimitRule]
    clock: Callable[[], float] = time.time
    new_id: Callable[[], str] = field(default=lambda: secrets.token_hex(8))

    def find_rule(self, caller: Caller) -> LimitRule | None:
        return next((rule for rule in self.rules if rule.applies_to(caller)), None)

    @asynccontextmanager
    async def call(self, caller: Caller) -> AsyncGenerator[None]:
        """One call by this caller, for as long as the block runs.

        Raises:
            Busy: It is over their limit.
        """
        rule = self.find_rule(caller)
        if rule is None:  # no store access for callers without a limit
            yield
            return
        limit, key, call_id = rule.limit, f"rate/{caller.principal}", self.new_id()
        await self._admit(limit, key, call_id)
        try:
            yield
        finally:
            if limit.concurrent is not None:

                def release(stored: Json) -> Json:
                    return TokenBucket.from_json(stored).release(call_id).to_json()

                # Shielded: a canceled call must not count as running until its lease expires.
                with anyio.move_on_after(_RELEASE_TIMEOUT, shield=True), suppress(StoreError):
                    await self.store.update(key, release, ttl=limit.ttl)

    async def request(self, caller: Caller) -> None:
        """Count one request of any kind by this caller.

        Raises:
            Busy: It is over their limit.
        """
        rule = self.find_rule(caller)
        if rule is not None and rule.requests is not None:
            await self._admit(rule.requests, f"rate/{caller.principal}/requests", "")

    async def _admit(self, limit: RateLimit, key: str, call_id: str) -> None:
        now = self.clock()
        refusal: RateLimitRefusal | None = None

        def change(stored: Json) -> Json:
            nonlocal refusal  # the store may run this again, after another replica's change
            bucket, refusal = TokenBucket.from_json(stored).admit(limit, call_id, now)
            return bucket.to_json()

        await self.store.update(key, change, ttl=limit.ttl)
        if refusal is not None:
            wait = refusal.retry_after
            raise Busy(
                f"Too many {limit.unit}: {refusal.reason}. Try again in {wait:.1f} s.",
                retry_after=round(wait, 3),
            )


def rate_limit(limits: RateLimits) -> Layer:
    """A layer that rejects calls over the caller's limit with `Busy`."""

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            async with limits.call(call.caller):
                return await inner(call)

        return handle

    return layer
