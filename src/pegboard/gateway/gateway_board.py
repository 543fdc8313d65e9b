"""`GatewayBoard`: the board that `Pegboard.from_config` returns, over the servers of a file.

    board.search(...)       reads cached catalogs; servers that were never listed are listed first
    await board.call(...)   starts the one server that it needs, for this call alone
    async with board: ...   keeps servers running between calls

Reading is synchronous in the public API, so it lists servers in a thread with an event loop of its
own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from anyio import to_thread
from anyio.from_thread import start_blocking_portal

from pegboard.board import Pegboard
from pegboard.config.loader import Configuration
from pegboard.core.calls import LOCAL_CALLER, Caller, CallResult, ToolCall
from pegboard.core.tool_lock import hold_reason
from pegboard.core.tools import Catalog, Tool
from pegboard.errors import NotPermitted, ToolDisabled
from pegboard.gateway.cached_board import read_login_states
from pegboard.gateway.config_source import ConfigSource
from pegboard.gateway.from_settings import Observability, build_audit, close_store, open_store
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.operator_decisions import OperatorDecisions
from pegboard.gateway.sources import call_once
from pegboard.modes.mode import View, ViewRequest
from pegboard.oauth.grants import LoginState
from pegboard.upstream.listing import ListingProgress

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from pegboard.server.auth import Auth


class GatewayBoard(Pegboard):
    """A board of the servers and APIs of a configuration."""

    def __init__(
        self, source: ConfigSource, configuration: Configuration, progress: ListingProgress
    ) -> None:
        super().__init__(instructions=configuration.settings.instructions)
        self.configuration = configuration
        self._source = source
        self._progress = progress
        self._is_running = False
        self.gateway = self._make_gateway(retry=False)
        self._read_decisions()
        self.gateway.restore()

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        progress: ListingProgress = lambda done, total, found: None,
        **settings: Any,
    ) -> Self:
        """The board of a configuration file; `progress` is called for servers that are listed."""
        source = ConfigSource.from_path(path, **settings)
        return cls(source, source.read(), progress)

    def _make_gateway(
        self, *, retry: bool = True, observability: Observability | None = None
    ) -> Gateway:
        folder = self._source.folder(self.configuration)
        return Gateway(
            self.configuration,
            folder=folder,
            board=self,
            progress=self._progress,
            retry=retry,
            observability=observability,
        )

    # Running -----------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self.gateway = await self._make_gateway().__aenter__()
        self._is_running = True
        await self.gateway.wait_until_listed()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_running = False
        await self.gateway.__aexit__(exc_type, exc, traceback)

    async def run_call(self, call: ToolCall) -> CallResult:
        server = call.tool.server or ""
        if self._is_running or server not in self.gateway.catalogs.specs:
            return await super().run_call(call)
        await to_thread.run_sync(self._check_decisions, call.tool)
        return await call_once(call, self.gateway.catalogs, self.gateway.logs, self.gateway.logins)

    def _check_decisions(self, tool: Tool) -> None:
        """Refuse a tool that was held back or switched off since this board was opened; blocks."""
        self._read_decisions()
        catalog = self.gateway.catalogs[tool.server or ""]
        current = self.gateway.decisions.apply(tool, catalog)
        if reason := hold_reason(current):
            raise NotPermitted(f"{tool.name} is held back: {reason}", tool=tool.name)
        if not current.enabled:
            raise ToolDisabled(f"{tool.name} is disabled.", tool=tool.name)

    # Reading -----------------------------------------------------------------------------------

    @property
    def failures(self) -> Mapping[str, str]:
        """Servers whose tools are missing, with the reason."""
        slow = {name: f"{name} has not answered yet." for name in sorted(self.gateway.pending)}
        return {**slow, **self.gateway.unavailable}

    async def read_login_states(self) -> dict[str, LoginState]:
        """The state of the user's login to each server that has or needs one."""
        return await read_login_states(self.configuration, self._source.folder(self.configuration))

    @property
    def earlier_failures(self) -> Mapping[str, str]:
        """Those of `failures` that were not reported while listing, because they failed earlier."""
        names = self.gateway.pending | self.gateway.discovery.earlier_failures
        return {name: why for name, why in self.failures.items() if name in names}

    @property
    def catalog(self) -> Catalog:
        self._list_missing()
        return super().catalog

    def tools(self, category: str | None = None, include_disabled: bool = False) -> list[Tool]:
        self._list_missing()
        return super().tools(category, include_disabled)

    def load_named(self, name: str, caller: Caller = LOCAL_CALLER) -> None:
        self._list_missing()
        super().load_named(name, caller)

    async def view(self, caller: Caller = LOCAL_CALLER, **request: Unpack[ViewRequest]) -> View:
        await to_thread.run_sync(self._list_missing)
        return await super().view(caller, **request)

    def _list_missing(self) -> None:
        """List servers that were never listed; blocks until they have answered."""
        if self._is_running:
            return

        async def list_now() -> None:
            async with self._make_gateway(retry=False) as gateway:
                await gateway.wait_until_listed()
                gateway.discovery.give_up()
                self.gateway = gateway

        catalogs = self.gateway.catalogs
        missing = [n for n in self.gateway.failures if n in catalogs.specs and n not in catalogs]
        # A server that failed is tried again when its pause is over.
        if self.gateway.pending or any(catalogs.retry_pause(name) == 0 for name in missing):
            _run_in_thread(list_now)

    def _read_decisions(self) -> None:
        """Read the lock and the switches, which other processes may have changed; blocks."""

        async def load() -> None:
            # Over connections of its own, since those belong to one event loop.
            store = open_store(self.configuration.settings, None)
            try:
                decisions = OperatorDecisions(self.configuration, store, ())
                await decisions.load()
                self.gateway.catalogs.restore()
                await decisions.record_definitions(self.gateway.catalogs)
                self.gateway.decisions.copy_from(decisions)
            finally:
                await close_store(store)

        if self.gateway.decisions.are_shared:
            _run_in_thread(load)

    # Serving -----------------------------------------------------------------------------------

    def run(self, *, http: str | None = None) -> None:
        from pegboard.gateway.runner import serve_gateway

        serve_gateway(self._source, http=http)

    async def serve_stdio(self) -> None:
        from pegboard.gateway.runner import GatewayRunner

        await GatewayRunner(self._source).serve_stdio()

    def asgi(
        self,
        host: str = "127.0.0.1",
        *,
        environ: Mapping[str, str] | None = None,
        auth: Auth | None = None,
        **dashboard: Any,
    ) -> Starlette:
        from pegboard.gateway.http_app import build_gateway_app

        environ = self._source.environ if environ is None else environ
        # The application and this board share one gateway: two would have separate statistics.
        # Calls through it are audited, as with `pegboard serve`.
        audit = build_audit(self.configuration.settings, self._source.path.parent)
        self.gateway, self._is_running = self._make_gateway(observability=audit), True
        dashboard = {"source": self._source, **dashboard}
        return build_gateway_app(self.gateway, host, environ=environ, auth=auth, **dashboard)


def _run_in_thread(work: Callable[[], Awaitable[None]]) -> None:
    """Run to the end in a new thread: the caller's may already be running an event loop.

    Ctrl-C cancels the work, whose servers could otherwise keep the process waiting.
    """
    with start_blocking_portal(name="pegboard-reading") as portal:
        portal.call(work)
