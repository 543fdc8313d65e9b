"""Run a gateway on stdio or HTTP until it is stopped, and reload its configuration.

    SIGTERM, SIGINT          no new requests; calls in progress are finished; servers are stopped
    SIGHUP, a changed file   the configuration is read again; a wrong one changes nothing

With several workers, each worker process runs a gateway like this one; see `workers.py`.
"""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from pegboard.config.loader import Configuration
from pegboard.core.redaction import Redactor
from pegboard.errors import ConfigError
from pegboard.gateway.background_tasks import log_failure, run_supervised
from pegboard.gateway.config_source import ConfigSource, find_restart_settings
from pegboard.gateway.from_settings import build_auth, build_observability, build_policy
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.shutdown import SignalAction, handle_signals
from pegboard.modes.mode import META_TOOL_NAMES
from pegboard.observe.event_journal import open_journal
from pegboard.observe.logs import (
    collect_secrets,
    limit_repeated_lines,
    log_json,
    log_sdk,
    log_text,
    print_line,
    print_problems,
    print_progress,
)
from pegboard.sandbox import check_sandbox
from pegboard.server.environment import mode_from_environ
from pegboard.upstream.catalog_cache import CatalogCache

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from pegboard.server.early_answers import AnswerRecord, Answers, FirstExchange
    from pegboard.server.http_server import HttpServer

WATCH_INTERVAL = 1.0
"""Seconds between two checks of the modification times of the configuration's files."""
SHUTDOWN_TIMEOUT = 30.0
"""Seconds that calls in progress have when the gateway is stopped."""
KEEP_ALIVE_TIMEOUT = 75
"""Seconds for an idle connection: longer than load balancers and clients keep one open, so that
they close it first and no request is lost."""
EXIT_FAILED = 1
"""The exit status of a process that could not serve."""
WRITE_TIME = 0.1
"""Seconds for the last answers to be written, after the last call has ended."""

logger = logging.getLogger(__name__)


