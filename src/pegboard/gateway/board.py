"""`GatewayBoard`: what `Pegboard.from_config` gives, a board in Python over servers elsewhere.

Reading it starts nothing, except to list servers that were never listed. A call outside of `async
with board:` starts the one server that it needs, for this call alone.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

import anyio
from anyio import to_thread

from pegboard.board import Pegboard
from pegboard.config import Configuration
from pegboard.core.calls import LOCAL, Call, Caller, CallResult
from pegboard.core.tools import Catalog, Tool
from pegboard.errors import StoreError, ToolNotFound
from pegboard.faces.face import Asked, View
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.governing import close_store, store_of
from pegboard.gateway.observing import Observing, audit_of
from pegboard.gateway.opening import Opening
from pegboard.gateway.sources import call_alone
from pegboard.gateway.trust import trust_of
from pegboard.upstream.discovery import Progress

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from pegboard.server.auth import Auth

logger = logging.getLogger(__name__)


class GatewayBoard(Pegboard):
    """A board of the servers and APIs of a configuration."""

    def __init__(self, opening: Opening, configuration: Configuration, progress: Progress) -> None:
        super().__init__(instructions=configuration.settings.instructions)
        self.configuration = configuration
        self._opening = opening
        self._progress = progress
        self._is_running = False
        self.gateway = self._make_gateway()
        if not self.gateway.decisions.trust.is_read:
            _in_thread(self._read_locks)
        self.gateway.restore()

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        progress: Progress = lambda done, total, found: None,
        **settings: Any,
    ) -> Self:
        """The board of a configuration file; `progress` hears of servers that must be listed."""
        opening = Opening.of(path, **settings)
        return cls(opening, opening.read(), progress)

    def _make_gateway(self, observing: Observing | None = None) -> Gateway:
        folder = self._opening.folder(self.configuration)
        return Gateway(
            self.configuration,
            folder=folder,
            board=self,
            progress=self._progress,
            observing=observing,
        )

    # Running -----------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self.gateway = await self._make_gateway().__aenter__()
        self._is_running = True
        await self.gateway.looked()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_running = False
        await self.gateway.__aexit__(exc_type, exc, traceback)

    async def run_call(self, call: Call) -> CallResult:
        server = call.tool.server or ""
        if self._is_running or server not in self.gateway.offers.specs:
            return await super().run_call(call)
        return await call_alone(call, self.gateway.offers, self.gateway.logs)

    # Reading -----------------------------------------------------------------------------------

    @property
    def failures(self) -> Mapping[str, str]:
        """Servers that could not be listed, with the reason."""
        slow = {name: f"{name} has not answered yet." for name in sorted(self.gateway.pending)}
        return {**slow, **self.gateway.failures}

    @property
    def catalog(self) -> Catalog:
        self._list_missing()
        return super().catalog

    def tools(self, category: str | None = None, include_disabled: bool = False) -> list[Tool]:
        self._list_missing()
        return super().tools(category, include_disabled)

    def find(self, name: str) -> Tool:
        try:
            return super().find(name)
        except ToolNotFound:
            self._list_missing()
        return super().find(name)

    async def view(self, caller: Caller = LOCAL, **asked: Unpack[Asked]) -> View:
        await to_thread.run_sync(self._list_missing)
        return await super().view(caller, **asked)

    def _list_missing(self) -> None:
        """List servers that were never listed; blocks until they are in."""
        if self._is_running or not self.gateway.pending:
            return
        _in_thread(self._list_now)

    async def _read_locks(self) -> None:
        """Read what was approved from the shared store, by connections of this thread's own."""
        settings = self.configuration.settings
        store = store_of(settings, None)
        try:
            trust = trust_of(settings, self._opening.path.parent, store)
            if trust.locks is not None:
                self.gateway.decisions.trust.take(await trust.locks.all())
        except StoreError as exc:
            logger.warning("The lock cannot be read, so all tools are held back: %s", exc)
        finally:
            await close_store(store)

    async def _list_now(self) -> None:
        async with self._make_gateway() as gateway:
            await gateway.looked()
            self.gateway = gateway

    # Serving -----------------------------------------------------------------------------------

    def run(self, *, http: str | None = None) -> None:
        from pegboard.gateway.serving import serve

        serve(self._opening, http=http)

    async def serve_stdio(self) -> None:
        from pegboard.gateway.serving import Serving

        await Serving(self._opening).on_stdio()

    def asgi(self, host: str = "127.0.0.1", *, auth: Auth | None = None, **page: Any) -> Starlette:
        from pegboard.gateway.http import gateway_app

        # The application's own gateway lists servers: another one would have figures of its own.
        # What is done through it is recorded, as by `pegboard serve`.
        audit = audit_of(self.configuration.settings, self._opening.path.parent)
        self.gateway, self._is_running = self._make_gateway(audit), True
        return gateway_app(self.gateway, host, auth=auth, **page)


def _in_thread(work: Callable[[], Awaitable[None]]) -> None:
    """Run to the end, however the caller runs: its own thread may have an event loop already."""
    thread = Thread(target=anyio.run, args=(work,), name="pegboard-reading")
    thread.start()
    thread.join()
