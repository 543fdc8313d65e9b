"""When to try a failing server again: a value that each failure replaces."""

from __future__ import annotations

from dataclasses import dataclass, replace

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
SETTLED = 30.0
"""A server that lived this many seconds is sound, whatever ended it."""


@dataclass(frozen=True, slots=True)
class Health:
    """How often a connection failed in a row, of what, and when it may be tried again."""

    failures: int = 0
    retry_at: float = 0.0
    last_error: str | None = None
    failed_at: float = 0.0

    def after_failure(self, cause: str, *, now: float, lived: float, roll: float) -> Health:
        """The next state; `roll` in [0, 1) spreads the retries of many gateways.

        The first retry is free: a crash in the middle of a call says little about the next start.
        After that the pause doubles, up to a minute, more or less a quarter.
        """
        failures = 1 if lived >= SETTLED else self.failures + 1
        doublings = min(failures - 2, 10)  # a server may fail for years
        pause = min(FIRST_PAUSE * 2.0**doublings, LONGEST_PAUSE) if failures > 1 else 0.0
        return Health(failures, now + pause * (0.75 + roll / 2), cause, now)

    def after_success(self) -> Health:
        """The next state once a server has answered: it may be tried again at once."""
        return replace(self, retry_at=0.0, last_error=None)

    def wait(self, now: float) -> float:
        """Seconds until the next attempt; 0 when it may be made now."""
        return max(0.0, self.retry_at - now)
