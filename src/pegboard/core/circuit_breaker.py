"""A circuit breaker as a value: each method returns the next state, and the store applies it.

    closed ──(failures in a row)────────> open ──(cooldown over)──> half open: one probe at a time
      ^                                     ^                            │
      └──────────── the probe succeeds ─────┼────────────────────────────┤
                                            └────── the probe fails ─────┘

`half open` is not stored: it is an open breaker whose cooldown is over. A probe whose outcome never
arrives (its replica died) expires after `policy.probe` seconds, so that it does not block the
breaker forever.

An outcome carries the time at which its call was admitted (`since`). A call from before the breaker
opened says nothing about the present, so its outcome is ignored. While the breaker is open only
probes are admitted, so every outcome that is not ignored then is that of a probe.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from pegboard.core import defaults
from pegboard.core.json import Json, JsonObject
from pegboard.errors import ConfigError

BreakerState: TypeAlias = Literal["closed", "open", "half_open"]

_PROBE_POLL_INTERVAL = 1.0
"""Seconds after which to retry while a probe is running: its outcome may come at any moment."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When a breaker opens and how it closes again; durations in seconds.

    `failures` in a row open it; a success, or `window` seconds without a failure, reset the count.
    """

    failures: int = defaults.BREAKER_FAILURES
    cooldown: float = defaults.BREAKER_COOLDOWN
    probe: float = 120.0
    window: float = 300.0

    def __post_init__(self) -> None:
        if self.failures < 1 or min(self.cooldown, self.probe, self.window) <= 0:
            raise ConfigError(
                "A breaker needs at least one failure to open and positive durations; got "
                f"failures={self.failures}, cooldown={self.cooldown}, probe={self.probe}, "
                f"window={self.window}."
            )

    @property
    def memory(self) -> float:
        """How long a state has to be stored when no more calls arrive."""
        return self.window + self.cooldown + self.probe


@dataclass(frozen=True, slots=True)
class Breaker:
    """The outcome of the latest calls.

    `opened_at` is the latest opening, `down_since` the first one since it was closed.
    """

    failures: int = 0
    failed_at: float | None = None
    reason: str = ""
    down_since: float | None = None
    opened_at: float | None = None
    probe_until: float | None = None

    def state(self, policy: BreakerPolicy, now: float) -> BreakerState:
        """Closed, open, or half open at this moment."""
        if self.opened_at is None:
            return "closed"
        return "half_open" if now >= self.opened_at + policy.cooldown else "open"

    def admit(self, policy: BreakerPolicy, now: float) -> tuple[Breaker, bool]:
        """Ask to make one call: the next state, and whether to go ahead."""
        if self.opened_at is None:
            return self, True
        is_probing = self.probe_until is not None and now < self.probe_until
        if is_probing or self.state(policy, now) == "open":
            return self, False
        # The store applies this atomically, so of many callers one gets the probe.
        return replace(self, probe_until=now + policy.probe), True

    def after_success(self, since: float) -> Breaker:
        """The state after a call admitted at `since` succeeded."""
        return self if self._opened_after(since) else CLOSED

    def after_failure(
        self, policy: BreakerPolicy, *, since: float, now: float, reason: str = ""
    ) -> Breaker:
        """The state after a call admitted at `since` failed."""
        if self._opened_after(since):  # admitted before the opening: old news
            return self
        if self.opened_at is not None:  # the probe failed: the cooldown starts again
            return replace(self, opened_at=now, failed_at=now, probe_until=None, reason=reason)
        is_recent = self.failed_at is not None and now - self.failed_at <= policy.window
        failures = self.failures + 1 if is_recent else 1
        if failures < policy.failures:
            return Breaker(failures, now, reason)
        return Breaker(failures, now, reason, down_since=now, opened_at=now)

    def after_cancellation(self, policy: BreakerPolicy, since: float) -> Breaker:
        """The state after a call admitted at `since` ended without an outcome."""
        # Only its own probe is released: another one may have been admitted after it expired.
        is_probe = self.probe_until == since + policy.probe
        return replace(self, probe_until=None) if is_probe else self

    def retry_after(self, policy: BreakerPolicy, now: float) -> float:
        """Seconds until a retry makes sense; 0 when a call would be admitted."""
        if self.opened_at is None:
            return 0.0
        if self.state(policy, now) == "open":
            return self.opened_at + policy.cooldown - now
        if self.probe_until is None or now >= self.probe_until:
            return 0.0
        # While a probe runs, poll, but not beyond the moment at which it expires.
        return min(_PROBE_POLL_INTERVAL, self.probe_until - now)

    def to_json(self) -> JsonObject | None:
        """The stored form: nothing for a closed breaker without failures."""
        if self == CLOSED:
            return None
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in fields.items() if value not in (None, "")}

    @classmethod
    def from_json(cls, value: Json) -> Breaker:
        """The stored breaker; a closed one when there is none or it cannot be read."""
        if not isinstance(value, dict):
            return CLOSED
        times = {
            name: float(value[name]) if isinstance(value.get(name), (int, float)) else None
            for name in _TIMES
        }
        failures, reason = value.get("failures"), value.get("reason")
        return cls(
            failures=failures if isinstance(failures, int) and failures > 0 else 0,
            reason=reason if isinstance(reason, str) else "",
            **times,
        )

    def _opened_after(self, since: float) -> bool:
        return self.opened_at is not None and since <= self.opened_at


CLOSED = Breaker()

_TIMES = ("failed_at", "down_since", "opened_at", "probe_until")
