"""Bounds how much each principal may do, over all replicas.

Two allowances each: *calls*, which are what servers are asked to do (tools, reads, prompts, tasks),
and *requests*, which are all requests of the protocol, lists and searches included.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import anyio

from pegboard.core.calls import Caller, CallResult, ToolCall
from pegboard.core.json import Json
from pegboard.core.token_bucket import RateLimit, RateLimitRefusal, TokenBucket
from pegboard.errors import Busy, StoreError
from pegboard.ports import Handler, Layer, Store

_GOODBYE = 2.0
"""Seconds for giving a place back when the caller has already left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRule:
    """A limit, and whose it is: any of these principals or groups, by glob; none means everybody's.

    Everyone it applies to has an allowance of their own.
    """

    limit: RateLimit
    requests: RateLimit | None = None
    """The bound on requests of any kind."""
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
    """Whose calls are bounded how; the first rule that applies decides."""

    store: Store
    rules: Sequence[LimitRule]
    clock: Callable[[], float] = time.time
    new_id: Callable[[], str] = field(default=lambda: secrets.token_hex(8))

    def of(self, caller: Caller) -> LimitRule | None:
        return next((rule for rule in self.rules if rule.applies_to(caller)), None)

    @asynccontextmanager
    async def call(self, caller: Caller) -> AsyncGenerator[None]:
        """One call by this caller, for as long as the block runs.

        Raises:
            Busy: It is beyond their limit.
        """
        rule = self.of(caller)
        if rule is None:
            yield
            return
        limit, key, call_id = rule.limit, f"rate/{caller.principal}", self.new_id()
        await _admitted(self, limit, key, call_id)
        try:
            yield
        finally:
            if limit.concurrent is not None:
                await _given_back(self, limit, key, call_id)

    async def request(self, caller: Caller) -> None:
        """Count one request of any kind by this caller.

        Raises:
            Busy: It is beyond their limit.
        """
        rule = self.of(caller)
        if rule is not None and rule.requests is not None:
            await _admitted(self, rule.requests, f"rate/{caller.principal}/requests", "")


def rate_limit(limits: RateLimits) -> Layer:
    """A layer that refuses with `Busy` what is beyond the caller's limit."""

    def layer(inner: Handler) -> Handler:
        async def limited(call: ToolCall) -> CallResult:
            async with limits.call(call.caller):
                return await inner(call)

        return limited

    return layer


async def _admitted(limits: RateLimits, limit: RateLimit, key: str, call_id: str) -> None:
    now = limits.clock()
    refusal: RateLimitRefusal | None = None

    def change(kept: Json) -> Json:
        nonlocal refusal
        allowance, refusal = TokenBucket.from_json(kept).admit(limit, call_id, now)
        return allowance.to_json()

    await limits.store.update(key, change, ttl=limit.ttl)
    if refusal is not None:
        raise Busy(
            f"Too many {limit.unit}: {refusal.reason}. Try again in {refusal.retry_after:.1f} s.",
            retry_after=round(refusal.retry_after, 3),
        )


async def _given_back(limits: RateLimits, limit: RateLimit, key: str, call_id: str) -> None:
    def change(kept: Json) -> Json:
        return TokenBucket.from_json(kept).finished(call_id).to_json()

    with anyio.move_on_after(_GOODBYE, shield=True):
        try:
            await limits.store.update(key, change, ttl=limit.ttl)
        except StoreError:
            return  # its lease ends by itself
