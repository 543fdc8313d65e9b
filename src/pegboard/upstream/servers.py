"""What the pool knows of one server, and who shares a connection to it.

Who shares a connection with whom is decided by `lane`:

| server | connection |
|---|---|
| modern | one for all: the protocol keeps nothing between requests |
| legacy | one for each owner (a legacy front's session, or a modern front's principal) |
| legacy, `stateless` or `isolation = "shared"` | one for all, which can ask no client anything |
| any, `isolation = "session"` | one for each owner |

A server's era is not known before it has been reached, so its very first start is made by one
caller while the others wait; from then on (or from a kept catalogue, by `learn`) it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from pegboard.core.calls import Era
from pegboard.errors import UpstreamUnavailable
from pegboard.upstream.connection import Connection, State
from pegboard.upstream.fronts import Front, Owner
from pegboard.upstream.health import Health
from pegboard.upstream.spec import UpstreamSpec
from pegboard.upstream.stderr import BoundedLog

_EVERYBODY: Owner = ()
_BEST_FIRST: tuple[State, ...] = ("ready", "starting", "stopping", "failed")


@dataclass(frozen=True, slots=True)
class UpstreamStatus:
    """One server at a glance, for `doctor` and the page."""

    server: str
    state: State
    era: Era | None = None
    version: str | None = None
    pids: tuple[int, ...] = ()
    connections: int = 0
    in_flight: int = 0
    latency: float | None = None
    last_error: str | None = None
    retry_after: float = 0.0
    log: str | None = None


class Server:
    """What the pool keeps of one server."""

    def __init__(self, spec: UpstreamSpec, log: BoundedLog) -> None:
        self.spec = spec
        self.log = log
        self.era: Era | None = None
        self.health = Health()
        self.connections: dict[Owner, Connection] = {}
        self.latency: float | None = None
        self.version: str | None = None

    def lane(self, front: Front) -> Owner:
        """Whom a connection for this front may serve."""
        spec = self.spec
        if spec.isolation == "session":
            return front.owner
        if self.era == "modern" or spec.stateless or spec.isolation == "shared":
            return _EVERYBODY
        # Of an unknown era: one caller finds it out for all.
        return front.owner if self.era == "legacy" else _EVERYBODY

    @property
    def asks_nobody(self) -> bool:
        return self.spec.isolation != "session" and (
            self.spec.stateless or self.spec.isolation == "shared"
        )

    @property
    def state(self) -> State:
        """The best that any of its connections is in."""
        states = {connection.state for connection in self.connections.values()}
        for state in _BEST_FIRST:
            if state in states:
                return state
        return "failed" if self.health.last_error else "cold"

    def remove(self, connection: Connection) -> None:
        """Forget a connection, wherever it is held."""
        held = self.connections.items()
        for lane in [lane for lane, other in held if other is connection]:
            del self.connections[lane]

    def unavailable(self, now: float, cause: str | None = None) -> UpstreamUnavailable:
        """Why it cannot be used, and when it is tried again; `cause` when it just failed."""
        wait = self.health.wait(now)
        when = f"It is tried again in {wait:.0f} s" if wait >= 1 else "The next call tries again"
        return UpstreamUnavailable(
            f"{self.spec.name} {cause or self.health.last_error}. {when}; other servers are not "
            f"affected.",
            server=self.spec.name,
            retry_after=round(wait, 1) or None,
        )

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
            last_error=self.health.last_error,
            retry_after=self.health.wait(now),
            log=str(self.log.path) if self.log.path else None,
        )
