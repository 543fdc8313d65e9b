"""Running a gateway: on stdio or HTTP, until it is told to stop; reloaded when its files change.

SIGTERM, SIGINT   no new work; calls under way are finished; then all servers are stopped
SIGHUP, a file    the configuration is read again; what is wrong with it leaves all as it is
"""

from __future__ import annotations

import logging
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
from pegboard.gateway.background_tasks import log_failure, run_supervised
from pegboard.gateway.config_source import ConfigSource, find_restart_settings
from pegboard.gateway.from_settings import build_auth, build_observability
from pegboard.gateway.gateway import Gateway
from pegboard.modes.mode import META_TOOL_NAMES
from pegboard.observe.event_journal import open_journal
from pegboard.observe.logs import (
    collect_secrets,
    limit_repeated_lines,
    log_json,
    log_text,
    print_line,
    print_problems,
    print_progress,
)
from pegboard.upstream.catalog_cache import CatalogCache

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from pegboard.server.early_answers import AnswerRecord, Answers, FirstExchange
    from pegboard.server.http_server import HttpServer

WATCH_INTERVAL = 1.0
"""Seconds between two looks at the times of the configuration's files."""
SHUTDOWN_TIMEOUT = 30.0
"""Seconds that calls under way are given when the gateway is told to stop."""
KEEP_ALIVE_TIMEOUT = 75
"""Seconds for an idle connection: longer than load balancers and clients keep one."""
EXIT_FAILED = 1
"""The status of a process that could not serve."""
WRITE_TIME = 0.1
"""Seconds for the last answers to leave, once the last call is over."""

logger = logging.getLogger(__name__)

Stop: TypeAlias = Callable[[], Coroutine[None, None, None]]
"""Finishes what is under way and ends the serving."""


