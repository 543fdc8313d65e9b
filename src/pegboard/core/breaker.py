"""A circuit breaker as a value: the store holds it, a method returns the next state.

    closed ──(enough failures in a run)──> open ──(cooldown over)──> half open: one probe at a time
      ^                                     ^                            │
      └──────────── the probe succeeds ─────┼────────────────────────────┤
                                            └────── the probe fails ─────┘

`half open` is not stored: it is an open breaker whose cooldown is over. A probe that is never heard
of again (its replica died) is given up after `policy.probe` seconds, so it wedges nothing.

A call is told apart by when it was admitted (`since`): what was admitted before the breaker opened
says nothing about now, and while it is open nothing but a probe is admitted. So every verdict on an
open breaker that is younger than the opening is a probe's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from pegboard.core import defaults
from pegboard.core.json import Json, JsonObject
from pegboard.errors import ConfigError

BreakerState: TypeAlias = Literal["closed", "open", "half_open"]

_PROBE_POLL_INTERVAL = 1.0
"""When to ask again while a probe is under way: its answer may come at any moment."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When a breaker opens and how it closes again; durations in seconds.

    `failures` in a run open it; a success or `window` seconds without a failure end a run.
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
        """How long a state is worth keeping when nothing happens any more."""
        return self.window + self.cooldown + self.probe


@dataclass(frozen=True, slots=True)
class Breaker:
    """How the last calls went.

    `opened_at` is the last opening, `down_since` the first one since it was last closed.
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
        if self.state(policy, now) == "open" or self._probing(now):
            return self, False
        return replace(self, probe_until=now + policy.probe), True

    def succeeded(self, since: float) -> Breaker:
        """The state after a call admitted at `since` got an answer."""
        return self if self._opened_after(since) else CLOSED

    def failed(
        self, policy: BreakerPolicy, *, since: float, now: float, reason: str = ""
    ) -> Breaker:
        """The state after a call admitted at `since` failed."""
        if self._opened_after(since):
            return self
        if self.opened_at is not None:
            return replace(self, opened_at=now, failed_at=now, probe_until=None, reason=reason)
        run_goes_on = self.failed_at is not None and now - self.failed_at <= policy.window
        failures = self.failures + 1 if run_goes_on else 1
        if failures < policy.failures:
            return Breaker(failures, now, reason)
        return Breaker(failures, now, reason, down_since=now, opened_at=now)

    def abandoned(self, policy: BreakerPolicy, since: float) -> Breaker:
        """The state after a call admitted at `since` ended without a verdict."""
        its_own_probe = self.probe_until == since + policy.probe
        return replace(self, probe_until=None) if its_own_probe else self

    def retry_after(self, policy: BreakerPolicy, now: float) -> float:
        """Seconds until it is worth asking again; 0 when a call would be admitted."""
        if self.opened_at is None:
            return 0.0
        if self.state(policy, now) == "open":
            return self.opened_at + policy.cooldown - now
        return (
            min(_PROBE_POLL_INTERVAL, (self.probe_until or now) - now)
            if self._probing(now)
            else 0.0
        )

    def to_json(self) -> JsonObject | None:
        """What the store keeps: nothing for a breaker with nothing to tell."""
        if self == CLOSED:
            return None
        kept = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in kept.items() if value not in (None, "")}

    @classmethod
    def from_json(cls, value: Json) -> Breaker:
        """The breaker that was kept; closed when there is none or it cannot be read."""
        if not isinstance(value, dict):
            return CLOSED
        times = {name: _time(value.get(name)) for name in _TIMES}
        failures, reason = value.get("failures"), value.get("reason")
        return cls(
            failures=failures if isinstance(failures, int) and failures > 0 else 0,
            reason=reason if isinstance(reason, str) else "",
            **times,
        )

    def _probing(self, now: float) -> bool:
        return self.probe_until is not None and now < self.probe_until

    def _opened_after(self, since: float) -> bool:
        return self.opened_at is not None and since <= self.opened_at


CLOSED = Breaker()

_TIMES = ("failed_at", "down_since", "opened_at", "probe_until")


def _time(value: Json) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
