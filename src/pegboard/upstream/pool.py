"""The connections to all servers: opened on first use, shared, stopped when idle, opened again.

Who shares a connection with whom, and what is known of each server: `servers`.
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
from pegboard.errors import Busy, ConfigError, UpstreamUnavailable
from pegboard.upstream.catalog_entries import (
    PLAIN_CLIENT,
    ClientKind,
    capabilities_to_kind,
    kind_to_capabilities,
)
from pegboard.upstream.connection import Connection
from pegboard.upstream.downstream import Downstream, Owner
from pegboard.upstream.inbound_router import UpstreamEvent, UpstreamListener
from pegboard.upstream.server_log import BoundedLog
from pegboard.upstream.server_state import ServerState, UpstreamStatus
from pegboard.upstream.spec import UpstreamSpec
from pegboard.upstream.transports import OpenTransport, open_wire

SWEEP_INTERVAL = 5.0
RETIRE_TIMEOUT = 30.0
"""Seconds that calls under way have to end when their server leaves the configuration."""
ROOM_TIMEOUT = 5.0
"""Seconds that a caller waits for room when all connections that it could replace are in use."""

_VISIT = "visit"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """How many connections there may be; the one that was idle longest makes room for another."""

    processes: int = defaults.MAX_PROCESSES
    """Server processes, in all."""
    per_principal: int = defaults.MAX_PROCESSES_PER_PRINCIPAL
    """Server processes of one principal; the local user may have them all."""
    connections: int = 64
    """Connections to one server that is no process."""
    wait: float = ROOM_TIMEOUT


class ConnectionPool:
    """Connections to servers by name; an async context manager that owns all their tasks.

    `clock` and `roll` are the time and the dice of idle stops and retries.
    """

    def __init__(
        self,
        specs: Iterable[UpstreamSpec],
        *,
        logs: Path | None = None,
        open_wire: OpenTransport = open_wire,
        clock: Callable[[], float] = time.monotonic,
        roll: Callable[[], float] = random.random,
        limits: PoolLimits | None = None,
    ) -> None:
        self.limits = limits or PoolLimits()
        self._logs = logs
        self._listeners: list[UpstreamListener] = []
        self._visits = 0
        self._open_wire = open_wire
        self._clock = clock
        self._roll = roll
        self._servers = {spec.name: self._new_server(spec) for spec in specs}
        self._tasks: TaskGroup | None = None
        self._context = contextvars.Context()
        self._calm = anyio.Event()

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        # Connections outlive the request that opens them, and must not inherit its trace.
        self._context = contextvars.copy_context()
        self._tasks.start_soon(self._sweep_for_ever)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        tasks, self._tasks = self._tasks, None
        if tasks is None:
            return None
        if exc_val is None:
            await self._close_all()
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
    async def use(self, name: str, front: Downstream) -> AsyncGenerator[Connection]:
        """A ready connection to a server for this front, opened if there is none.

        Raises:
            UpstreamUnavailable: it cannot be reached, or failed too recently to be tried again.
        """
        connection = await self._acquire(self._server(name), front)
        with self.hold(connection):
            yield connection

    @contextmanager
    def hold(self, connection: Connection) -> Generator[None]:
        """Keep a connection from being stopped as idle while the block runs."""
        connection.users += 1
        try:
            yield
        finally:
            connection.users -= 1
            connection.used_at = self._clock()
            if connection.users == 0:
                self._calm.set()

    def live(self, name: str, owner: Owner | None = None) -> list[Connection]:
        """The connections to a server that are ready now; of one owner, or all."""
        return [
            connection
            for connection in self._server(name).connections.values()
            if connection.is_usable
            and not _is_visit(connection)
            and owner in (None, connection.lane)
        ]

    def listen(self, listener: UpstreamListener) -> None:
        """Have a listener told what servers announce."""
        self._listeners.append(listener)

    @asynccontextmanager
    async def visit(
        self, name: str, kinds: Sequence[ClientKind] = (PLAIN_CLIENT,)
    ) -> AsyncGenerator[Connection]:
        """A connection for a look at a server: a live one, else one that ends with the block.

        A connection of one of several people is not used: its process lists what that person made
        of it, and a catalog is for everybody.
        A legacy server may list by what its client declares: only a connection of one of these
        kinds will do, and a new one is of the first.

        Raises:
            UpstreamUnavailable: it cannot be reached.
        """
        server = self._server(name)
        for live in self.live(name):
            fits = live.era == "modern" or capabilities_to_kind(live.declared) in kinds
            if fits and not live.is_personal:
                with self.hold(live):
                    yield live
                return
        self._visits += 1
        lane = (_VISIT, str(self._visits))
        hint = server.era if kinds[0] else None  # a look for everybody asks for the era again
        connection = self._launch(server, lane, None, hint, kind_to_capabilities(kinds[0]))
        try:
            await connection.settled.wait()
            if connection.cause is not None:
                raise server.unavailable(lane, self._clock(), connection.cause)
            yield connection
        finally:
            connection.close()
            await connection.over.wait()

    def learn(self, name: str, era: Era) -> None:
        """Record a server's era as a kept catalogue knows it, to save the question."""
        server = self._server(name)
        server.era = server.era or era

    def status(self) -> list[UpstreamStatus]:
        """Every server at a glance, in the order of the configuration."""
        now = self._clock()
        return [server.status(now) for server in self._servers.values()]

    # Ending things.

    async def sweep(self) -> None:
        """Stop what has been idle for too long by now."""
        now = self._clock()
        for server in self._servers.values():
            server.forget_old_failures(now)
            limit = server.spec.idle_stop
            for connection in server.connections.values():
                if limit > 0 and connection.is_idle and now - connection.used_at >= limit:
                    connection.close()

    async def stop(self, name: str) -> None:
        """End all connections to a server, and its processes; the next call starts it again."""
        await _close_connections(list(self._server(name).connections.values()))

    async def end_session(self, session: str) -> None:
        """End the connections that served one front session."""
        owner: Owner = ("session", session)
        mine = [s.connections[owner] for s in self._servers.values() if owner in s.connections]
        await _close_connections(mine)
        for server in self._servers.values():
            server.forget(owner)

    async def drain(self, patience: float) -> None:
        """Wait until no call is in flight, for at most `patience` seconds."""
        await self._calm_down(list(self._connections()), patience)

    async def replace(self, specs: Iterable[UpstreamSpec]) -> None:
        """Take a new configuration: what is gone or changed is ended, the rest goes on."""
        await self.retire(self.exchange(specs))

    def exchange(self, specs: Iterable[UpstreamSpec]) -> list[ServerState]:
        """Have new calls go by a new configuration; what is left over is for `retire`."""
        wanted = {spec.name: spec for spec in specs}
        leaving = [s for s in self._servers.values() if wanted.get(s.spec.name) != s.spec]
        kept = {s.spec.name: s for s in self._servers.values() if s not in leaving}
        self._servers = {n: kept.get(n) or self._new_server(spec) for n, spec in wanted.items()}
        return leaving

    async def retire(self, leaving: list[ServerState]) -> None:
        """End servers that left the configuration; calls under way have `RETIRE_TIME` to end."""
        retired = [c for server in leaving for c in server.connections.values()]
        await self._calm_down(retired, RETIRE_TIMEOUT)
        await _close_connections(retired)
        for server in leaving:
            server.log.close()

    # Its works.

    def _new_server(self, spec: UpstreamSpec) -> ServerState:
        file = re.sub(r"[^A-Za-z0-9._-]", "_", spec.name) + ".log"
        path = self._logs / file if self._logs else None
        log = BoundedLog(path, limit=spec.log_bytes, redactor=Redactor(spec.secrets))
        return ServerState(spec, log)

    def _server(self, name: str) -> ServerState:
        server = self._servers.get(name)
        if server is None:
            raise ConfigError(f"There is no server {name!r} in the configuration.", server=name)
        return server

    def _connections(self) -> Iterator[Connection]:
        for server in self._servers.values():
            yield from server.connections.values()

    async def _acquire(self, server: ServerState, front: Downstream) -> Connection:
        deadline = anyio.current_time() + self.limits.wait
        while True:
            lane = server.lane(front)
            connection = server.connections.get(lane)
            if connection is None:
                if server.wait(lane, self._clock()) > 0:
                    raise server.unavailable(lane, self._clock(), caller=front.caller)
                if (crowd := self._crowd(server, lane, front.caller)) is not None:
                    await self._make_room(crowd, deadline)
                    continue
                connection = self._launch(server, lane, front, server.era)
            if connection.is_usable:
                return connection
            if connection.settled.is_set():  # stopping, or just died: its end comes first
                connection.close()
                await connection.over.wait()
                continue
            await connection.settled.wait()
            if connection.cause is not None:
                raise server.unavailable(
                    connection.lane, self._clock(), connection.cause, front.caller
                )

    def _launch(
        self,
        server: ServerState,
        lane: Owner,
        front: Downstream | None,
        hint: Era | None,
        declared: JsonObject | None = None,
    ) -> Connection:
        if self._tasks is None:
            raise UpstreamUnavailable("The gateway is shutting down.", server=server.spec.name)
        connection = Connection(
            server.spec,
            front,
            lane,
            open_wire=self._open_wire,
            log=server.log,
            listener=self._tell,
            declared=declared,
            hint=hint,
            on_ready=lambda ready: self._note_ready(server, ready, front),
        )
        connection.used_at = self._clock()
        server.connections[lane] = connection
        self._context.copy().run(self._tasks.start_soon, self._supervise, server, connection)
        return connection

    # Room for another connection.

    def _crowd(self, server: ServerState, lane: Owner, caller: Caller) -> _Crowd | None:
        """Those of whom one must end before another connection can be opened, if there are such."""
        name = server.spec.name
        if server.spec.transport != "stdio":
            held = [c for c in server.connections.values() if not _is_visit(c)]
            full = f"{name} has {len(held)} connections in use already."
            return _Crowd(name, held, full) if len(held) >= self.limits.connections else None
        held = [c for c in self._connections() if c.spec.transport == "stdio" and not _is_visit(c)]
        if lane and not caller.is_local_user:
            who = _quota_owner(caller)
            mine = [c for c in held if c.caller is not None and _quota_owner(c.caller) == who]
            if len(mine) >= self.limits.per_principal:
                full = (
                    f"{name} cannot be started: {len(mine)} server processes of yours are in use, "
                    f"the most that one user may have here (`max_processes_per_principal`)."
                )
                return _Crowd(name, mine, full)
        if len(held) >= self.limits.processes:
            full = (
                f"{name} cannot be started: {len(held)} server processes are in use, the most that "
                f"this gateway may have (`max_processes`)."
            )
            return _Crowd(name, held, full)
        return None

    async def _make_room(self, crowd: _Crowd, deadline: float) -> None:
        """Stop the connection that was idle longest, or wait until one is idle.

        Raises:
            Busy: there is no room by the deadline.
        """
        idle = [c for c in crowd.members if c.is_idle]
        with anyio.CancelScope(deadline=deadline):
            if idle:
                longest = min(idle, key=lambda c: c.used_at)
                longest.close()
                await longest.over.wait()
            else:
                await self._next_change()
            return
        raise Busy(f"{crowd.full} Try again shortly.", server=crowd.server)

    async def _next_change(self) -> None:
        """Wait until a connection becomes idle, or ends."""
        if self._calm.is_set():
            self._calm = anyio.Event()
        await self._calm.wait()

    async def _tell(self, event: UpstreamEvent) -> None:
        for listener in self._listeners:
            try:
                await listener(event)
            except Exception:  # what a listener makes of the news is no matter of the connection
                _log.exception("A listener failed at %s", event)

    def _note_ready(
        self, server: ServerState, connection: Connection, front: Downstream | None
    ) -> None:
        """Learn a server's era, and move the connection to where its fronts look for it."""
        server.era = connection.era
        server.version = connection.version
        server.latency = connection.latency
        server.note_success(connection.lane)
        lane = connection.lane if front is None else server.lane(front)
        if lane == connection.lane:
            return
        server.remove(connection)
        if lane in server.connections or (connection.is_personal and not lane):
            # Another was faster, or it has one caller's credential and everybody's is needed.
            server.connections[connection.lane] = connection
            connection.close()
        else:
            server.connections[lane] = connection
            connection.move(lane)

    async def _supervise(self, server: ServerState, connection: Connection) -> None:
        began = self._clock()
        await connection.run()
        server.remove(connection)
        self._calm.set()
        if connection.cause is not None and _is_visit(connection):
            server.last_error = connection.cause
        elif connection.cause is not None:
            now = self._clock()
            server.note_failure(
                connection.lane, connection.cause, now=now, lived=now - began, roll=self._roll()
            )

    async def _sweep_for_ever(self) -> None:
        while True:
            await anyio.sleep(SWEEP_INTERVAL)
            await self.sweep()

    async def _calm_down(self, connections: list[Connection], patience: float) -> None:
        with anyio.move_on_after(patience):
            while any(connection.users for connection in connections):
                await self._next_change()

    async def _close_all(self) -> None:
        await _close_connections(list(self._connections()))


@dataclass(frozen=True, slots=True)
class _Crowd:
    """Connections that leave no room for another; `full` says so to whoever wanted one."""

    server: str
    members: list[Connection]
    full: str


def _quota_owner(caller: Caller) -> str:
    """Whom a process counts for: the principal, or the session where nobody signs in."""
    return f"session {caller.session}" if caller.anonymous else caller.principal


def _is_visit(connection: Connection) -> bool:
    return connection.lane[:1] == (_VISIT,)


async def _close_connections(connections: list[Connection]) -> None:
    """Have connections end, all at once, and wait for it."""
    for connection in connections:
        connection.close()
    for connection in connections:
        await connection.over.wait()
