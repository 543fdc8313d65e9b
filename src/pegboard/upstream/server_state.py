"""What the pool knows of one server: its connections, its failures, and who shares a process of it.

A process may store anything between two calls, whichever era its protocol is of. So principals
never share one, unless the operator says so. `ServerState.lane` decides, by the server's
`isolation`:

| `isolation` | one process or connection for each |
|---|---|
| `session` | session of a legacy client, principal of modern clients |
| `principal` | principal, whose sessions share it; it can send no client requests |
| `shared`, or `stateless` | gateway: all callers share it, and it can send no client requests |
| not given | as `session`; but modern servers over streamable HTTP are `shared` |

A modern server over HTTP is told with each request whose it is, and the protocol stores nothing
between two of them.

Where nobody signs in and several people may be behind `local`, a legacy session still tells them
apart. Modern requests have none, and are refused by servers that are not shared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from pegboard.core.calls import LOCAL_CALLER, Caller, Era
from pegboard.errors import NotPermitted, UpstreamUnavailable
from pegboard.upstream.connection import Connection, ConnectionState
from pegboard.upstream.downstream import Downstream, Owner, principal_owner
from pegboard.upstream.server_log import BoundedLog
from pegboard.upstream.spec import UpstreamSpec

FIRST_DELAY = 1.0
MAX_DELAY = 60.0
STABLE_AFTER = 30.0
"""A server that lived this many seconds is sound, whatever ended it."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often a connection failed in a row, of what, and when it may be tried again."""

    failures: int = 0
    retry_at: float = 0.0
    last_error: str | None = None
    failed_at: float = 0.0

    def after_failure(self, cause: str, *, now: float, lived: float, roll: float) -> Backoff:
        """The next state; `roll` in [0, 1) spreads the retries of many gateways.

        The first retry is free: a crash in the middle of a call says little about the next start.
        After that the pause doubles, up to a minute, more or less a quarter.
        """
        failures = 1 if lived >= STABLE_AFTER else self.failures + 1
        doublings = min(failures - 2, 10)  # a server may fail for years
        pause = min(FIRST_DELAY * 2.0**doublings, MAX_DELAY) if failures > 1 else 0.0
        return Backoff(failures, now + pause * (0.75 + roll / 2), cause, now)

    def after_success(self) -> Backoff:
        """The next state once a server has answered: it may be tried again at once."""
        return replace(self, retry_at=0.0, last_error=None)

    def wait(self, now: float) -> float:
        """Seconds until the next attempt; 0 when it may be made now."""
        return max(0.0, self.retry_at - now)


FAILURE_TTL = 600.0
"""Seconds after which a failure says nothing about the next start."""
_SHARED: Owner = ()
_BEST_FIRST: tuple[ConnectionState, ...] = ("ready", "starting", "stopping", "failed")


@dataclass(frozen=True, slots=True)
class UpstreamStatus:
    """One server at a glance, for `doctor` and the page."""

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
    """What the pool keeps of one server."""

    def __init__(self, spec: UpstreamSpec, log: BoundedLog) -> None:
        self.spec = spec
        self.log = log
        self.era: Era | None = None
        self.connections: dict[Owner, Connection] = {}
        self.latency: float | None = None
        self.version: str | None = None
        self.last_error: str | None = None
        self._health: dict[Owner, Backoff] = {}

    def lane(self, front: Downstream) -> Owner:
        """Whom a connection for this front may serve.

        Raises:
            NotPermitted: the caller cannot be told from others, and the server is not shared.
        """
        caller, sharing = front.caller, self.spec.sharing
        is_stateless = self.era == "modern" and self.spec.transport == "http"
        if sharing == "shared" or (sharing is None and is_stateless):
            return _SHARED
        owner = front.owner
        if caller.anonymous:
            return owner if owner[0] == "session" else self._refuse()
        # A legacy server hears once what a client can be asked; a modern one, with every request.
        if sharing == "principal" or (self.era == "modern" and owner[0] == "principal"):
            return principal_owner(caller)
        return owner

    def _refuse(self) -> NoReturn:
        raise NotPermitted(
            f"{self.spec.name} keeps data for each user, and this gateway does not ask its users "
            f"who they are, so a client without a session cannot use it. Whoever runs the gateway "
            f"can set `auth`, or declare that everybody may share the server: `stateless = true` "
            f'or `isolation = "shared"`.',
            server=self.spec.name,
        )

    # Failures: of one lane, since what crashes for one client may run well for another.

    def wait(self, lane: Owner, now: float) -> float:
        """Seconds until a connection for this lane may be tried again."""
        return self._health[lane].wait(now) if lane in self._health else 0.0

    def note_failure(
        self, lane: Owner, cause: str, *, now: float, lived: float, roll: float
    ) -> None:
        """Have the next attempt for this lane wait, the longer the more often it failed."""
        health = self._health.get(lane, Backoff())
        self._health[lane] = health.after_failure(cause, now=now, lived=lived, roll=roll)
        self.last_error = cause

    def note_success(self, lane: Owner) -> None:
        """Let this lane be tried again at once; what failed before still counts."""
        if lane in self._health:
            self._health[lane] = self._health[lane].after_success()
        self.last_error = None

    def forget(self, lane: Owner) -> None:
        """Drop what is known of a lane that has ended."""
        self._health.pop(lane, None)

    def forget_old_failures(self, now: float) -> None:
        """Drop failures of lanes that nobody has come back for."""
        for lane, health in list(self._health.items()):
            if lane not in self.connections and now - health.failed_at > FAILURE_TTL:
                del self._health[lane]

    @property
    def state(self) -> ConnectionState:
        """The best that any of its connections is in."""
        states = {connection.state for connection in self.connections.values()}
        for state in _BEST_FIRST:
            if state in states:
                return state
        return "failed" if self.last_error else "cold"

    def remove(self, connection: Connection) -> None:
        """Forget a connection, wherever it is held."""
        held = self.connections.items()
        for lane in [lane for lane, other in held if other is connection]:
            del self.connections[lane]

    def unavailable(
        self, lane: Owner, now: float, cause: str | None = None, caller: Caller = LOCAL_CALLER
    ) -> UpstreamUnavailable:
        """Why it cannot be used, and when it is tried again; `cause` when it just failed."""
        wait = self.wait(lane, now)
        if cause is None and lane in self._health:
            cause = self._health[lane].last_error
        when = f"It is tried again in {wait:.0f} s" if wait >= 1 else "The next call tries again"
        error = UpstreamUnavailable(
            f"{self.spec.name} {cause}. {when}; other servers are not affected.",
            server=self.spec.name,
            retry_after=round(wait, 1) or None,
        )
        is_process = self.spec.transport == "stdio"
        error.only_caller = is_process and bool(lane) and not caller.is_local_user
        return error

    def status(self, now: float) -> UpstreamStatus:
        """It, at a glance."""
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
            retry_after=max((health.wait(now) for health in self._health.values()), default=0.0),
            log=str(self.log.path) if self.log.path else None,
        )
