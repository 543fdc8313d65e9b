r"""The connections to all servers: opened on first use, shared, stopped when idle, opened again.

    use(server, client) --> find_owner --> a ready connection of that owner
                                       \-> none: backoff? room? then open one and wait

Nothing starts before it is used. A request that finds a connection starting waits for it, so that
any number of them start one process.

**Who shares a process.** A process may store anything between two calls, whatever its protocol era.
So principals never share one, unless the operator allows it. `find_owner` decides, by the server's
`isolation`:

| `isolation` | one process or connection for each |
|---|---|
| `session` | session of a legacy client, principal of modern clients |
| `principal` | principal, whose sessions share it; it cannot send requests to clients |
| `shared`, or `stateless` | gateway: all callers share it; it cannot send requests to clients |
| not given | as `session`; but modern servers over streamable HTTP are `shared` |

Each request to a modern server over HTTP says whose it is, and the protocol stores nothing between
two of them. Where nobody signs in and several people may be behind `local`, a legacy session still
separates them. Modern requests have none, and are refused by servers that are not shared.

How long to wait after a failure is decided by `server_health`; what happens on a connection, by
`connection`.
"""

from __future__ import annotations

import contextvars
import logging
import random
import re
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup

from pegboard.core import defaults
from pegboard.core.calls import Caller, Era
from pegboard.core.json import JsonObject
from pegboard.core.redaction import Redactor
from pegboard.errors import Busy, ConfigError, NotPermitted, UpstreamUnavailable
from pegboard.oauth.logins import Logins
from pegboard.upstream.catalog_entries import (
    PLAIN_CLIENT,
    ClientKind,
    capabilities_to_kind,
    kind_to_capabilities,
)
from pegboard.upstream.connection import Connection
from pegboard.upstream.downstream import Downstream, Owner, principal_owner
from pegboard.upstream.inbound_router import UpstreamEvent, UpstreamListener
from pegboard.upstream.server_health import ServerState, UpstreamStatus
from pegboard.upstream.server_log import BoundedLog
from pegboard.upstream.spec import UpstreamSpec
from pegboard.upstream.transports import OpenTransport, open_transport

SWEEP_INTERVAL = 5.0
RETIRE_TIMEOUT = 30.0
"""Seconds that calls in progress get to finish when their server is removed from the
configuration."""
ROOM_TIMEOUT = 5.0
"""Seconds that a caller waits for room when all connections that it could replace are in use."""

_VISIT = "visit"
_SHARED: Owner = ()
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """How many connections there may be; the one that was idle longest makes room for another."""

    processes: int = defaults.MAX_PROCESSES
    """Server processes in total."""
    per_principal: int = defaults.MAX_PROCESSES_PER_PRINCIPAL
    """Server processes of one principal; the local user may have them all."""
    connections: int = 64
    """Connections to one server that is not a process."""
    wait: float = ROOM_TIMEOUT


def find_owner(spec: UpstreamSpec, era: Era | None, downstream: Downstream) -> Owner:
    """The owner of the connection that serves this client; the rules are above.

    Args:
        spec: The server.
        era: Its era, where it is known.
        downstream: The client.

    Raises:
        NotPermitted: The caller cannot be identified, and the server is not shared.
    """
    caller, sharing = downstream.caller, spec.sharing
    # Until the era is known, a server over HTTP counts as stateful. The first connection gets its
    # right owner once the server has answered.
    is_stateless = era == "modern" and spec.transport == "http"
    if sharing == "shared" or (sharing is None and is_stateless):
        return _SHARED
    owner = downstream.owner
    if caller.anonymous:
        if owner[0] == "session":
            return owner
        raise NotPermitted(
            f"{spec.name} stores data for each user, and this gateway does not know who its users "
            f"are, so a client without a session cannot use it. The operator of the gateway can "
            f"set `auth`, or declare that everybody may share the server: `stateless = true` or "
            f'`isolation = "shared"`.',
            server=spec.name,
        )
    # A legacy server learns in the handshake what input its client can give, so clients that
    # differ in that have different connections. A modern one learns it with every request.
    if sharing == "principal" or (era == "modern" and owner[0] == "principal"):
        return principal_owner(caller)
    return owner


