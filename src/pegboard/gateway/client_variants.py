"""Tools that a server lists only to clients with certain capabilities.

Some servers list more tools to clients that support sampling, elicitation or roots. Clients with
the same capabilities are of one *kind*. The first time a client of a new kind appears, every server
is listed once more for that kind, in the background:

    wait_for(kind)   known already           return at once
                     a listing is running    wait for it, until its deadline
                     not known               start a listing, then wait for it

The result is cached with the catalog of the server, so that this happens once and not with every
start.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from pegboard.config.settings import UpstreamSettings
from pegboard.core.json import Json, JsonObject
from pegboard.errors import PegboardError
from pegboard.gateway.catalogs import ServerCatalogs
from pegboard.upstream.catalog_cache import ServerProfile
from pegboard.upstream.catalog_entries import (
    PLAIN_CLIENT,
    ClientKind,
    ToolVariants,
    check_entries,
    find_uniform_kinds,
    find_varying_kinds,
    is_kind_known,
    merge_variant,
)
from pegboard.upstream.failures import prefix_server_name
from pegboard.upstream.listing import Listing, read_variant
from pegboard.upstream.pool import ConnectionPool

logger = logging.getLogger(__name__)

SaveCatalog: TypeAlias = Callable[[str, ServerProfile, Iterable[Json]], Awaitable[None]]
"""Saves what a server lists: its name, its profile, its `tools/list` entries."""


class ClientVariants:
    """Lists servers for each kind of client that appears.

    Args:
        catalogs: The catalogs of all servers.
        pool: Connections to the servers.
        settings: Returns the current settings of upstreams.
        save: Saves what a server lists.
        listing_wait: Seconds for which the answer to a client waits for its listing.
    """

    def __init__(
        self,
        catalogs: ServerCatalogs,
        pool: ConnectionPool,
        *,
        settings: Callable[[], UpstreamSettings],
        save: SaveCatalog,
        listing_wait: float,
    ) -> None:
        self._catalogs = catalogs
        self._pool = pool
        self._settings = settings
        self._save = save
        self._listing_wait = listing_wait
        self._complete: set[ClientKind] = set()
        """Kinds for which all mounted servers have been listed, or tried."""
        self._tried: set[tuple[str, ClientKind]] = set()
        """Server and kind of each attempt: one that failed is not repeated with every request."""
        self._running: dict[ClientKind, tuple[anyio.Event, float]] = {}
        """Listings in progress: set when done, and until when an answer waits for it."""
        self.exist = False
        """Whether some server lists different tools to different kinds of clients."""

    def on_mount(self) -> None:
        """Take note of new catalogs: a server that was just mounted has not been listed by kind."""
        self._complete.clear()
        self.exist = self._catalogs.vary_by_client

    def reset(self) -> None:
        """Try servers again that failed, after the configuration changed."""
        self._tried.clear()

    async def wait_for(
        self, kind: ClientKind, tasks: TaskGroup | None, mount: Callable[[], None]
    ) -> None:
        """Return when servers are listed for clients of a kind, or when the wait is over.

        Args:
            kind: The kind of the client that waits.
            tasks: Where the listing runs; without it, nothing starts.
            mount: Called when the listing is done, before those who wait for it continue.
        """
        if kind in self._complete:
            return
        missing = self._catalogs.servers_unlisted_for(kind)
        todo = [name for name in missing if (name, kind) not in self._tried]
        if todo and tasks is not None:
            self._tried |= {(name, kind) for name in todo}
            done = anyio.Event()
            self._running[kind] = done, anyio.current_time() + self._listing_wait
            tasks.start_soon(self._run, kind, todo, done, mount)
        if kind not in self._running:
            self._complete.add(kind)
            return
        done, deadline = self._running[kind]
        with anyio.CancelScope(deadline=deadline):
            await done.wait()

    async def _run(
        self, kind: ClientKind, servers: list[str], done: anyio.Event, mount: Callable[[], None]
    ) -> None:
        try:
            limiter = anyio.CapacityLimiter(self._settings().start_concurrency)
            async with anyio.create_task_group() as tasks:
                for name in servers:
                    tasks.start_soon(self._list_server, name, kind, limiter)
            mount()
        except Exception:  # the outermost frame of this task: the known tools are shown
            logger.exception("Servers could not be listed for clients with %s", kind)
        finally:
            # A reload may have started another listing of this kind: that one stays.
            if (current := self._running.get(kind)) and current[0] is done:
                del self._running[kind]
            done.set()

    async def _list_server(
        self, name: str, kind: ClientKind, limiter: anyio.CapacityLimiter
    ) -> None:
        try:
            async with limiter:
                listed = await read_variant(self._pool, name, kind)
        except PegboardError as exc:
            logger.debug("%s is not listed for clients with %s: %s", name, kind, exc.message)
            reason = prefix_server_name(name, exc.message)
            await to_thread.run_sync(self._catalogs.save_failure, name, reason)
            return
        # Meanwhile the server may have been removed from the configuration, or listed by another
        # task.
        if name not in self._catalogs or is_kind_known(self._catalogs[name].about.variants, kind):
            return
        known = self._catalogs[name]
        entries = await to_thread.run_sync(known.entries)
        good, _ = check_entries(listed, name)
        union, variants = merge_variant(entries, known.about.variants, kind, good)
        await self._save(name, replace(known.about, variants=variants), union)

    async def add_variants(self, listing: Listing) -> Listing:
        """A new listing of a server, with the tools that it lists only to other kinds of clients.

        They are read again only when the server lists something new, so that refreshing an
        unchanged server costs one request, and never takes away tools that a client sees.
        """
        name = listing.server
        if name not in self._catalogs:
            return listing
        variants = self._catalogs[name].about.variants
        plain, others = await to_thread.run_sync(self._catalogs.plain_entries, name)
        good, _ = check_entries(listing.tools, name)
        if good == plain:
            return replace(listing, tools=[*listing.tools, *others], variants=variants)
        entries: list[JsonObject] = list(listing.tools)
        found: ToolVariants = {}
        for kind in find_varying_kinds(variants):
            try:
                listed, _ = check_entries(await read_variant(self._pool, name, kind), name)
            except PegboardError:
                continue  # it is listed again when the next client of this kind appears
            entries, found = merge_variant(entries, found, kind, listed)
        return replace(listing, tools=entries, variants=found)

    def uniform_kinds(self, server: str) -> tuple[ClientKind, ...]:
        """The kinds whose connections list the same tools as a client without capabilities."""
        if server not in self._catalogs:
            return (PLAIN_CLIENT,)
        return find_uniform_kinds(self._catalogs[server].about.variants)