class GatewayRunner:
    """One gateway, served once."""

    def __init__(self, opening: ConfigSource, *, patience: float = SHUTDOWN_TIMEOUT) -> None:
        self.opening = opening
        configuration = opening.read()
        self._started_with = configuration.settings
        self.redactor = Redactor(collect_secrets(configuration))
        print_problems(configuration)
        self.gateway = Gateway(
            configuration,
            folder=opening.folder(configuration),
            progress=print_progress,
            observing=build_observability(configuration.settings, opening.path.parent),
        )
        self._patience = patience

    async def on_stdio(self, first: FirstExchange | None = None) -> None:
        """Serve one client on standard input and output; `pegboard ui` can follow its calls."""
        if first is not None:
            first.when_over = partial(self._record_answers, first.record)
        folder = self.opening.folder(self.gateway.configuration)
        with open_journal(folder, self.opening.path) as journal:
            board = self.gateway.board
            observers = (*board.parts.observers, journal)
            board.parts = replace(board.parts, observers=observers)
            await self._on_stdio(first)

    async def _on_stdio(self, first: FirstExchange | None) -> None:
        from pegboard.gateway.mcp_server import build_gateway_server
        from pegboard.server.stdio import serve_on_stdio

        self.gateway.has_one_session = True
        async with self.gateway, anyio.create_task_group() as tasks:

            async def stop() -> None:
                await self.gateway.work.finished(self._patience)
                await anyio.sleep(WRITE_TIME)
                tasks.cancel_scope.cancel()

            server = build_gateway_server(self.gateway, environ=self.opening.environ)
            async with self._attended(stop):
                await serve_on_stdio(server, first)
            tasks.cancel_scope.cancel()

    def _record_answers(self, record: AnswerRecord, answers: Answers) -> None:
        """Save the answers to a client's first requests for the next start, if they will hold."""
        settings = self.gateway.configuration.settings
        has_shared_store = not settings.store.url.startswith("memory:")
        try:
            if (
                has_shared_store
                or not self.gateway.knows_all_servers
                or not self._will_hold(answers)
            ):
                record.forget()
            elif any(record.answers.get(key) != result for key, result in answers.items()):
                record.save(answers, self._files_behind_answers())
        except OSError as exc:
            logger.info("The first answers could not be saved: %s", exc)

    def _will_hold(self, answers: Answers) -> bool:
        """Whether these answers depend on files alone: not on other replicas, servers or URLs."""
        configuration = self.gateway.configuration
        has_shared_store = not configuration.settings.store.url.startswith("memory:")
        if has_shared_store or not self.gateway.knows_all_servers:
            return False
        names = [tool["name"] for result in answers.values() for tool in result.get("tools", ())]
        return not configuration.sources or META_TOOL_NAMES.issuperset(names)

    def _files_behind_answers(self) -> list[Path]:
        configuration = self.gateway.configuration
        cache = CatalogCache(self.opening.folder(configuration) / "catalogues")
        files = [*configuration.files, *map(cache.path, configuration.upstreams)]
        if lock := configuration.settings.trust.lock:
            files.append(self.opening.path.parent / Path(lock).expanduser())
        return files

    async def on_http(self, host: str, port: int, sock: socket.socket | None = None) -> bool:
        """Serve streamable HTTP, on a socket that listens already where one is given.

        Returns whether it ended because it was told to; else it could not start, or go on.
        """
        from pegboard.gateway.http_app import build_gateway_app
        from pegboard.sockets import bind_sockets

        sockets = bind_sockets(host, port) if sock is None else [sock]
        app = build_gateway_app(self.gateway, host, environ=self.opening.environ)
        server = _build_http_server(app, self.gateway.configuration)

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
            print_line(f"The gateway ended because of a failure: {self.gateway.failure!r}")
        return server.started and self.gateway.failure is None

    @asynccontextmanager
    async def _attended(self, stop: Stop) -> AsyncGenerator[None]:
        """Listen to signals and watch the files while the block runs."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._listen, stop)
            tasks.start_soon(run_supervised, "Watching the configuration", self._watch)
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
        seen = _modification_times(self.gateway.configuration)
        while True:
            await anyio.sleep(WATCH_INTERVAL)
            now = _modification_times(self.gateway.configuration)
            if now != seen:
                await anyio.sleep(WATCH_INTERVAL / 4)  # editors write in several steps
                seen = _modification_times(self.gateway.configuration)
                await self.reload()

    async def reload(self) -> None:
        """Read the configuration again and take it, unless it is wrong."""
        try:
            configuration = await to_thread.run_sync(self.opening.read)
            build_auth(configuration.settings)
        except ConfigError as exc:
            print_line(f"The configuration was changed and is not taken: {exc.message}")
            return
        self.redactor.learn(collect_secrets(configuration))
        print_problems(configuration)
        try:
            await self.gateway.reload(configuration)
        except Exception as exc:  # what was taken of it stays, and it can be changed again
            log_failure("The changed configuration could not be taken whole", exc)
            return
        print_line(f"The configuration was read again: {len(configuration.upstreams)} servers.")
        if waiting := find_restart_settings(self._started_with, configuration.settings):
            print_line(f"These changes need a restart and do not count yet: {', '.join(waiting)}.")


def serve_gateway(
    opening: ConfigSource,
    *,
    http: str | None = None,
    workers: int = 1,
    first: FirstExchange | None = None,
) -> None:
    """Serve a configuration until stopped, by so many processes.

    Raises:
        ConfigError: It cannot be read, or the address is not valid.
    """
    if http is None:
        anyio.run(_prepare_runner(opening).on_stdio, first)
        return
    from pegboard.server.serving import parse_address

    host, port = parse_address(http)
    if workers > 1:
        _serve_with_workers(opening, host, port, workers)
    elif not anyio.run(_prepare_runner(opening).on_http, host, port):
        sys.exit(EXIT_FAILED)


def _prepare_runner(opening: ConfigSource) -> GatewayRunner:
    serving = GatewayRunner(opening)
    if serving.gateway.configuration.settings.observe.log == "json":
        log_json(sys.stderr, redactor=serving.redactor)
    else:
        log_text(serving.redactor)
    limit_repeated_lines()
    return serving


def _serve_with_workers(opening: ConfigSource, host: str, port: int, count: int) -> None:
    from pegboard.gateway.workers import Workers
    from pegboard.server.auth import refuse_exposure

    settings = opening.read().settings
    if settings.store.url.startswith("memory:"):
        raise ConfigError(
            "Workers share their state through a store: give `--store redis://...`, or set `url` "
            "under [store]."
        )
    allowed = settings.http.unauthenticated
    refuse_exposure(host, build_auth(settings), opening.environ, allowed=allowed)
    plain = replace(opening, environ=dict(opening.environ))
    Workers(partial(_run_worker, plain, host, port), host, port, count).run()


def _run_worker(opening: ConfigSource, host: str, port: int, sock: socket.socket) -> None:
    if not anyio.run(_prepare_runner(opening).on_http, host, port, sock):
        sys.exit(EXIT_FAILED)


def _modification_times(configuration: Configuration) -> tuple[int | None, ...]:
    return tuple(_modification_time(path) for path in configuration.files)


def _modification_time(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _build_http_server(app: Starlette, configuration: Configuration) -> HttpServer:
    from contextlib import nullcontext

    from pegboard.server.http_server import ConnectionLimits, HttpServer

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
    server = Server(app, keep_alive=KEEP_ALIVE_TIMEOUT, limits=limits)
    limit_repeated_lines()  # uvicorn has set up its own log now
    return server
