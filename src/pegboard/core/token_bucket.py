"""Rate limits of one principal: a token bucket and the running calls, as one value.

The bucket holds up to `burst` tokens and refills at `calls / per` tokens a second; each call takes
one. The store applies changes atomically, so that all replicas count together. A running call holds
a slot until it ends or its lease expires, so that a replica that dies does not hold slots forever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pegboard.core import defaults
from pegboard.core.json import Json, JsonObject
from pegboard.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """At most `calls` in `per` seconds, `burst` of them at once, and `concurrent` running.

    `None` means no such limit. `lease` is the longest that a running call holds its slot.
    """

    calls: float | None = None
    per: float = defaults.RATE_PERIOD
    burst: int | None = None
    concurrent: int | None = None
    lease: float = 600.0
    unit: str = "calls"

    def __post_init__(self) -> None:
        if self.calls is not None and (self.calls <= 0 or self.per <= 0):
            raise ConfigError(f"A rate must let at least some calls through; got {self}.")
        if self.concurrent is not None and self.concurrent < 1:
            raise ConfigError(f"At least one call must be able to run; got {self}.")

    @property
    def capacity(self) -> float:
        return float(self.burst or max(1.0, self.calls or 1.0))

    @property
    def ttl(self) -> float:
        """Seconds after which an unused bucket is full again and need not be stored."""
        refill = self.capacity * self.per / self.calls if self.calls else 0.0
        return max(refill, self.lease) + 1.0


@dataclass(frozen=True, slots=True)
class RateLimitRefusal:
    """Why a call has to wait, and for how long."""

    reason: str
    retry_after: float


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """What one principal has left: tokens at a time, and the running calls by id."""

    tokens: float | None = None
    at: float = 0.0
    running: Mapping[str, float] = field(default_factory=dict[str, float])

    def admit(
        self, limit: RateLimit, call_id: str, now: float
    ) -> tuple[TokenBucket, RateLimitRefusal | None]:
        """Ask to make one call: the next state, and the reason for a refusal, if it is one."""
        # Calls whose lease is over were lost with their replica, or take longer than any should.
        running = {i: until for i, until in self.running.items() if until > now}
        tokens = limit.capacity
        if self.tokens is not None and limit.calls is not None:
            # Clocks of replicas differ: time never runs backwards for a bucket.
            gained = max(0.0, now - self.at) * limit.calls / limit.per
            tokens = min(limit.capacity, self.tokens + gained)
        here = TokenBucket(tokens, now, running)
        if limit.concurrent is not None and len(running) >= limit.concurrent:
            return here, RateLimitRefusal(f"{len(running)} of your calls are running", 1.0)
        if limit.calls is not None and tokens < 1:
            # Exactly when the next token will be there, unless another call takes it.
            wait = (1 - tokens) * limit.per / limit.calls
            reason = f"more than {limit.calls:g} {limit.unit} in {limit.per:g} s"
            return here, RateLimitRefusal(reason, wait)
        if limit.concurrent is not None:
            running[call_id] = now + limit.lease
        return TokenBucket(tokens - 1, now, running), None

    def release(self, call_id: str) -> TokenBucket:
        """The state after a call has ended."""
        return replace(self, running={i: t for i, t in self.running.items() if i != call_id})

    def to_json(self) -> JsonObject:
        """The stored form."""
        return {"tokens": self.tokens, "at": self.at, "running": dict(self.running)}

    @classmethod
    def from_json(cls, value: Json) -> TokenBucket:
        """The stored bucket; a full one when there is none."""
        return cls(**value) if isinstance(value, dict) else cls()