class ConnectionPool:
    """Connections to servers by name; an async context manager that owns all their tasks.

    `clock` and `roll` are the time and the randomness for idle stops and retries. `logins` has the
    tokens of callers for servers that need them.
    """

    def __init__(
        self,
        specs: Iterable[UpstreamSpec],
        *,
        logs: Path | None = None,
        open_transport: OpenTransport = open_transport,
        clock: Callable[[], float] = time.monotonic,
        roll: Callable[[], float] = random.random,
        limits: PoolLimits | None = None,
        logins: Logins | None = None,
    ) -> None:
        self.limits = limits or PoolLimits()
        self.logins = logins
        self._logs = logs
        self._listeners: list[UpstreamListener] = []
        self._visits = 0
        self._open_transport = open_transport
        self._clock = clock
        self._roll = roll
        self._servers = {spec.name: self._new_server(spec) for spec in specs}
        self._tasks: TaskGroup | None = None
        self._context = contextvars.Context()
        self._idle_or_ended = anyio.Event()

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        # Connections outlive the request that opens them, and must not inherit its trace.
        self._context = contextvars.copy_context()

        async def sweep_periodically() -> None:
            while True:
                await anyio.sleep(SWEEP_INTERVAL)
                await self.sweep()

        self._tasks.start_soon(sweep_periodically)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        # Without a task group no new connection is opened while the others are closed.
        tasks, self._tasks = self._tasks, None
        if tasks is None:
            return None
        if exc_val is None:
            await _close_connections(list(self._connections()))
        tasks.cancel_scope.cancel()
        try:
            return await tasks.__aexit__(exc_type, exc_val, exc_tb)
        finally:
            for server in self._servers.values():
                server.log.close()

    # Using it.

    @property
    def servers(self) -> tuple[UpstreamSpec, ...]:
        return tuple(server.spec for server in self._servers.values())

    @asynccontextmanager
    async def use(self, name: str, downstream: Downstream) -> AsyncGenerator[Connection]:
        """A ready connection to a server for this client, opened if there is none.

        Raises:
            UpstreamUnavailable: It cannot be reached, or failed too recently to be tried again.
            LoginRequired: It does not accept the caller's credential.
        """
        connection = await self._acquire(self._get_server(name), downstream)
        with self.reserve(connection):
            yield connection

    @contextmanager
    def reserve(self, connection: Connection) -> Generator[None]:
        """Prevent a connection from being stopped as idle while the block runs."""
        connection.users += 1
        try:
            yield
        finally:
            connection.users -= 1
            connection.used_at = self._clock()
            if connection.users == 0:
                self._idle_or_ended.set()

    def ready_connections(self, name: str, owner: Owner | None = None) -> list[Connection]:
        """The connections to a server that are ready now; of one owner, or all."""
        return [
            connection
            for connection in self._get_server(name).connections.values()
            if connection.is_usable
            and not _is_visit(connection)
            and owner in (None, connection.owner)
        ]

    def add_listener(self, listener: UpstreamListener) -> None:
        """Have a listener notified of what servers announce."""
        self._listeners.append(listener)

    @asynccontextmanager
    async def visit(
        self, name: str, kinds: Sequence[ClientKind] = (PLAIN_CLIENT,)
    ) -> AsyncGenerator[Connection]:
        """A connection for listing a server: a ready one, else one that ends with the block.

        A connection that belongs to one of several people is not used: what its process lists may
        depend on that person, and a catalog is for everybody. A legacy server may choose what to
        list by the capabilities of its client: only connections of `kinds` are used, and a new one
        is of the first kind.

        Raises:
            UpstreamUnavailable: It cannot be reached.
        """
        server = self._get_server(name)
        for ready in self.ready_connections(name):
            kind = capabilities_to_kind(ready.declared_capabilities)
            if (ready.era == "modern" or kind in kinds) and not ready.is_personal:
                with self.reserve(ready):
                    yield ready
                return
        # Each listing has an owner of its own, so that it neither waits for another nor is used by
        # a client's call.
        self._visits += 1
        owner = (_VISIT, str(self._visits))
        # A listing for everybody negotiates the era again, so that an upgraded server is noticed.
        hint = server.era if kinds[0] else None
        connection = self._open(server, owner, None, hint, kind_to_capabilities(kinds[0]))
        try:
            await connection.settled.wait()
            if connection.cause is not None:
                raise connection.build_refusal() or server.build_unavailable(
                    owner, self._clock(), connection.cause
                )
            yield connection
        finally:
            connection.close()
            await connection.ended.wait()

    def set_known_era(self, name: str, era: Era) -> None:
        """Take a server's era from a cached catalog, so that it need not be negotiated."""
        server = self._get_server(name)
        server.era = server.era or era

    def status(self) -> list[UpstreamStatus]:
        """Every server at a glance, in the order of the configuration."""
        now = self._clock()
        return [server.status(now) for server in self._servers.values()]

    # Stopping connections.

    async def sweep(self) -> None:
        """Stop connections that have been idle for too long."""
        now = self._clock()
        for server in self._servers.values():
            server.forget_old_failures(now)
            limit = server.spec.idle_stop
            for connection in server.connections.values():
                if limit > 0 and connection.is_idle and now - connection.used_at >= limit:
                    connection.close()

    async def stop(self, name: str) -> None:
        """End all connections to a server, and its processes; the next call starts it again."""
        await _close_connections(list(self._get_server(name).connections.values()))

    async def end_session(self, session: str) -> None:
        """End the connections that served one session of a legacy client."""
        owner: Owner = ("session", session)
        mine = [s.connections[owner] for s in self._servers.values() if owner in s.connections]
        await _close_connections(mine)
        for server in self._servers.values():
            server.forget(owner)

    async def drain(self, patience: float) -> None:
        """Wait until no call is in flight, for at most `patience` seconds."""
        await self._wait_until_unused(list(self._connections()), patience)

    # A new configuration. In two steps, so that new calls use it before old ones have ended.

    async def replace(self, specs: Iterable[UpstreamSpec]) -> None:
        """Take a new configuration: what is gone or changed is ended, the rest goes on."""
        await self.retire(self.swap_specs(specs))

    def swap_specs(self, specs: Iterable[UpstreamSpec]) -> list[ServerState]:
        """Use a new configuration for new calls; returns the servers to end, for `retire`."""
        wanted = {spec.name: spec for spec in specs}
        leaving = [s for s in self._servers.values() if wanted.get(s.spec.name) != s.spec]
        staying = {s.spec.name: s for s in self._servers.values() if s not in leaving}
        self._servers = {n: staying.get(n) or self._new_server(spec) for n, spec in wanted.items()}
        return leaving

    async def retire(self, leaving: list[ServerState]) -> None:
        """End servers that were removed; their calls have `RETIRE_TIMEOUT` seconds to finish."""
        retired = [c for server in leaving for c in server.connections.values()]
        await self._wait_until_unused(retired, RETIRE_TIMEOUT)
        await _close_connections(retired)
        for server in leaving:
            server.log.close()

    def _new_server(self, spec: UpstreamSpec) -> ServerState:
        file = re.sub(r"[^A-Za-z0-9._-]", "_", spec.name) + ".log"
        path = self._logs / file if self._logs else None
        log = BoundedLog(path, limit=spec.log_bytes, redactor=Redactor(spec.secrets))
        return ServerState(spec, log)

    def get_spec(self, name: str) -> UpstreamSpec:
        """A server by its name. Raises `ConfigError` when there is none."""
        return self._get_server(name).spec

    def _get_server(self, name: str) -> ServerState:
        server = self._servers.get(name)
        if server is None:
            raise ConfigError(f"There is no server {name!r} in the configuration.", server=name)
        return server

    def _connections(self) -> Iterator[Connection]:
        for server in self._servers.values():
            yield from server.connections.values()

    # Opening connections.

    async def _acquire(self, server: ServerState, downstream: Downstream) -> Connection:
        deadline = anyio.current_time() + self.limits.wait
        # During each wait below the state may change: the era becomes known and with it the owner,
        # another request opens the connection, or it ends again. So each wait leads back to the
        # start.
        while True:
            owner = _find_owner(server, downstream)
            connection = server.connections.get(owner)
            if connection is None:
                if server.wait(owner, self._clock()) > 0:
                    raise server.build_unavailable(owner, self._clock(), caller=downstream.caller)
                full = self._find_full_group(server, owner, downstream.caller)
                if full is not None:
                    await self._make_room(server.spec.name, full, deadline)
                    continue
                connection = self._open(server, owner, downstream, server.era)
            if connection.is_usable:
                return connection
            if connection.settled.is_set():
                # Stopping, or it just died. It may hold what a new one needs, such as a lock on a
                # file, so its end comes first.
                connection.close()
                await connection.ended.wait()
                continue
            await connection.settled.wait()
            if connection.cause is not None:
                raise connection.build_refusal() or server.build_unavailable(
                    connection.owner, self._clock(), connection.cause, downstream.caller
                )

    def _open(
        self,
        server: ServerState,
        owner: Owner,
        downstream: Downstream | None,
        hint: Era | None,
        declared_capabilities: JsonObject | None = None,
    ) -> Connection:
        if self._tasks is None:
            raise UpstreamUnavailable("The gateway is shutting down.", server=server.spec.name)
        connection = Connection(
            server.spec,
            downstream,
            owner,
            open_transport=self._open_transport,
            log=server.log,
            listener=self._notify_listeners,
            declared_capabilities=declared_capabilities,
            era_hint=hint,
            on_ready=lambda ready: self._on_ready(server, ready, downstream),
            tokens=self.logins.tokens(server.spec) if self.logins else None,
        )
        connection.used_at = self._clock()
        # Registered before it is ready: requests that come meanwhile wait for it, and do not open
        # another one.
        server.connections[owner] = connection
        self._context.copy().run(self._tasks.start_soon, self._supervise, server, connection)
        return connection

    def _on_ready(
        self, server: ServerState, connection: Connection, downstream: Downstream | None
    ) -> None:
        """Learn a server's era, and hold the connection for the owner that goes with it."""
        server.era = connection.era
        server.version = connection.version
        server.latency = connection.latency
        server.record_success(connection.owner)
        owner = connection.owner if downstream is None else _find_owner(server, downstream)
        if owner == connection.owner:
            return
        server.remove(connection)
        if owner in server.connections or (connection.is_personal and not owner):
            # Another request was faster; or this one carries one caller's credential, and all
            # callers would share it. It is closed, and `_acquire` opens or finds the right one.
            server.connections[connection.owner] = connection
            connection.close()
        else:
            server.connections[owner] = connection
            connection.change_owner(owner)

    async def _supervise(self, server: ServerState, connection: Connection) -> None:
        """Run a connection to its end, and record how it ended."""
        began = self._clock()
        await connection.run()
        server.remove(connection)
        self._idle_or_ended.set()
        is_refused = connection.build_refusal() is not None
        if is_refused and connection.caller is None:
            server.refuses_strangers = True
        if connection.cause is not None and (is_refused or _is_visit(connection)):
            # No call failed, or a credential was refused that may have changed by the next call:
            # the next attempt need not wait.
            server.last_error = connection.cause
        elif connection.cause is not None:
            now = self._clock()
            server.record_failure(
                connection.owner, connection.cause, now=now, lived=now - began, roll=self._roll()
            )

    async def _notify_listeners(self, event: UpstreamEvent) -> None:
        for listener in self._listeners:
            try:
                await listener(event)
            except Exception:  # a listener that fails must not end the connection
                _log.exception("A listener failed at %s", event)

    # Room for another connection.

    def _find_full_group(
        self, server: ServerState, owner: Owner, caller: Caller
    ) -> _FullGroup | None:
        """The connections of which one must end before another can be opened, if there are such."""
        name = server.spec.name
        if server.spec.transport != "stdio":
            held = [c for c in server.connections.values() if not _is_visit(c)]
            if len(held) < self.limits.connections:
                return None
            return _FullGroup(held, f"{name} has {len(held)} connections in use already.")
        held = [c for c in self._connections() if c.spec.transport == "stdio" and not _is_visit(c)]
        if owner and not caller.is_local_user:
            # Checked first: a principal at its own limit gives up its own processes, never
            # another's.
            quota_owner = _quota_owner(caller)
            mine = [c for c in held if c.caller and _quota_owner(c.caller) == quota_owner]
            if len(mine) >= self.limits.per_principal:
                return _FullGroup(
                    mine,
                    f"{name} cannot be started: {len(mine)} server processes of yours are in use, "
                    f"the most that one user may have here (`max_processes_per_principal`).",
                )
        if len(held) >= self.limits.processes:
            return _FullGroup(
                held,
                f"{name} cannot be started: {len(held)} server processes are in use, the most that "
                f"this gateway may have (`max_processes`).",
            )
        return None

    async def _make_room(self, server: str, full: _FullGroup, deadline: float) -> None:
        """Stop the connection that was idle longest, or wait until one is idle.

        Raises:
            Busy: There is no room by the deadline.
        """
        idle = [c for c in full.members if c.is_idle]
        with anyio.CancelScope(deadline=deadline):
            if idle:
                longest = min(idle, key=lambda c: c.used_at)
                longest.close()
                await longest.ended.wait()
            else:
                await self._wait_for_idle_or_end()
            return
        raise Busy(f"{full.reason} Try again shortly.", server=server)

    async def _wait_until_unused(self, connections: list[Connection], patience: float) -> None:
        with anyio.move_on_after(patience):
            while any(connection.users for connection in connections):
                await self._wait_for_idle_or_end()

    async def _wait_for_idle_or_end(self) -> None:
        """Wait until any connection becomes idle, or ends."""
        # One event for all who wait: each looks again for itself at what has changed. It is not
        # replaced while it is unset, or those who wait for the old one would wait forever.
        if self._idle_or_ended.is_set():
            self._idle_or_ended = anyio.Event()
        await self._idle_or_ended.wait()


@dataclass(frozen=True, slots=True)
class _FullGroup:
    """Connections that leave no room for another, and how that is reported."""

    members: list[Connection]
    reason: str


def _find_owner(server: ServerState, downstream: Downstream) -> Owner:
    """The owner of the connection for a client, by all that is known of the server."""
    owner = find_owner(server.spec, server.era, downstream)
    if owner == _SHARED and server.refuses_strangers and server.spec.has_caller_headers:
        # A shared connection has no caller's credential, which this server requires.
        return principal_owner(downstream.caller)
    return owner


def _quota_owner(caller: Caller) -> str:
    """Whose limit a process counts towards: the principal's, or the session's without sign-in."""
    return f"session {caller.session}" if caller.anonymous else caller.principal


def _is_visit(connection: Connection) -> bool:
    return connection.owner[:1] == (_VISIT,)


async def _close_connections(connections: list[Connection]) -> None:
    """Close connections, all at once, and wait for their end."""
    for connection in connections:
        connection.close()
    for connection in connections:
        await connection.ended.wait()
