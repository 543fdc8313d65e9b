"""`Gateway`: a board whose tools are those of upstream servers.

start    kept catalogues are read from disk and mounted; nothing is started
missing  a server that was never listed is listed in the background, bounded in number
use      the first call of a server starts it; then its catalogue is looked at again
change   what a server lists anew is mounted, kept, and announced to clients
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
from anyio import to_thread

from pegboard.board import Pegboard
from pegboard.config import Configuration
from pegboard.core.calls import Call, Caller, CallResult
from pegboard.core.json import Json
from pegboard.core.options import Options
from pegboard.core.tools import Tool
from pegboard.faces.face import RESERVED, SessionDoor, View
from pegboard.gateway.options import naming_of, options_of
from pegboard.ports import Source
from pegboard.upstream.discovery import Found, Refresher, discover
from pegboard.upstream.kept import About, CatalogueFolder, KeptCatalogue
from pegboard.upstream.listing import Listing
from pegboard.upstream.names import settle
from pegboard.upstream.passthrough import Passthrough
from pegboard.upstream.pool import Pool
from pegboard.upstream.relay import Relay
from pegboard.upstream.source import UpstreamSource
from pegboard.upstream.spec import UpstreamSpec

logger = logging.getLogger(__name__)

FIRST_LOOK = 3.0
"""Seconds that the first answers wait for servers that were never listed before."""

Progress = Callable[[int, int, Found], None]


class Gateway:
    """Upstream servers on a board; an async context manager that owns their connections."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        folder: Path,
        progress: Progress = lambda done, total, found: None,
    ) -> None:
        self.configuration = configuration
        self.board = Pegboard("pegboard", **options_of(configuration.settings))
        self.pool = Pool(configuration.upstreams, logs=folder / "logs")
        self.relay = Relay(self.pool)
        self.passthrough = Passthrough(self.relay)
        self.failures: dict[str, str] = {}
        """Servers that could not be listed, with the reason."""
        self.pending: set[str] = set()
        """Servers that were never listed and are being looked at now."""
        self._folder = CatalogueFolder(folder / "catalogues")
        self._progress = progress
        self._specs = {spec.name: spec for spec in configuration.upstreams}
        self._catalogues: dict[str, KeptCatalogue] = {}
        self._sources: dict[str, Source] = {}
        self._used: set[str] = set()
        self._refresher = Refresher(self.pool, self._found)
        self._looked = anyio.Event()
        self._owned = AsyncExitStack()

    @property
    def options(self) -> Options:
        """How the board is shown."""
        return self.board.options

    # Starting and stopping ---------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self._owned.__aenter__()
        await to_thread.run_sync(self.restore)
        await self._owned.enter_async_context(self.pool)
        self.pool.listen(self._refresher.notice)
        self.pool.listen(self.passthrough.on_event)
        tasks = await self._owned.enter_async_context(anyio.create_task_group())
        self._owned.callback(tasks.cancel_scope.cancel)
        tasks.start_soon(self._refresher.run)
        tasks.start_soon(self._look_at_pending)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._owned.__aexit__(exc_type, exc, traceback)

    def restore(self) -> None:
        """Mount what is kept on disk; the rest is pending. Blocks, for milliseconds."""
        for spec in self._specs.values():
            kept = self._folder.load(spec)
            if kept is None:
                self.pending.add(spec.name)
            else:
                self._take(spec, kept)
        self._mount()

    async def _look_at_pending(self) -> None:
        """List the servers that were never listed; each is mounted as soon as it is in."""
        bound = self.configuration.settings.upstreams.start_concurrency
        if self.pending:
            async with discover(
                self.pool, sorted(self.pending), bound=bound, progress=self._progress
            ) as found:
                async for one in found:
                    await self._found(one)
        self._looked.set()

    async def looked(self) -> None:
        """Return when every server has been listed or has failed."""
        await self._looked.wait()

    # Catalogues --------------------------------------------------------------------------------

    async def _found(self, found: Found) -> None:
        spec = self._specs.get(found.server)
        if spec is None:  # removed from the configuration meanwhile
            return
        self.pending.discard(found.server)
        if found.listing is None:
            self.failures[found.server] = found.error.message if found.error else "no answer"
            logger.warning("%s could not be listed: %s", spec.name, self.failures[spec.name])
            return
        self.failures.pop(found.server, None)
        listing = found.listing
        kept = await to_thread.run_sync(
            lambda: self._folder.save(spec, _about(listing), listing.tools)
        )
        self._take(spec, kept)
        self._mount()

    def _take(self, spec: UpstreamSpec, kept: KeptCatalogue) -> None:
        self._catalogues[spec.name] = kept
        self.pool.learn(spec.name, kept.about.era)
        for problem in kept.problems:
            logger.warning("%s", problem)

    def _mount(self) -> None:
        """Put the tools of all servers on the board, under names that do not collide."""
        naming = naming_of(self.configuration.settings)
        tools: list[Tool] = []
        for name, kept in self._catalogues.items():
            spec = self._specs[name]
            shown = kept.tools(spec, naming)
            if name not in self._sources:
                self._sources[name] = _Watched(UpstreamSource(spec, self.relay), self._noticed_use)
            tools += [replace(t, category=t.category or name) for t in shown]
        prefixes = {s.name: s.prefix for s in self._specs.values() if s.prefix is not None}
        settled = settle(tools, naming, prefixes=prefixes, taken=RESERVED)
        self.board.mount(self._sources, settled, pending=self.pending)
        self.passthrough.hold(_listing(name, k.about) for name, k in self._catalogues.items())

    def _noticed_use(self, server: str) -> None:
        """A server runs now, so looking whether its tools are still the same costs no start."""
        if server not in self._used:
            self._used.add(server)
            self._refresher.want(server)

    # Showing -----------------------------------------------------------------------------------

    async def view(
        self,
        caller: Caller,
        *,
        session: SessionDoor | None = None,
        structured: bool = False,
        params: Mapping[str, Json] | None = None,
        request: object | None = None,
        whole: bool = True,
    ) -> View:
        """The board as one caller sees it; waits a little for servers that nobody has seen yet."""
        if self.pending and not self._looked.is_set():
            with anyio.move_on_after(FIRST_LOOK):
                await self._looked.wait()
        view = await self.board.view(
            caller,
            session=session,
            structured=structured,
            params=params,
            request=request,
            whole=whole,
        )
        notes = self._notes()
        return replace(view, notes=(*view.notes, *notes), is_complete=not self.pending)

    def _notes(self) -> list[str]:
        notes: list[str] = []
        if self.pending:
            notes.append(f"Still starting: {', '.join(sorted(self.pending))}. Search again soon.")
        missing = sorted(set(self.failures) - set(self._catalogues))
        if missing:
            notes.append(f"Not available: {', '.join(missing)}.")
        return notes


class _Watched:
    """A source that tells when it was used."""

    def __init__(self, source: UpstreamSource, used: Callable[[str], None]) -> None:
        self._source = source
        self._used = used

    async def tools(self) -> tuple[Tool, ...]:
        return await self._source.tools()

    async def call(self, call: Call) -> CallResult:
        result = await self._source.call(call)
        self._used(call.tool.server or "")
        return result


def _about(listing: Listing) -> About:
    return About(
        server_info=listing.server_info,
        capabilities=listing.capabilities,
        instructions=listing.instructions,
        era=listing.era,
        protocol_version=listing.protocol_version,
        resources=list(listing.resources),
        resource_templates=list(listing.resource_templates),
        prompts=list(listing.prompts),
    )


def _listing(server: str, about: About) -> Listing:
    return Listing(server=server, **asdict(about))
