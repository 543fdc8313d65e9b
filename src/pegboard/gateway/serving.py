"""Running a gateway: on stdio or HTTP, until it is told to stop; reloaded when its files change.

SIGTERM, SIGINT   no new work; calls under way are finished; then all servers are stopped
SIGHUP, a file    the configuration is read again; what is wrong with it leaves all as it is
"""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import anyio
from anyio import to_thread

from pegboard.config import Configuration
from pegboard.core.redaction import Redactor
from pegboard.errors import ConfigError
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.governing import auth_of
from pegboard.gateway.journals import journal_of
from pegboard.gateway.observing import observing_of
from pegboard.gateway.opening import Opening
from pegboard.gateway.reporting import report, say, say_progress, say_warnings, secrets_of
from pegboard.gateway.restarts import waiting_for_restart
from pegboard.gateway.supervision import log_failure, supervised
from pegboard.observe.log import limit_lines, log_to

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from pegboard.server.listening import HttpServer

WATCH_EVERY = 1.0
"""Seconds between two looks at the times of the configuration's files."""
PATIENCE = 30.0
"""Seconds that calls under way are given when the gateway is told to stop."""
KEEP_ALIVE = 75
"""Seconds for an idle connection: longer than load balancers and clients keep one."""
EXIT_FAILED = 1
"""The status of a process that could not serve."""
WRITE_TIME = 0.1
"""Seconds for the last answers to leave, once the last call is over."""


Stop: TypeAlias = Callable[[], Coroutine[None, None, None]]
"""Finishes what is under way and ends the serving."""


