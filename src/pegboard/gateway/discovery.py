"""Discovery: list the tools of every server, cache them, check the lock, announce changes.

    first     a server that was never listed is listed at once, a bounded number at a time
    refresh   after the first answer, after its first call, or when it or a replica reports a change
    failed    a server that could not be listed is retried, with growing pauses

A server that fails, or lists something that cannot be used, never stops the listing of the others:
the reason is recorded in `failures`, and its previous catalog, if any, stays in use.

Every replica holds all catalogs itself. When one has noticed that a server changed, it announces it
(`ReplicaChannel`), and the others take the new catalog from the folder that they share, or
list the server themselves. Each of them then notifies its own clients.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeAlias

import anyio
from anyio import to_thread

from pegboard.config.settings import UpstreamSettings
from pegboard.core.json import Json
from pegboard.errors import LoginRequired, StoreError
from pegboard.gateway.background_tasks import flatten_exceptions, log_failure
from pegboard.gateway.catalogs import ListKind, ServerCatalogs, build_profile, find_changed_lists
from pegboard.gateway.client_variants import ClientVariants
from pegboard.gateway.operator_decisions import ToolTrust
from pegboard.gateway.personal_catalogs import PersonalCatalogs
from pegboard.gateway.sources import ServerSources, read_api
from pegboard.ports import Store
from pegboard.upstream.catalog_cache import FIRST_RETRY_DELAY, MAX_RETRY_DELAY, ServerProfile
from pegboard.upstream.failures import prefix_server_name
from pegboard.upstream.listing import (
    Listing,
    ListingProgress,
    ListingRefresher,
    ListingResult,
    stream_listings,
)
from pegboard.upstream.relay import Relay

logger = logging.getLogger(__name__)

AnnounceChange: TypeAlias = Callable[[ListKind], Awaitable[None]]
"""Called with the list that has changed, other than the list of tools."""


class Discovery:
    """Lists the servers and APIs of a gateway, and saves what they list.

    Args:
        catalogs: Where the results are saved.
        relay: Connections to the servers.
        trust: Records new definitions in the lock.
        replicas: Where new catalogs are announced.
        settings: Returns the current settings of upstreams.
        progress: Called for each server that is listed for the first time.
        arrived: Called for each server that must be mounted, or that nobody waits for anymore.
        listing_wait: Seconds for which an answer waits for servers to be listed.
    """

    def __init__(
        self,
        catalogs: ServerCatalogs,
        relay: Relay,
        *,
        trust: ToolTrust,
        replicas: ReplicaChannel,
        settings: Callable[[], UpstreamSettings],
        progress: ListingProgress,
        arrived: Callable[[str], None],
        listing_wait: float,
    ) -> None:
        self._catalogs = catalogs
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
        self.earlier_failures: set[str] = set()
        """Those not tried now, or too slow to answer: `failures` has an earlier reason."""
        self.need_login: set[str] = set()
        """Servers that could not be listed for lack of a valid login of the operator."""
        self.pending: set[str] = set()
        """Servers without a catalog that are being listed."""
        self.variants = ClientVariants(
            catalogs, self._pool, settings=settings, save=self._save, listing_wait=listing_wait
        )
        self.personal = PersonalCatalogs(
            catalogs, self._pool, record=trust.record, listing_wait=listing_wait
        )
        self.sources = ServerSources(relay, self._on_first_answer)
        """Run the calls of each server."""
        self.refresher = ListingRefresher(
            self._pool, self._handle_result, kinds=self.variants.uniform_kinds
        )
        """Lists servers again that announce a change; runs as long as the gateway does."""

    # Which servers to list ---------------------------------------------------------------------

    def start_with(self, unknown: set[str], *, retry: bool) -> set[str]:
        """Start with these servers unknown; returns those that failed the last time.

        Without `retry`, a server that failed is left alone until its pause is over: a command that
        only reads the catalog, run again and again, must not start it each time.
        """
        failed = {n: f for n in unknown if (f := self._catalogs.last_failure(n)) is not None}
        self.failures |= {name: failure.reason for name, failure in failed.items()}
        self.need_login |= {name for name, failure in failed.items() if failure.needs_login}
        self.personal.servers |= self.need_login
        self.earlier_failures = set(failed)
        pauses = {n: self._catalogs.retry_pause(n) for n in failed} if not retry else {}
        for name, pause in pauses.items():
            if pause > 0:
                self.failures[name] += (
                    f" (Retried in {pause:.0f} s; `pegboard doctor` retries now.)"
                )
        self.pending = {name for name in unknown if not pauses.get(name)}
        return self.pending & failed.keys()

    def reconfigure(self, unknown: set[str]) -> set[str]:
        """Go on with these servers unknown; returns those that were not unknown before."""
        new = unknown - self.pending
        self.pending = unknown
        self.failures = {n: why for n, why in self.failures.items() if n in unknown - new}
        # A server that left and comes back later is listed again after its first call.
        self._used &= set(self._catalogs.specs)
        self.variants.reset()
        return new

    def give_up(self) -> None:
        """Stop waiting for servers that did not answer in time; earlier reasons stay."""
        for name in self.pending:
            reason = self.failures.setdefault(name, f"{name} did not answer in time.")
            self.earlier_failures.add(name)
            self._catalogs.save_failure(name, reason)
        self.pending = set()

    # Listing -----------------------------------------------------------------------------------

    async def list_servers(self, names: list[str]) -> None:
        """List servers and read APIs; each is mounted as soon as it has answered."""
        apis = [name for name in names if name in self._catalogs.apis]
        servers = [name for name in names if name not in self._catalogs.apis]
        bound = self._settings().start_concurrency
        async with anyio.create_task_group() as tasks:
            for name in apis:
                tasks.start_soon(self._read_api, name)
            if not servers:
                return
            listing = stream_listings(self._pool, servers, bound=bound, progress=self._progress)
            async with listing as results:
                async for result in results:
                    await self._handle_result(result)

    async def refresh(self) -> None:
        """List again what can be listed without starting a process, if that is configured."""
        if not self._settings().refresh:
            return
        for spec in self._pool.servers:
            if spec.transport != "stdio" and spec.name not in self.pending:
                self.refresher.request_refresh(spec.name)
        for name in self._catalogs.apis:
            if name not in self.pending:
                await self._read_api(name)

    async def retry_failures(self, wait_until_listed: Callable[[], Awaitable[None]]) -> None:
        """Retry servers that could not be listed, with growing pauses, until canceled.

        Args:
            wait_until_listed: Returns when no server is pending.
        """
        pause = FIRST_RETRY_DELAY
        while True:
            await anyio.sleep(pause)
            # A listing that is still running may succeed.
            await wait_until_listed()
            known = self._catalogs
            missing = [n for n in self.failures if n in known.specs and n not in known]
            pause = min(pause * 2, MAX_RETRY_DELAY) if missing else FIRST_RETRY_DELAY
            if missing:
                await self.list_servers(sorted(missing))

    def _on_first_answer(self, server: str) -> None:
        """After the first call to a server: it runs now, so listing it again costs no start."""
        if server not in self._used and self._settings().refresh:
            self._used.add(server)
            self.refresher.request_refresh(server)

    async def _read_api(self, name: str) -> None:
        began, is_new = anyio.current_time(), name in self.pending
        try:
            read = await read_api(self.sources.get_api(self._catalogs.apis[name]))
            if read.error is not None:
                await self._fail(name, prefix_server_name(name, read.error.message))
            elif name in self._catalogs.apis:
                await self._save(name, ServerProfile(), read.entries)
            for problem in read.problems:
                logger.warning("%s", problem)
            if is_new:
                listing = None if read.error else Listing(name, tools=read.entries)
                seconds = anyio.current_time() - began
                self._progress(1, 1, ListingResult(name, listing, read.error, seconds))
        except Exception as exc:  # of one API; the others are read anyway
            await self._reject(name, exc)

    async def _handle_result(self, result: ListingResult) -> None:
        name = result.server
        try:
            if name not in self._catalogs.specs:  # removed from the configuration meanwhile
                return
            needs_login = isinstance(result.error, LoginRequired)
            if needs_login and name not in self._catalogs:
                self.personal.servers.add(name)
            if result.listing is None:
                await self._fail(name, result.failure, needs_login=needs_login)
                return
            self.personal.servers.discard(name)
            for reason in result.listing.failures.values():
                logger.warning("%s (its tools are not affected)", reason)
            before = self._catalogs[name].about if name in self._catalogs else None
            listing = await self.variants.add_variants(result.listing)
            await self._save(name, build_profile(listing, before), listing.tools)
        except Exception as exc:  # of one server; the others are listed anyway
            await self._reject(name, exc)

    # Results -----------------------------------------------------------------------------------

    async def _reject(self, name: str, exc: Exception) -> None:
        """Record that what a server lists cannot be used; its previous catalog stays."""
        log_failure(f"What {name} lists cannot be used", exc)
        reasons = "; ".join(str(one) for one in flatten_exceptions(exc))
        await self._fail(name, f"{name}: what it lists cannot be used: {reasons}")

    async def _fail(self, name: str, reason: str, *, needs_login: bool = False) -> None:
        # The first listing of a server is reported by `progress`; it needs no second line.
        if name not in self.pending and self.failures.get(name) != reason:
            logger.warning("%s", reason)
        self.failures[name] = reason
        self.earlier_failures.discard(name)
        (self.need_login.add if needs_login else self.need_login.discard)(name)
        is_known = name in self._catalogs
        # If the catalog of a server is known, only a missing login matters to other processes.
        if needs_login or not is_known:
            save = partial(self._catalogs.save_failure, name, reason, needs_login=needs_login)
            await to_thread.run_sync(save)
        if not is_known:
            self._arrived(name)

    async def _save(self, name: str, profile: ServerProfile, entries: Iterable[Json]) -> None:
        spec = self._catalogs.specs[name]
        catalog = await to_thread.run_sync(lambda: self._catalogs.save(spec, profile, entries))
        if self._catalogs.specs.get(name) != spec:
            return  # the configuration changed meanwhile, and the server is listed again
        # Recorded before it is mounted: nobody sees a definition that the lock does not know.
        await self._trust.record(name, catalog)
        self.failures.pop(name, None)
        self.need_login.discard(name)
        before = self._catalogs[name].about if name in self._catalogs else ServerProfile()
        if self._catalogs.update(name, catalog):
            for problem in catalog.problems:
                logger.warning("%s", problem)
            self._arrived(name)
            await self._replicas.announce(name, catalog.hash)
            for kind in find_changed_lists(before, catalog.about):
                for announce in self._announcers:
                    await announce(kind)
        elif name in self.pending:
            self._arrived(name)

    def on_lists_changed(self, announce: AnnounceChange) -> None:
        """Call `announce` when prompts or resources change; the board announces tools itself."""
        self._announcers.append(announce)

    async def take_from_replica(self, server: str | None, catalog_hash: str | None) -> None:
        """Take a catalog that another replica announced; every catalog where no name is given."""
        for name in [server] if server is not None else list(self._catalogs.specs):
            if name not in self._catalogs.specs or name in self.pending:
                continue
            try:
                # From the folder, if replicas share it; otherwise the server is listed again.
                catalog = await to_thread.run_sync(self._catalogs.read_cached, name)
                if catalog is not None and catalog_hash in (None, catalog.hash):
                    await self._trust.record(name, catalog)
                    if self._catalogs.update(name, catalog):
                        self._arrived(name)
                elif catalog_hash is not None and name not in self._catalogs.apis:
                    self.refresher.request_refresh(name)
            except Exception as exc:  # of one server; the others are taken anyway
                log_failure(f"The catalog of {name} from another replica cannot be used", exc)


TOPIC = "catalogs"


class ReplicaChannel:
    """The connection of this replica to the others that share its store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.id = secrets.token_hex(8)

    async def announce(self, server: str, catalog_hash: str) -> None:
        """Announce that a server has a new catalog."""
        try:
            message = {"from": self.id, "server": server, "hash": catalog_hash}
            await self._store.publish(TOPIC, message)
        except StoreError as exc:
            logger.warning("Other replicas are not notified that %s changed: %s", server, exc)

    async def follow(self, changed: Callable[[str | None, str | None], Awaitable[None]]) -> None:
        """Call `changed` for each announcement of another replica, until canceled.

        Args:
            changed: Takes the server and the hash of its new catalog; `None` for both when
                announcements were lost, so that any server may have changed.
        """
        async with self._store.subscribe(TOPIC) as messages:
            async for message in messages:
                if message is None:
                    await changed(None, None)
                    continue
                match message:
                    # Anything else was published by a later version: it is ignored.
                    case {"from": str(sender), "server": str(server), "hash": str(catalog_hash)}:
                        if sender != self.id:
                            await changed(server, catalog_hash)
                    case _:
                        pass
