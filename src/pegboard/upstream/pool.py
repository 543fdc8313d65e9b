"""The connections to all servers: opened on first use, shared, stopped when idle, opened again.

Who shares a connection with whom, and what is known of each server: `servers`.
"""

from __future__ import annotations

import contextvars
import logging
import random
import re
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup

from pegboard.core.calls import Era
from pegboard.core.redaction import Redactor
from pegboard.errors import Busy, ConfigError, UpstreamUnavailable
from pegboard.upstream.connection import Connection
from pegboard.upstream.fronts import Front, Owner
from pegboard.upstream.servers import Server, UpstreamStatus
from pegboard.upstream.spec import UpstreamSpec
from pegboard.upstream.stderr import BoundedLog
from pegboard.upstream.switchboard import Listener, UpstreamEvent
from pegboard.upstream.wires import OpenWire, open_wire

SWEEP_EVERY = 5.0
RETIRE_TIME = 30.0
"""Seconds that calls under way have to end when their server leaves the configuration."""
MOST_CONNECTIONS = 64
"""The most connections to one server; the one that was idle longest makes room."""

_VISIT = "visit"
_log = logging.getLogger(__name__)


class Pool:
    """Connections to servers by name; an async context manager that owns all their tasks.

    `clock` and `roll` are the time and the dice of idle stops and retries.
    """

    def __init__(
        self,
        specs: Iterable[UpstreamSpec],
        *,
        logs: Path | None = None,
        open_wire: OpenWire = open_wire,
        clock: Callable[[], float] = time.monotonic,
        roll: Callable[[], float] = random.random,
        most: int = MOST_CONNECTIONS,
    ) -> None:
        self._logs = logs
        self._listeners: list[Listener] = []
        self._visits = 0
        self._open_wire = open_wire
        self._clock = clock
        self._roll = roll
        self._most = most
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
    async def use(self, name: str, front: Front) -> AsyncGenerator[Connection]:
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
        found = self._server(name).connections
        return [
            connection
            for lane, connection in found.items()
            if connection.is_usable and lane[:1] != (_VISIT,) and owner in (None, lane)
        ]

    def listen(self, listener: Listener) -> None:
        """Have a listener told what servers announce."""
        self._listeners.append(listener)

    @asynccontextmanager
    async def visit(self, name: str) -> AsyncGenerator[Connection]:
        """A connection for a look at a server: a live one, else one that ends with the block.

        Raises:
            UpstreamUnavailable: it cannot be reached.
        """
        server = self._server(name)
        if live := self.live(name):
            with self.hold(live[0]):
                yield live[0]
            return
        self._visits += 1
        connection = self._launch(server, (_VISIT, str(self._visits)), None, None)
        try:
            await connection.settled.wait()
            if connection.cause is not None:
                raise server.unavailable(self._clock(), connection.cause)
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
            limit = server.spec.idle_stop
            for connection in server.connections.values():
                used = connection.users > 0 or bool(connection.watched)
                idle = not used and now - connection.used_at >= limit
                if limit > 0 and idle and connection.state == "ready":
                    connection.close()

    async def stop(self, name: str) -> None:
        """End all connections to a server, and its processes; the next call starts it again."""
        await _closed(list(self._server(name).connections.values()))

    async def end_session(self, session: str) -> None:
        """End the connections that served one front session."""
        owner: Owner = ("session", session)
        mine = [s.connections[owner] for s in self._servers.values() if owner in s.connections]
        await _closed(mine)

    async def drain(self, patience: float) -> None:
        """Wait until no call is in flight, for at most `patience` seconds."""
        await self._calm_down(list(self._connections()), patience)

    async def replace(self, specs: Iterable[UpstreamSpec]) -> None:
        """Take a new configuration: what is gone or changed is ended, the rest goes on."""
        await self.retire(self.exchange(specs))

    def exchange(self, specs: Iterable[UpstreamSpec]) -> list[Server]:
        """Have new calls go by a new configuration; what is left over is for `retire`."""
        wanted = {spec.name: spec for spec in specs}
        leaving = [s for s in self._servers.values() if wanted.get(s.spec.name) != s.spec]
        kept = {s.spec.name: s for s in self._servers.values() if s not in leaving}
        self._servers = {n: kept.get(n) or self._new_server(spec) for n, spec in wanted.items()}
        return leaving

    async def retire(self, leaving: list[Server]) -> None:
        """End servers that left the configuration; calls under way have `RETIRE_TIME` to end."""
        retired = [c for server in leaving for c in server.connections.values()]
        await self._calm_down(retired, RETIRE_TIME)
        await _closed(retired)
        for server in leaving:
            server.log.close()

    # Its works.

    def _new_server(self, spec: UpstreamSpec) -> Server:
        file = re.sub(r"[^A-Za-z0-9._-]", "_", spec.name) + ".log"
        path = self._logs / file if self._logs else None
        log = BoundedLog(path, limit=spec.log_bytes, redactor=Redactor(spec.secrets))
        return Server(spec, log)

    def _server(self, name: str) -> Server:
        server = self._servers.get(name)
        if server is None:
            raise ConfigError(f"There is no server {name!r} in the configuration.", server=name)
        return server

    def _connections(self) -> Iterator[Connection]:
        for server in self._servers.values():
            yield from server.connections.values()

    async def _acquire(self, server: Server, front: Front) -> Connection:
        while True:
            lane = server.lane(front)
            connection = server.connections.get(lane)
            if connection is None:
                connection = self._open(server, lane, front)
            if connection.is_usable:
                return connection
            if connection.settled.is_set():  # stopping, or just died: its end comes first
                connection.close()
                await connection.over.wait()
                continue
            await connection.settled.wait()
            if connection.cause is not None:
                raise server.unavailable(self._clock(), connection.cause)

    def _open(self, server: Server, lane: Owner, front: Front) -> Connection:
        if server.health.wait(self._clock()) > 0:
            raise server.unavailable(self._clock())
        self._make_room(server)
        return self._launch(server, lane, front, server.era)

    def _launch(
        self, server: Server, lane: Owner, front: Front | None, hint: Era | None
    ) -> Connection:
        if self._tasks is None:
            raise UpstreamUnavailable("The gateway is shutting down.", server=server.spec.name)
        connection = Connection(
            server.spec,
            open_wire=self._open_wire,
            log=server.log,
            listener=self._tell,
            patron=None if server.asks_nobody else front,
            hint=hint,
            on_ready=lambda ready: self._note_ready(server, ready, front),
        )
        connection.used_at = self._clock()
        server.connections[lane] = connection
        self._context.copy().run(self._tasks.start_soon, self._supervise, server, connection)
        return connection

    def _make_room(self, server: Server) -> None:
        counted = [c for c in server.connections.values() if c.state != "stopping"]
        if len(counted) < self._most:
            return
        idle = [c for c in counted if c.users == 0 and c.state == "ready"]
        if not idle:
            name = server.spec.name
            raise Busy(f"{name} has {self._most} connections in use already.", server=name)
        min(idle, key=lambda c: c.used_at).close()

    async def _tell(self, event: UpstreamEvent) -> None:
        for listener in self._listeners:
            try:
                await listener(event)
            except Exception:  # what a listener makes of the news is no matter of the connection
                _log.exception("A listener failed at %s", event)

    def _note_ready(self, server: Server, connection: Connection, front: Front | None) -> None:
        """Learn a server's era, and move the connection to where its fronts look for it."""
        server.era = connection.era
        server.version = connection.version
        server.latency = connection.latency
        server.health = server.health.after_success()
        if front is not None:
            server.remove(connection)
            server.connections[server.lane(front)] = connection

    async def _supervise(self, server: Server, connection: Connection) -> None:
        began = self._clock()
        await connection.run()
        server.remove(connection)
        if connection.cause is not None:
            now = self._clock()
            server.health = server.health.after_failure(
                connection.cause, now=now, lived=now - began, roll=self._roll()
            )

    async def _sweep_for_ever(self) -> None:
        while True:
            await anyio.sleep(SWEEP_EVERY)
            await self.sweep()

    async def _calm_down(self, connections: list[Connection], patience: float) -> None:
        with anyio.move_on_after(patience):
            while any(connection.users for connection in connections):
                if self._calm.is_set():
                    self._calm = anyio.Event()
                await self._calm.wait()

    async def _close_all(self) -> None:
        await _closed(list(self._connections()))


async def _closed(connections: list[Connection]) -> None:
    """Have connections end, all at once, and wait for it."""
    for connection in connections:
        connection.close()
    for connection in connections:
        await connection.over.wait()