class GatewayRunner:
    """One gateway, served once."""

    def __init__(self, source: ConfigSource, *, shutdown_timeout: float = SHUTDOWN_TIMEOUT) -> None:
        self.source = source
        configuration = source.read()
        self._started_with = configuration.settings
        self.redactor = Redactor(collect_secrets(configuration))
        print_problems(configuration)
        self.gateway = Gateway(
            configuration,
            folder=source.folder(configuration),
            progress=print_progress,
            observability=build_observability(configuration.settings, source.path.parent),
        )
        self._shutdown_timeout = shutdown_timeout

    async def serve_stdio(self, first: FirstExchange | None = None) -> None:
        """Serve one client on standard input and output; `pegboard ui` can follow its calls.

        Args:
            first: The client's first requests, where they were answered before this was imported.
        """
        from pegboard.gateway.mcp_server import build_gateway_server
        from pegboard.server.stdio import serve_on_stdio

        gateway = self.gateway
        gateway.serves_one_client = True
        folder = self.source.folder(gateway.configuration)
        arguments = gateway.configuration.settings.observe.arguments
        redactor = None if arguments == "off" else self.redactor
        with open_journal(folder, self.source.path, redactor) as journal:
            parts = gateway.board.parts
            gateway.board.parts = replace(parts, observers=(*parts.observers, journal))
            async with gateway, anyio.create_task_group() as tasks:

                async def stop() -> None:
                    await gateway.drain.finish(self._shutdown_timeout)
                    await anyio.sleep(WRITE_TIME)
                    tasks.cancel_scope.cancel()

                if first is not None:
                    # Answers that were made while servers were missing must not be repeated.
                    complete = gateway.knows_all_servers
                    first.when_over = partial(
                        self._save_first_answers, first.record, complete=complete
                    )
                server = build_gateway_server(gateway, environ=self.source.environ)
                async with self._watching(stop):
                    await serve_on_stdio(server, first)
                tasks.cancel_scope.cancel()

    def _save_first_answers(
        self, record: AnswerRecord, answers: Answers, *, complete: bool
    ) -> None:
        """Save the answers to a client's first requests for the next start, if they stay valid."""
        configuration = self.gateway.configuration
        names = [tool["name"] for result in answers.values() for tool in result.get("tools", ())]
        # They stay valid if they depend only on files: not on replicas, servers or URLs.
        is_shared = not configuration.settings.store.url.startswith("memory:")
        has_url = bool(configuration.sources) and not META_TOOL_NAMES.issuperset(names)
        will_hold = complete and self.gateway.knows_all_servers and not is_shared and not has_url
        try:
            if not will_hold:
                record.forget()
            elif any(record.answers.get(key) != result for key, result in answers.items()):
                # The next start compares these files, to know whether the answers are still valid.
                folder = self.source.folder(configuration)
                cache = CatalogCache(folder / "catalogs")
                files = [*configuration.files, *map(cache.path, configuration.upstreams)]
                if lock := configuration.settings.trust.lock:
                    files.append(self.source.path.parent / Path(lock).expanduser())
                record.save(answers, files)
        except OSError as exc:
            logger.info("The first answers could not be saved: %s", exc)

    async def serve_http(self, host: str, port: int, sock: socket.socket | None = None) -> bool:
        """Serve streamable HTTP, on a given socket where there is one.

        Returns:
            Whether it ended because it was stopped; otherwise it could not start, or it failed.
        """
        from pegboard.gateway.http_app import build_gateway_app
        from pegboard.server.serving import print_urls
        from pegboard.sockets import bind_sockets

        sockets = bind_sockets(host, port) if sock is None else [sock]
        app = build_gateway_app(self.gateway, host, environ=self.source.environ, source=self.source)
        server = _build_http_server(app, self.gateway.configuration)

        async def stop() -> None:
            for listener in server.servers:
                listener.close()
            await self.gateway.drain.finish(self._shutdown_timeout)
            server.should_exit = True

        async def exit_when_failed() -> None:
            await self.gateway.failed.wait()
            server.should_exit = True  # a process that cannot serve must not look healthy

        if sock is None:  # workers share one address, which their parent prints
            print_urls(host, sockets[0].getsockname()[1])
        async with self._watching(stop), anyio.create_task_group() as tasks:
            tasks.start_soon(exit_when_failed)
            await server.serve(sockets=sockets)
            tasks.cancel_scope.cancel()
        if self.gateway.failure is not None:
            print_line(f"The gateway ended because of a failure: {self.gateway.failure!r}")
        return server.started and self.gateway.failure is None

    @asynccontextmanager
    async def _watching(self, stop: SignalAction) -> AsyncGenerator[None]:
        """Handle signals and watch the configuration's files while the block runs."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(partial(handle_signals, stop=stop, reload=self.reload))
            tasks.start_soon(run_supervised, "Watching the configuration", self._watch)
            yield
            tasks.cancel_scope.cancel()

    async def _watch(self) -> None:
        """Reload when a file of the configuration has changed."""
        seen = _modification_times(self.gateway.configuration)
        while True:
            await anyio.sleep(WATCH_INTERVAL)
            now = _modification_times(self.gateway.configuration)
            if now != seen:
                await anyio.sleep(WATCH_INTERVAL / 4)  # debounce: editors write in several steps
                seen = _modification_times(self.gateway.configuration)
                await self.reload()

    async def reload(self) -> None:
        """Read the configuration again and apply it, unless it is wrong."""
        try:
            configuration = await to_thread.run_sync(self.source.read)
            build_auth(configuration.settings)
            build_policy(configuration.settings)
        except ConfigError as exc:
            print_line(f"The changed configuration was not applied: {exc.message}")
            return
        self.redactor.learn(collect_secrets(configuration))
        print_problems(configuration)
        try:
            await self.gateway.reload(configuration)
        except Exception as exc:  # the gateway goes on, and the file can be changed again
            log_failure("The changed configuration could not be applied completely", exc)
            return
        print_line(f"The configuration was read again; servers: {len(configuration.upstreams)}.")
        if waiting := find_restart_settings(self._started_with, configuration.settings):
            print_line(
                f"These changes need a restart and have no effect yet: {', '.join(waiting)}."
            )


def serve_gateway(
    source: ConfigSource,
    *,
    http: str | None = None,
    workers: int = 1,
    first: FirstExchange | None = None,
) -> None:
    """Serve a configuration until stopped, with this many processes.

    Raises:
        ConfigError: It cannot be read, or the address is not valid.
    """
    if http is None:
        anyio.run(_prepare_runner(source).serve_stdio, first)
        return
    from pegboard.server.serving import parse_address, print_urls

    host, port = parse_address(http)
    if workers <= 1:
        _serve_http(source, host, port)
        return
    from pegboard.gateway.workers import Workers
    from pegboard.server.auth import refuse_exposure

    settings = source.read().settings
    if settings.store.url.startswith("memory:"):
        raise ConfigError(
            "Workers share their state through a store: pass `--store redis://...`, or set `url` "
            "under [store]."
        )
    # Checked here too: a worker that refuses to start would be restarted again and again.
    allowed = settings.http.unauthenticated
    refuse_exposure(host, build_auth(settings), source.environ, allowed=allowed)
    # A worker is another process and gets a pickled copy; `os.environ` itself cannot be pickled.
    picklable = replace(source, environ=dict(source.environ))
    print_urls(host, port)
    Workers(partial(_serve_http, picklable, host, port), host, port, workers).run()


def _serve_http(
    source: ConfigSource, host: str, port: int, sock: socket.socket | None = None
) -> None:
    if not anyio.run(_prepare_runner(source).serve_http, host, port, sock):
        sys.exit(EXIT_FAILED)


def _prepare_runner(source: ConfigSource) -> GatewayRunner:
    """The runner, with logging set up as configured."""
    runner = GatewayRunner(source)
    check_sandbox(runner.gateway.board.options, mode_from_environ(source.environ))
    as_json = runner.gateway.configuration.settings.observe.log == "json"
    if as_json:
        log_json(sys.stderr, redactor=runner.redactor)
    else:
        log_text(runner.redactor)
    log_sdk(runner.redactor, as_json=as_json)
    limit_repeated_lines()
    return runner


def _modification_times(configuration: Configuration) -> list[int | None]:
    times: list[int | None] = []
    for path in configuration.files:
        try:
            times.append(path.stat().st_mtime_ns)
        except OSError:
            times.append(None)
    return times


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
