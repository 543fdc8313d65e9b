"""`Gateway`: a board whose tools are those of upstream servers and APIs.

start    kept catalogues are read from disk and mounted; nothing is started
missing  a server that was never listed is listed in the background, bounded in number
use      the first call of a server starts it; then its catalogue is looked at again
change   what a server lists anew is mounted, kept, and announced to clients
reload   servers that are still the same go on as they are
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Set
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from pegboard.board import Pegboard
from pegboard.config import Configuration
from pegboard.config.settings import Settings
from pegboard.core.calls import LOCAL_CALLER, Caller
from pegboard.core.options import Options
from pegboard.core.policy import AccessControl
from pegboard.core.tool_registry import LoadTarget
from pegboard.core.tools import Catalog
from pegboard.dispatch.rate_limit import RateLimits, rate_limit
from pegboard.gateway.background_tasks import log_failure, run_supervised
from pegboard.gateway.catalogs import (
    ServerCatalogs,
    build_options,
    describe_missing_servers,
    explain_unusable,
    may_own_tool,
)
from pegboard.gateway.discovery import AnnounceChange, Discovery
from pegboard.gateway.from_settings import (
    Observability,
    build_limits,
    build_policy,
    close_store,
    open_store,
)
from pegboard.gateway.operator_decisions import OperatorDecisions
from pegboard.gateway.replicas import ReplicaChannel
from pegboard.gateway.shutdown import RequestDrain
from pegboard.modes.mode import View, ViewRequest
from pegboard.observe.logs import EventLog
from pegboard.observe.observers import CombinedObserver
from pegboard.observe.statistics import LiveStatistics
from pegboard.pipeline import Parts
from pegboard.ports import Store
from pegboard.store.fallback import FallbackStore
from pegboard.tokens import count_tokens
from pegboard.upstream.catalog_cache import CatalogCache
from pegboard.upstream.catalog_entries import PLAIN_CLIENT, ClientKind, capabilities_to_kind
from pegboard.upstream.client_sdk import get_version
from pegboard.upstream.downstream import build_downstream
from pegboard.upstream.listing import ListingProgress
from pegboard.upstream.passthrough import Passthrough
from pegboard.upstream.pool import ConnectionPool, PoolLimits
from pegboard.upstream.relay import Relay
from pegboard.upstream.transports import OpenTransport, open_transport

if TYPE_CHECKING:
    from pegboard.upstream.listing import Listing

logger = logging.getLogger(__name__)

FIRST_LOOK = 3.0
"""Seconds after the start for which answers wait for servers that were never listed before."""
FIRST_ANSWERS = 0.3
"""Seconds left to a client's first requests, which follow each other, before work begins behind
them."""
LONGEST_PAUSE = 0.5
"""Seconds between two changes of the board, at most: else as long as the last one took."""


class Gateway:
    """Upstream servers on a board; an async context manager that owns their connections."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        folder: Path,
        progress: ListingProgress = lambda done, total, found: None,
        board: Pegboard | None = None,
        open_transport: OpenTransport = open_transport,
        first_look: float = FIRST_LOOK,
        observing: Observability | None = None,
        store: Store | None = None,
        retry: bool = True,
    ) -> None:
        self.configuration = configuration
        self.board = board or Pegboard(
            instructions=configuration.settings.instructions, version=get_version()
        )
        self.board.folder = folder
        settings = configuration.settings
        live = LiveStatistics()
        self.observing = observing or Observability()
        observers = self.observing.observers
        if store is None:
            store = open_store(settings, CombinedObserver(live, EventLog(), *observers))
        self.store = store
        self.decisions = OperatorDecisions(configuration, self.store, self.observing.arms)
        self.replicas = ReplicaChannel(self.store)
        self.board.parts = Parts(
            store=self.store,
            live=live,
            observers=(*observers, self.decisions.rollouts),
            alternatives=self.board.alternatives,
            is_closed=self.board.is_closed,
        )
        self.logs = folder / "logs"
        self.pool = ConnectionPool(
            configuration.upstreams,
            logs=self.logs,
            open_transport=open_transport,
            limits=_pool_limits(settings),
        )
        self.relay = Relay(self.pool, self.store)
        self.passthrough = Passthrough(self.relay)
        self.passthrough.access = lambda: self.gate
        catalogues = CatalogCache(folder / "catalogues")
        self.offers = ServerCatalogs(configuration, catalogues, self.decisions.judged)
        self._looking = Discovery(
            self.offers,
            self.relay,
            trust=self.decisions.trust,
            replicas=self.replicas,
            settings=lambda: self.configuration.settings.upstreams,
            progress=progress,
            arrived=self._arrive,
        )
        self.work = RequestDrain()
        self.limits: RateLimits | None = None
        self._can_count = False
        self._first_look = first_look
        self._retry = retry
        """Whether servers that failed a moment ago are tried again at once."""
        self._deadline = 0.0
        self._arrived: set[str] = set()
        self._changed = anyio.Event()
        self._mounted = anyio.Event()
        self._doubtful: set[str] = set()
        self._known_kinds: set[ClientKind] = set()
        """Kinds of clients for which all servers on the board have been listed, or tried."""
        self._tried: set[tuple[str, ClientKind]] = set()
        self._under_way: dict[ClientKind, tuple[anyio.Event, float]] = {}
        """Kinds that servers are being listed for; until when an answer waits for it."""
        self._varies = False
        self._fixed: Catalog | None = None
        self._has_listed = False
        self.has_one_session = False
        """Whether one client is served, for whom the list is fixed at the start."""
        self._answered = anyio.Event()
        self.failure: BaseException | None = None
        """What ended the gateway, if nobody stopped it."""
        self.failed = anyio.Event()
        self._owned = AsyncExitStack()
        self._tasks: TaskGroup | None = None
        self._configure(configuration)

    @property
    def options(self) -> Options:
        """How the board is shown."""
        return self.board.options

    @property
    def is_ready(self) -> bool:
        """Whether requests are welcome, and answered without waiting for servers."""
        waits = bool(self._awaited()) and anyio.current_time() < self._deadline
        is_open = self._tasks is not None and not self.work.is_closed
        return is_open and not waits and self.decisions.are_known

    @property
    def is_alive(self) -> bool:
        """Whether the gateway runs; a failure that it could not recover from ends it."""
        return self._tasks is not None and not self._tasks.cancel_scope.cancel_called

    def fail(self, cause: BaseException) -> None:
        """Note that the gateway has ended though nobody stopped it; `failed` tells."""
        self.failure = cause
        self.failed.set()

    async def check(self) -> None:
        """Return when a request could be answered. Raises whatever keeps it from that."""
        if not self.is_alive:
            raise RuntimeError("The gateway does not run.")
        await self.board.view(LOCAL_CALLER)

    # Starting and stopping ---------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.decisions.load()
        self._restore_offers()
        # Definitions of a first use are recorded before they are shown.
        await self.decisions.see(self.offers)
        self._mount()
        self._fix_list()
        await self._owned.__aenter__()
        self._owned.push_async_callback(close_store, self.store)
        await self._owned.enter_async_context(self.pool)
        self.pool.add_listener(self._looking.refresher.on_event)
        self.pool.add_listener(self.passthrough.on_event)
        self._deadline = anyio.current_time() + self._first_look
        self._owned.push_async_callback(self._looking.sources.aclose)
        tasks = self._tasks = await self._owned.enter_async_context(anyio.create_task_group())
        self._owned.callback(tasks.cancel_scope.cancel)
        for name, work in self._background().items():
            tasks.start_soon(run_supervised, name, work)
        self._look_soon(self.pending)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self._tasks = None
        return await self._owned.__aexit__(exc_type, exc, traceback)

    def _background(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """What runs for as long as the gateway does, by what it does."""
        return {
            "Looking at servers that changed": self._looking.refresher.run,
            "Mounting changed tools": self._mount_changes,
            "Looking at servers again": self._refresh,
            "Looking at servers that failed": partial(self._looking.retry_failures, self.looked),
            "Following the lock, switches and rollouts": self._follow_decisions,
            "Following other replicas": partial(
                self.replicas.follow, self._looking.changed_elsewhere
            ),
        }

    def restore(self) -> None:
        """Mount what is kept on disk; the rest is pending. Blocks, for milliseconds."""
        self._restore_offers()
        self._mount()
        self._fix_list()

    def _restore_offers(self) -> None:
        self._doubtful = self._looking.recall(self.offers.restore(), retry=self._retry)
        self._learn()

    async def looked(self) -> None:
        """Return when every server that was not known has been listed or has failed.

        Those that failed the last time are not waited for longer than a first look takes.
        """
        while self._awaited():
            await self._mounted.wait()
        with anyio.CancelScope(deadline=self._deadline):
            while self.pending:
                await self._mounted.wait()

    async def reload(self, configuration: Configuration) -> None:
        """Take a new configuration; calls under way and servers that stay the same go on."""
        self._configure(configuration)
        self.offers.configure(configuration)
        unknown = await to_thread.run_sync(self.offers.restore)
        await self.decisions.see(self.offers)
        new = self._looking.renew(unknown)
        self.pool.limits = _pool_limits(configuration.settings)
        self._tried.clear()
        leaving = self.pool.swap_specs(configuration.upstreams)
        self._learn()
        self._mount()
        self._fixed = None  # another configuration, another list: it waits for new servers
        self._look_soon(new)
        await self.pool.retire(leaving)

    def _configure(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.decisions.configure(configuration)
        self.board.policy = build_policy(configuration.settings)
        self.passthrough.clean_results = configuration.settings.results.clean
        self._compose()
        self.board.reconfigure(build_options(configuration))

    def _compose(self) -> None:
        """Put the layers together; tokens are counted where figures of them are kept."""
        self.limits = build_limits(self.configuration.settings, self.store)
        limited = () if self.limits is None else (rate_limit(self.limits),)
        layers = (*self.observing.layers, self.board.guard, *limited)
        count = count_tokens if self._wants_tokens and self._can_count else None
        self.board.parts = replace(self.board.parts, layers=layers, count=count)

    @property
    def _wants_tokens(self) -> bool:
        return self.observing.wants_tokens or self.decisions.rollouts.current is not None

    async def _prepare_to_count(self) -> None:
        """Load the tokenizer beside the first answers: later, all would wait for it.

        Where a store is shared a rollout may begin at any time.
        """
        may_want = self._wants_tokens or isinstance(self.store, FallbackStore)
        if may_want and not self._can_count:
            await to_thread.run_sync(count_tokens, "")
            self._can_count = True
            self._compose()
            self.board.reconfigure(self.board.options)

    async def _follow_decisions(self) -> None:
        def rolled_out() -> None:
            self._compose()
            self.board.reconfigure(self.board.options)
            self.board.announce()  # clients ask for the list again
            tasks.start_soon(self._prepare_to_count)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._prepare_to_count)
            await self.decisions.follow(
                locked=self._judge, switched=lambda: self._changed.set(), rolled_out=rolled_out
            )

    async def switch(self, tool_id: str, enabled: bool) -> None:
        """Switch a tool on or off, here and in every replica that shares the store.

        Raises:
            StoreError: The shared store is away: nothing was switched.
        """
        await self.decisions.switches.turn(tool_id, enabled=enabled)
        self._mount()

    def _learn(self) -> None:
        """Tell the pool what eras the kept catalogues know of, to save the question."""
        for spec in self.pool.servers:
            if spec.name in self.offers:
                self.pool.set_known_era(spec.name, self.offers[spec.name].about.era)

    @property
    def gate(self) -> AccessControl:
        """Who may know of what, by the rules and tools as they are now."""
        return AccessControl(self.board.policy, self.board.known_catalog)

    async def _judge(self) -> None:
        """Compare what is known with the lock as it is now."""
        await self.decisions.see(self.offers)
        self._changed.set()

    # Looking at servers ------------------------------------------------------------------------

    @property
    def pending(self) -> set[str]:
        """Servers that nothing is known of yet and that are being looked at."""
        return self._looking.pending

    @property
    def knows_all_servers(self) -> bool:
        """Whether every server has been listed, now or before; one that failed may yet come."""
        return all(name in self.offers for name in self.offers.specs)

    @property
    def failures(self) -> dict[str, str]:
        """Servers that could not be listed, with the reason."""
        return self._looking.failures

    @property
    def unavailable(self) -> dict[str, str]:
        """Every server whose tools are missing, with the reason: unusable as written, or failed."""
        return {**explain_unusable(self.configuration), **self.failures}

    @property
    def remembered(self) -> set[str]:
        """Those of `failures` whose reason is that of an earlier attempt."""
        return self._looking.remembered

    def give_up(self) -> None:
        """Wait no longer for servers that did not answer in time."""
        self._looking.give_up()

    def when_lists_change(self, announce: AnnounceChange) -> None:
        """Have clients told of changed prompts and resources; the board tells of tools."""
        self._looking.when_lists_change(announce)

    def _look_soon(self, names: Set[str]) -> None:
        if names and self._tasks is not None:
            looking = partial(self._looking.look, sorted(names))
            self._tasks.start_soon(run_supervised, "Looking at servers", looking)

    async def _refresh(self) -> None:
        """Behind the first answer, make what the first search needs, and look at servers again."""
        await self._answered.wait()
        await anyio.sleep(FIRST_ANSWERS)
        await to_thread.run_sync(lambda: self.board.index)
        await self._looking.refresh()

    # Mounting ----------------------------------------------------------------------------------

    def _arrive(self, name: str) -> None:
        self._arrived.add(name)
        self._changed.set()

    async def _mount_changes(self) -> None:
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            began = anyio.current_time()
            try:
                self._mount()
            except Exception:
                self._changed.set()  # the tools stay as they are, and it is tried again
                raise
            await anyio.sleep(min(LONGEST_PAUSE, anyio.current_time() - began))

    def _mount(self) -> None:
        """Put the tools of all servers on the board."""
        self._looking.pending -= self._arrived
        self._arrived.clear()
        self._known_kinds.clear()
        self._varies = self.offers.varies
        tools = self.offers.tools()
        pins, unfit = self.offers.pins(tools)
        if unfit and not self.pending and not self.failures:
            logger.warning("These pins fit no tool: %s.", ", ".join(unfit))
        self.board.options = replace(self.board.options, pins=pins)
        known = [spec for name, spec in self.offers.specs.items() if name in self.offers]
        self.board.mount(
            self._looking.sources.of(known, self.offers.apis),
            tools,
            pending=self.pending,
            source=self.offers.hash,
        )
        self._release_list()
        self.board.server_instructions = self.offers.instructions()
        self._hold_listings()
        self._mounted.set()
        self._mounted = anyio.Event()

    def _hold_listings(self) -> None:
        """Route resources and prompts of all servers whose lists can be used."""
        listings = self.offers.listings()
        try:
            self.passthrough.set_listings(listings)
            return
        except Exception as exc:
            log_failure("The resources and prompts of some server cannot be used", exc)
        good: list[Listing] = []
        for listing in listings:
            try:
                self.passthrough.set_listings([*good, listing])
                good.append(listing)
            except Exception as exc:
                log_failure(f"The resources and prompts of {listing.server} are left out", exc)
        self.passthrough.set_listings(good)

    def _fix_list(self) -> None:
        """Where servers are not known yet, have lists made without them.

        Then a list is the same from the first answer on, and nobody waits for it: servers that it
        cannot count are named in it, and `auto` is `proxy`.
        """
        self._fixed = self.board.known_catalog if self.pending else None
        self._has_listed = self.has_one_session

    def _release_list(self) -> None:
        """Once all servers are known, make lists of them, unless somebody was given another."""
        if not self.pending and not self._has_listed:
            self._fixed = None

    # Showing -----------------------------------------------------------------------------------

    async def view(self, caller: Caller, **asked: Unpack[ViewRequest]) -> View:
        """The board as one caller sees it; waits a little for servers that nobody has seen yet."""
        if asked.get("whole", True) or self._fixed is None or self.offers.has_pins:
            await self.first_look()
        if self.pending:
            await self._wait_for(asked.get("needs") or (), caller)
        kind = capabilities_to_kind(
            build_downstream(caller, asked.get("request"), asked.get("params") or {}).capabilities
        )
        if kind:
            await self._look_for(kind)
        self._answered.set()
        view = await self.board.view(caller, **asked)
        if asked.get("request") is not None and self._varies:
            seen, plain = (self.offers.seen_by(k, view.catalog) for k in (kind, PLAIN_CLIENT))
            view = replace(view, catalog=seen, plain=plain)
        if self._fixed is not None:
            self._has_listed |= not asked.get("whole", True)
            fixed = self.board.policy.visible(self._fixed, caller)
            view = replace(view, constant=self.offers.seen_by(PLAIN_CLIENT, fixed))
        if (mode := self.decisions.rollouts.mode_for(caller)) is not None:
            view = replace(view, options=replace(view.options, mode=mode))
        if not self.pending and not self.unavailable:
            return view
        everything, gate = asked.get("everything", False), self.gate

        def may_know(name: str) -> bool:
            return everything or gate.can_see_server(caller, name)

        starting = [name for name in sorted(self.pending) if may_know(name)]
        known = self.pending | {name for name in self.failures if name in self.offers}
        gone = [(n, why) for n, why in sorted(self.unavailable.items()) if n not in known]
        notes = describe_missing_servers(starting, [why for name, why in gone if may_know(name)])
        return replace(view, notes=(*view.notes, *notes), is_complete=not self.pending)

    async def first_look(self) -> None:
        """Wait a little for servers that have never been listed."""
        while self._awaited() and anyio.current_time() < self._deadline:
            with anyio.CancelScope(deadline=self._deadline):
                await self._mounted.wait()

    async def _look_for(self, kind: ClientKind) -> None:
        """Find out what servers list to clients of a kind; answers wait a little for it, once."""
        if kind in self._known_kinds:
            return
        todo = [n for n in self.offers.unread(kind) if (n, kind) not in self._tried]
        if todo and self._tasks is not None:
            self._tried |= {(name, kind) for name in todo}
            done = anyio.Event()
            self._under_way[kind] = done, anyio.current_time() + self._first_look
            self._tasks.start_soon(self._list_for, kind, todo, done)
        if kind not in self._under_way:
            self._known_kinds.add(kind)
            return
        done, deadline = self._under_way[kind]
        with anyio.CancelScope(deadline=deadline):
            await done.wait()

    async def _list_for(self, kind: ClientKind, servers: list[str], done: anyio.Event) -> None:
        try:
            await self._looking.look_for(kind, servers)
            if self._arrived:
                self._mount()
        except Exception:  # the outermost frame of this task: what is known is shown
            logger.exception("Servers could not be listed for clients with %s", kind)
        finally:
            if (current := self._under_way.get(kind)) and current[0] is done:
                del self._under_way[kind]
            done.set()

    async def _wait_for(self, needs: Iterable[LoadTarget], caller: Caller) -> None:
        """Wait until the servers of these tools are listed, for as long as a call may take."""
        may_know = self.board.policy.grant(caller).allows_group
        names = [f"{n.category}.{n.name}" if n.category else n.name for n in needs if n.name]
        owners = {s for name in names for s in self._pending_owners(name) if may_know(s)}
        seconds = max((self.offers.specs[name].timeout for name in owners), default=0.0)
        with anyio.move_on_after(seconds):
            while owners & self.pending:
                await self._mounted.wait()

    def _pending_owners(self, tool: str) -> list[str]:
        """The servers being listed for the first time that may have a tool of this name."""
        if self.board.known_catalog.matching(tool):
            return []
        settings, specs = self.configuration.settings, self.offers.specs
        pending = [specs[name] for name in self.pending if name in specs]
        if settings.names.style == "bare":
            return [spec.name for spec in pending]
        return [spec.name for spec in pending if may_own_tool(spec, tool)]

    def _awaited(self) -> set[str]:
        """The servers that an answer is worth waiting for: not those that failed the last time."""
        return self.pending - self._doubtful


def _pool_limits(settings: Settings) -> PoolLimits:
    upstreams = settings.upstreams
    return PoolLimits(upstreams.max_processes, upstreams.max_processes_per_principal)