class Serving:
    """One gateway, served once."""

    def __init__(self, opening: Opening, *, patience: float = PATIENCE) -> None:
        self.opening = opening
        configuration = opening.read()
        self._started_with = configuration.settings
        self.redactor = Redactor(secrets_of(configuration))
        report(configuration)
        self.gateway = Gateway(
            configuration,
            folder=opening.folder(configuration),
            progress=say_progress,
            observing=observing_of(configuration.settings, opening.path.parent),
        )
        self._patience = patience

    async def on_stdio(self) -> None:
        """Serve one client on standard input and output; `pegboard ui` can follow its calls."""
        folder = self.opening.folder(self.gateway.configuration)
        with journal_of(folder, self.opening.path) as journal:
            board = self.gateway.board
            observers = (*board.parts.observers, journal)
            board.parts = replace(board.parts, observers=observers)
            await self._on_stdio()

    async def _on_stdio(self) -> None:
        from pegboard.gateway.server import build_server
        from pegboard.server.stdio import serve_on_stdio

        self.gateway.has_one_session = True
        async with self.gateway, anyio.create_task_group() as tasks:

            async def stop() -> None:
                await self.gateway.work.finished(self._patience)
                await anyio.sleep(WRITE_TIME)
                tasks.cancel_scope.cancel()

            server = build_server(self.gateway, environ=self.opening.environ)
            async with self._attended(stop):
                await serve_on_stdio(server)
            tasks.cancel_scope.cancel()

    async def on_http(self, host: str, port: int, sock: socket.socket | None = None) -> bool:
        """Serve streamable HTTP, on a socket that listens already where one is given.

        Returns whether it ended because it was told to; else it could not start, or go on.
        """
        from pegboard.gateway.http import gateway_app
        from pegboard.server.listening import bound

        sockets = bound(host, port) if sock is None else [sock]
        app = gateway_app(self.gateway, host, environ=self.opening.environ)
        server = _http_server(app, self.gateway.configuration)

        async def stop() -> None:
            for listening in server.servers:
                listening.close()
            await self.gateway.work.finished(self._patience)
            server.should_exit = True

        async def end_when_failed() -> None:
            await self.gateway.failed.wait()
            server.should_exit = True  # a process that cannot serve must not look as if it could

        async with self._attended(stop), anyio.create_task_group() as tasks:
            tasks.start_soon(end_when_failed)
            await server.serve(sockets=sockets)
            tasks.cancel_scope.cancel()
        if self.gateway.failure is not None:
            say(f"The gateway ended because of a failure: {self.gateway.failure!r}")
        return server.started and self.gateway.failure is None

    @asynccontextmanager
    async def _attended(self, stop: Stop) -> AsyncGenerator[None]:
        """Listen to signals and watch the files while the block runs."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._listen, stop)
            tasks.start_soon(supervised, "Watching the configuration", self._watch)
            yield
            tasks.cancel_scope.cancel()

    async def _listen(
        self,
        stop: Stop,
        *,
        task_status: anyio.abc.TaskStatus[None],
    ) -> None:
        if sys.platform == "win32":
            task_status.started()
            return
        async with anyio.create_task_group() as tasks:
            with anyio.open_signal_receiver(
                signal.SIGTERM, signal.SIGINT, signal.SIGHUP
            ) as received:
                task_status.started()
                async for number in received:
                    if number == signal.SIGHUP:
                        tasks.start_soon(self.reload)
                    else:
                        tasks.start_soon(stop)

    async def _watch(self) -> None:
        """Reload when a file of the configuration has changed and has been left alone since."""
        seen = _times(self.gateway.configuration)
        while True:
            await anyio.sleep(WATCH_EVERY)
            now = _times(self.gateway.configuration)
            if now != seen:
                await anyio.sleep(WATCH_EVERY / 4)  # editors write in several steps
                seen = _times(self.gateway.configuration)
                await self.reload()

    async def reload(self) -> None:
        """Read the configuration again and take it, unless it is wrong."""
        try:
            configuration = await to_thread.run_sync(self.opening.read)
            auth_of(configuration.settings)
        except ConfigError as exc:
            say(f"The configuration was changed and is not taken: {exc.message}")
            return
        self.redactor.learn(secrets_of(configuration))
        report(configuration)
        try:
            await self.gateway.reload(configuration)
        except Exception as exc:  # what was taken of it stays, and it can be changed again
            log_failure("The changed configuration could not be taken whole", exc)
            return
        say(f"The configuration was read again: {len(configuration.upstreams)} servers.")
        if waiting := waiting_for_restart(self._started_with, configuration.settings):
            say(f"These changes need a restart and do not count yet: {', '.join(waiting)}.")


def serve(opening: Opening, *, http: str | None = None, workers: int = 1) -> None:
    """Serve a configuration until stopped, by so many processes.

    Raises:
        ConfigError: It cannot be read, or the address is none.
    """
    if http is None:
        anyio.run(_serving(opening).on_stdio)
        return
    from pegboard.server.serve import host_and_port

    host, port = host_and_port(http)
    if workers > 1:
        _serve_by_workers(opening, host, port, workers)
    elif not anyio.run(_serving(opening).on_http, host, port):
        sys.exit(EXIT_FAILED)


def _serving(opening: Opening) -> Serving:
    serving = Serving(opening)
    if serving.gateway.configuration.settings.observe.log == "json":
        log_to(sys.stderr, redactor=serving.redactor)
    else:
        say_warnings(serving.redactor)
    limit_lines()
    return serving


def _serve_by_workers(opening: Opening, host: str, port: int, count: int) -> None:
    from pegboard.gateway.workers import Workers
    from pegboard.server.auth import refuse_exposure

    settings = opening.read().settings
    if settings.store.url.startswith("memory:"):
        raise ConfigError(
            "Workers share their state through a store: give `--store redis://...`, or set `url` "
            "under [store]."
        )
    allowed = settings.http.unauthenticated
    refuse_exposure(host, auth_of(settings), opening.environ, allowed=allowed)
    plain = replace(opening, environ=dict(opening.environ))
    Workers(partial(_work, plain, host, port), host, port, count).run()


def _work(opening: Opening, host: str, port: int, sock: socket.socket) -> None:
    if not anyio.run(_serving(opening).on_http, host, port, sock):
        sys.exit(EXIT_FAILED)


def _times(configuration: Configuration) -> tuple[int | None, ...]:
    return tuple(_time(path) for path in configuration.files)


def _time(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _http_server(app: Starlette, configuration: Configuration) -> HttpServer:
    from contextlib import nullcontext

    from pegboard.server.connections import ConnectionLimits
    from pegboard.server.listening import HttpServer

    class Server(HttpServer):
        """Leaves signals to the gateway, which has calls to finish first."""

        def capture_signals(self) -> nullcontext[None]:  # pyright: ignore[reportIncompatibleMethodOverride] no signals, no generator
            return nullcontext()

    http = configuration.settings.http
    limits = ConnectionLimits(
        header_timeout=http.header_timeout,
        body_timeout=http.body_timeout,
        write_timeout=http.write_timeout,
        connections=http.max_connections,
    )
    server = Server(app, keep_alive=KEEP_ALIVE, limits=limits)
    limit_lines()  # uvicorn has set up its own log now
    return server
