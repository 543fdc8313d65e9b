"""Discovery: list the tools of every server, save them, check the lock, announce changes.

first     a server that was never listed is listed at once, a bounded number at a time
refresh   after the first answer, after its first call, or when it or a replica reports a change
failed    a server that could not be listed is retried, with growing pauses
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

import anyio
from anyio import to_thread

from pegboard.config.settings import UpstreamSettings
from pegboard.core.json import Json, JsonObject
from pegboard.errors import PegboardError
from pegboard.gateway.background_tasks import flatten_exceptions, log_failure
from pegboard.gateway.catalogs import ListKind, ServerCatalogs, build_about, find_changed_lists
from pegboard.gateway.operator_decisions import ToolTrust
from pegboard.gateway.replicas import ReplicaChannel
from pegboard.gateway.sources import ServerSources, read_api
from pegboard.upstream.catalog_cache import (
    FIRST_RETRY_DELAY,
    MAX_RETRY_DELAY,
    CachedCatalog,
    ServerProfile,
)
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
from pegboard.upstream.listing import (
    Listing,
    ListingProgress,
    ListingRefresher,
    ListingResult,
    discover,
    read_variant,
)
from pegboard.upstream.relay import Relay

logger = logging.getLogger(__name__)

AnnounceChange: TypeAlias = Callable[[ListKind], Awaitable[None]]
"""Told which list beside that of the tools has changed."""


class Discovery:
    """Looks at the servers and APIs of a gateway, and keeps what they offer.

    Args:
        offers: Where what they offer is kept.
        relay: The way to the servers.
        trust: Judges what they offer.
        replicas: Hear of every catalogue that is new.
        settings: Gives what is configured now of looking at servers.
        progress: Hears how far the first look is.
        arrived: Hears of each server that is to be mounted anew, or not waited for any more.
    """

    def __init__(
        self,
        offers: ServerCatalogs,
        relay: Relay,
        *,
        trust: ToolTrust,
        replicas: ReplicaChannel,
        settings: Callable[[], UpstreamSettings],
        progress: ListingProgress,
        arrived: Callable[[str], None],
    ) -> None:
        self._offers = offers
        self._pool = relay.pool
        self._trust = trust
        self._replicas = replicas
        self._settings = settings
        self._progress = progress
        self._arrived = arrived
        self._used: set[str] = set()
        self._announcers: list[AnnounceChange] = []
        self.failures: dict[str, str] = {}
        """Servers that could not be listed, with the reason."""
        self.remembered: set[str] = set()
        """Those of them that were not tried now, or did not answer in time: an earlier reason."""
        self.pending: set[str] = set()
        """Servers that nothing is known of yet and that are being looked at."""
        self.sources = ServerSources(relay, self._noticed_use)
        """What runs calls; a server that runs can be looked at without starting it."""
        self.refresher = ListingRefresher(self._pool, self._found, kinds=self._alike)
        """Looks again at servers that announce a change; runs as long as the gateway does."""

    def renew(self, unknown: set[str]) -> set[str]:
        """Have these as all that nothing is known of; gives those that were not so before."""
        new = unknown - self.pending
        self.pending = unknown
        self.failures = {n: why for n, why in self.failures.items() if n in unknown - new}
        self._used &= set(self._offers.specs)
        return new

    def recall(self, unknown: set[str], *, retry: bool) -> set[str]:
        """Take these as all that nothing is known of; gives those that failed the last time.

        Without `retry`, one that failed is left alone until its pause is over: whoever reads the
        catalog again and again must not start it each time.
        """
        failed = {n: f for n in unknown if (f := self._offers.last_failure(n)) is not None}
        self.failures |= {name: failure.reason for name, failure in failed.items()}
        self.remembered = set(failed)
        resting = {n: self._offers.pause(n) for n in failed} if not retry else {}
        for name, pause in resting.items():
            if pause > 0:
                self.failures[name] += (
                    f" (Tried again in {pause:.0f} s; `pegboard doctor` tries now.)"
                )
        self.pending = {name for name in unknown if not resting.get(name)}
        return self.pending & failed.keys()

    def give_up(self) -> None:
        """Wait no longer for servers that did not answer in time; what is known of them stays."""
        for name in self.pending:
            reason = self.failures.setdefault(name, f"{name} did not answer in time.")
            self.remembered.add(name)
            self._offers.remember_failure(name, reason)
        self.pending = set()

    async def look(self, names: list[str]) -> None:
        """List servers and read APIs; each is mounted as soon as it is in."""
        apis = [name for name in names if name in self._offers.apis]
        servers = [name for name in names if name not in self._offers.apis]
        bound = self._settings().start_concurrency
        async with anyio.create_task_group() as tasks:
            for name in apis:
                tasks.start_soon(self._read_api, name)
            if not servers:
                return
            async with discover(self._pool, servers, bound=bound, progress=self._progress) as found:
                async for one in found:
                    await self._found(one)

    async def refresh(self) -> None:
        """Look again at what can be looked at without starting it, if that is configured."""
        if not self._settings().refresh:
            return
        for spec in self._pool.servers:
            if spec.transport != "stdio" and spec.name not in self.pending:
                self.refresher.request_refresh(spec.name)
        for name in self._offers.apis:
            if name not in self.pending:
                await self._read_api(name)

    async def retry_failures(self, looked: Callable[[], Awaitable[None]]) -> None:
        """Try servers that could not be listed again, ever less often; `looked` ends a look."""
        pause = FIRST_RETRY_DELAY
        while True:
            await anyio.sleep(pause)
            await looked()
            lost = [n for n in self.failures if n in self._offers.specs and n not in self._offers]
            pause = min(pause * 2, MAX_RETRY_DELAY) if lost else FIRST_RETRY_DELAY
            if lost:
                await self.look(sorted(lost))

    def _noticed_use(self, server: str) -> None:
        """A server runs now, so looking whether its tools are still the same costs no start."""
        if server not in self._used and self._settings().refresh:
            self._used.add(server)
            self.refresher.request_refresh(server)

    async def _read_api(self, name: str) -> None:
        try:
            await self._take_api(name)
        except Exception as exc:  # of one API; the others are read all the same
            await self._unusable(name, exc)

    async def _take_api(self, name: str) -> None:
        began, is_new = anyio.current_time(), name in self.pending
        read = await read_api(self.sources.api(self._offers.apis[name]))
        if read.error is not None:
            await self._failed(name, prefix_server_name(name, read.error.message))
        elif name in self._offers.apis:
            await self._keep(name, ServerProfile(), read.entries)
        for problem in read.problems:
            logger.warning("%s", problem)
        if is_new:
            listing = None if read.error else Listing(name, tools=read.entries)
            self._progress(
                1, 1, ListingResult(name, listing, read.error, anyio.current_time() - began)
            )

    async def _found(self, found: ListingResult) -> None:
        try:
            await self._take(found)
        except Exception as exc:  # of one server; the others are looked at all the same
            await self._unusable(found.server, exc)

    async def _unusable(self, name: str, exc: Exception) -> None:
        """Note that what a server lists cannot be used; what was known of it before stays."""
        log_failure(f"What {name} lists cannot be used", exc)
        reasons = "; ".join(str(one) for one in flatten_exceptions(exc))
        await self._failed(name, f"{name}: what it lists cannot be used: {reasons}")

    async def _take(self, found: ListingResult) -> None:
        if found.server not in self._offers.specs:  # removed from the configuration meanwhile
            return
        if found.listing is None:
            await self._failed(found.server, found.error.message if found.error else "no answer")
            return
        for reason in found.listing.failures.values():
            logger.warning("%s (its tools are not affected)", reason)
        before = self._offers[found.server].about if found.server in self._offers else None
        listing = await self._with_variants(found.listing)
        await self._keep(found.server, build_about(listing, before), listing.tools)

    # Tools that depend on what a client can be asked ---------------------------------------------

    async def look_for(self, kind: ClientKind, servers: Iterable[str]) -> None:
        """Find out what these servers list to clients of a kind."""
        places = anyio.CapacityLimiter(self._settings().start_concurrency)

        async def look(name: str) -> None:
            async with places:
                await self._read_variant(name, kind)

        async with anyio.create_task_group() as tasks:
            for name in servers:
                tasks.start_soon(look, name)

    async def _read_variant(self, name: str, kind: ClientKind) -> None:
        try:
            listed = await read_variant(self._pool, name, kind)
        except PegboardError as exc:
            logger.debug("%s is not listed for clients with %s: %s", name, kind, exc.message)
            reason = prefix_server_name(name, exc.message)
            await to_thread.run_sync(self._offers.remember_failure, name, reason)
            return
        if name not in self._offers or is_kind_known(self._offers[name].about.variants, kind):
            return
        known = self._offers[name]
        entries = await to_thread.run_sync(known.entries)
        good, _ = check_entries(listed, name)
        union, variants = merge_variant(entries, known.about.variants, kind, good)
        await self._keep(name, replace(known.about, variants=variants), union)

    async def _with_variants(self, listing: Listing) -> Listing:
        """A listing with the tools that other kinds of clients are listed besides.

        They are read again only when the server lists something new, so that a look at a server
        that has not changed costs one request, and never takes away what a client sees.
        """
        name = listing.server
        if name not in self._offers:
            return listing
        variants = self._offers[name].about.variants
        plain, others = await to_thread.run_sync(self._offers.plain_entries, name)
        good, _ = check_entries(listing.tools, name)
        if good == plain:
            return replace(listing, tools=[*listing.tools, *others], variants=variants)
        entries: list[JsonObject] = list(listing.tools)
        found: ToolVariants = {}
        for kind in find_varying_kinds(variants):
            try:
                listed, _ = check_entries(await read_variant(self._pool, name, kind), name)
            except PegboardError:
                continue  # it is looked for again when a client of this kind comes
            entries, found = merge_variant(entries, found, kind, listed)
        return replace(listing, tools=entries, variants=found)

    def _alike(self, server: str) -> tuple[ClientKind, ...]:
        """The kinds of clients whose connections will do for a look at a server."""
        return (
            find_uniform_kinds(self._offers[server].about.variants)
            if server in self._offers
            else (PLAIN_CLIENT,)
        )

    # What was found -------------------------------------------------------------------------------

    async def _failed(self, name: str, reason: str) -> None:
        if name not in self.pending and self.failures.get(name) != reason:
            logger.warning("%s", reason)  # on the first look, `progress` tells
        self.failures[name] = reason
        self.remembered.discard(name)
        if name not in self._offers:
            await to_thread.run_sync(self._offers.remember_failure, name, reason)
            self._arrived(name)

    async def _keep(self, name: str, said: ServerProfile, entries: Iterable[Json]) -> None:
        spec = self._offers.specs[name]
        kept = await to_thread.run_sync(lambda: self._offers.save(spec, said, entries))
        if self._offers.specs.get(name) != spec:
            return  # the configuration was changed meanwhile, and it is looked at again
        await self._trust.see(name, kept)
        self.failures.pop(name, None)
        before = self._offers[name].about if name in self._offers else ServerProfile()
        if self._offers.take(name, kept):
            self._note(kept)
            self._arrived(name)
            await self._replicas.tell(name, kept.hash)
            for kind in find_changed_lists(before, kept.about):
                for announce in self._announcers:
                    await announce(kind)
        elif name in self.pending:
            self._arrived(name)

    def when_lists_change(self, announce: AnnounceChange) -> None:
        """Have clients told of changed prompts and resources; the board tells of tools."""
        self._announcers.append(announce)

    def _note(self, kept: CachedCatalog) -> None:
        for problem in kept.problems:
            logger.warning("%s", problem)

    async def changed_elsewhere(self, server: str | None, catalogue: str | None) -> None:
        """Take what another replica has seen: from the folder, or from the server itself."""
        for name in [server] if server is not None else list(self._offers.specs):
            if name not in self._offers.specs or name in self.pending:
                continue
            try:
                await self._take_stored(name, catalogue)
            except Exception as exc:  # of one server; the others are taken all the same
                log_failure(f"What another replica saw of {name} cannot be used", exc)

    async def _take_stored(self, name: str, catalogue: str | None) -> None:
        kept = await to_thread.run_sync(self._offers.kept_anew, name)
        if kept is not None and catalogue in (None, kept.hash):
            await self._trust.see(name, kept)
            if self._offers.take(name, kept):
                self._arrived(name)
        elif catalogue is not None and name not in self._offers.apis:
            self.refresher.request_refresh(name)
