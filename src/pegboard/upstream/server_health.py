"""What is known of one server: its connections, its failures, and how long to wait after them.

Failures are counted for each owner of connections: a process that crashes for one client, with that
client's data, delays nobody else. The delay doubles with each failure in a row (`Backoff`). The
status of a server, for `doctor` and the dashboard, combines all of this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pegboard.core.calls import LOCAL_CALLER, Caller, Era
from pegboard.errors import UpstreamUnavailable
from pegboard.upstream.connection import Connection, ConnectionState
from pegboard.upstream.downstream import Owner
from pegboard.upstream.server_log import BoundedLog
from pegboard.upstream.spec import UpstreamSpec

FIRST_DELAY = 1.0
MAX_DELAY = 60.0
STABLE_AFTER = 30.0
"""A server that ran for this many seconds counts as healthy, however it ended."""
FAILURE_TTL = 600.0
"""Seconds after which a failure no longer delays the next start."""
_BEST_FIRST: tuple[ConnectionState, ...] = ("ready", "starting", "stopping", "failed")


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often connections failed in a row, why, and when the next may be tried."""

    failures: int = 0
    retry_at: float = 0.0
    last_error: str | None = None
    failed_at: float = 0.0

    def after_failure(self, cause: str, *, now: float, lived: float, roll: float) -> Backoff:
        """The next state; `roll` in [0, 1) spreads the retries of many gateways.

        The first retry is free: a crash in the middle of a call says little about the next start.
        After that the delay doubles, up to a minute, more or less a quarter.
        """
        failures = 1 if lived >= STABLE_AFTER else self.failures + 1
        doublings = min(failures - 2, 10)  # a server may fail for years
        delay = min(FIRST_DELAY * 2.0**doublings, MAX_DELAY) if failures > 1 else 0.0
        return Backoff(failures, now + delay * (0.75 + roll / 2), cause, now)

    def after_success(self) -> Backoff:
        """The next state once a server has answered: it may be tried again at once."""
        return replace(self, retry_at=0.0, last_error=None)

    def wait(self, now: float) -> float:
        """Seconds until the next attempt; 0 when it may be made now."""
        return max(0.0, self.retry_at - now)


@dataclass(frozen=True, slots=True)
class UpstreamStatus:
    """One server at a glance, for `doctor` and the dashboard."""

    server: str
    state: ConnectionState
    era: Era | None = None
    version: str | None = None
    pids: tuple[int, ...] = ()
    connections: int = 0
    in_flight: int = 0
    latency: float | None = None
    last_error: str | None = None
    retry_after: float = 0.0
    log: str | None = None


class ServerState:
    """What the pool knows of one server."""

    def __init__(self, spec: UpstreamSpec, log: BoundedLog) -> None:
        self.spec = spec
        self.log = log
        self.era: Era | None = None
        self.connections: dict[Owner, Connection] = {}
        self.latency: float | None = None
        self.version: str | None = None
        self.last_error: str | None = None
        self.refuses_strangers = False
        """Whether it refuses a connection that carries no credential of a caller."""
        # By owner: what crashes for one client, with its data, may run well for another.
        self._backoffs: dict[Owner, Backoff] = {}

    # Failures.

    def wait(self, owner: Owner, now: float) -> float:
        """Seconds until a connection for this owner may be tried again."""
        return self._backoffs[owner].wait(now) if owner in self._backoffs else 0.0

    def record_failure(
        self, owner: Owner, cause: str, *, now: float, lived: float, roll: float
    ) -> None:
        """Delay the next attempt for this owner; the delay grows with each failure."""
        backoff = self._backoffs.get(owner, Backoff())
        self._backoffs[owner] = backoff.after_failure(cause, now=now, lived=lived, roll=roll)
        self.last_error = cause

    def record_success(self, owner: Owner) -> None:
        """Let this owner's connection be tried again at once; past failures still count."""
        # A server that answers the handshake and then crashes at each call must not restart in a
        # tight loop: only running for `STABLE_AFTER` seconds clears the count.
        if owner in self._backoffs:
            self._backoffs[owner] = self._backoffs[owner].after_success()
        self.last_error = None

    def forget(self, owner: Owner) -> None:
        """Drop the failures of an owner that will not come back."""
        self._backoffs.pop(owner, None)

    def forget_old_failures(self, now: float) -> None:
        """Drop the failures of owners that have not come back for long."""
        for owner, backoff in list(self._backoffs.items()):
            if owner not in self.connections and now - backoff.failed_at > FAILURE_TTL:
                del self._backoffs[owner]

    def build_unavailable(
        self,
        owner: Owner,
        now: float,
        cause: str | None = None,
        caller: Caller = LOCAL_CALLER,
    ) -> UpstreamUnavailable:
        """Why it cannot be used, and when it is tried again; `cause` when it just failed."""
        wait = self.wait(owner, now)
        if cause is None and owner in self._backoffs:
            cause = self._backoffs[owner].last_error
        when = f"It is tried again in {wait:.0f} s" if wait >= 1 else "The next call tries again"
        error = UpstreamUnavailable(
            f"{self.spec.name} {cause}. {when}; other servers are not affected.",
            server=self.spec.name,
            retry_after=round(wait, 1) or None,
        )
        error.reason = f"{self.spec.name} {cause}."
        # A process of one of several people says nothing about those of the others.
        is_process = self.spec.transport == "stdio"
        error.only_caller = is_process and bool(owner) and not caller.is_local_user
        return error

    # Connections.

    @property
    def state(self) -> ConnectionState:
        """The best state of its connections."""
        states = {connection.state for connection in self.connections.values()}
        for state in _BEST_FIRST:
            if state in states:
                return state
        return "failed" if self.last_error else "cold"

    def remove(self, connection: Connection) -> None:
        """Forget a connection, whichever owner it is held for."""
        held = self.connections.items()
        for owner in [owner for owner, other in held if other is connection]:
            del self.connections[owner]

    def status(self, now: float) -> UpstreamStatus:
        """The server at a glance."""
        held = list(self.connections.values())
        return UpstreamStatus(
            server=self.spec.name,
            state=self.state,
            era=self.era,
            version=self.version,
            pids=tuple(c.pid for c in held if c.pid is not None),
            connections=len(held),
            in_flight=sum(c.in_flight for c in held),
            latency=self.latency,
            last_error=self.last_error,
            retry_after=max((b.wait(now) for b in self._backoffs.values()), default=0.0),
            log=str(self.log.path) if self.log.path else None,
        )
