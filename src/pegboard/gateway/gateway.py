"""`Gateway`: a board whose tools are those of upstream servers and APIs.

    start     cached catalogs are read from disk and mounted; no server is started
    missing   a server that was never listed is listed in the background, a few at a time
    call      the first call to a server starts it; then its tools are listed again
    change    when a server lists something new, it is mounted, cached, and announced to clients
    reload    servers that did not change keep running

`discovery.py` finds out what servers list, `catalogs.py` holds it, and this module mounts it on the
board, as one task, so that the tools of ten servers that arrive together are mounted once.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Set
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from pegboard.board import Pegboard
from pegboard.config.loader import Configuration
from pegboard.core.calls import LOCAL_CALLER, Caller
from pegboard.core.options import ModeName, Options
from pegboard.core.policy import AccessControl
from pegboard.core.tool_registry import LoadTarget
from pegboard.core.tools import Catalog, Tool
from pegboard.dispatch.learned_shapes import SHAPES_FOLDER, LearnedShapes
from pegboard.dispatch.rate_limit import RateLimits, rate_limit
from pegboard.gateway.background_tasks import run_supervised
from pegboard.gateway.catalogs import (
    ServerCatalogs,
    build_options,
    describe_missing_servers,
    explain_unusable,
    may_own_tool,
    name_place,
)
from pegboard.gateway.discovery import Discovery, ReplicaChannel
from pegboard.gateway.from_settings import (
    Observability,
    build_logins,
    build_policy,
    build_pool_limits,
    build_rate_limits,
    build_scope_layers,
    close_store,
    open_run_records,
    open_store,
)
from pegboard.gateway.operator_decisions import OperatorDecisions
from pegboard.gateway.shutdown import RequestDrain
from pegboard.gateway.sources import route_resources
from pegboard.modes.mode import View, ViewRequest
from pegboard.observe.call_history import open_history
from pegboard.observe.logs import EventLog
from pegboard.observe.statistics import CombinedObserver, LiveStatistics
from pegboard.pipeline import Parts
from pegboard.ports import Store
from pegboard.store.fallback import FallbackStore
from pegboard.tokens import count_tokens
from pegboard.upstream.catalog_cache import CatalogCache
from pegboard.upstream.catalog_entries import PLAIN_CLIENT, capabilities_to_kind
from pegboard.upstream.client_sdk import get_version
from pegboard.upstream.downstream import build_downstream
from pegboard.upstream.listing import ListingProgress
from pegboard.upstream.passthrough import Passthrough
from pegboard.upstream.pool import ConnectionPool
from pegboard.upstream.relay import Relay
from pegboard.upstream.transports import OpenTransport, open_transport

logger = logging.getLogger(__name__)

LISTING_WAIT = 3.0
"""Seconds after the start for which answers wait for servers that were never listed before."""
QUIET_AFTER_ANSWER = 0.3
"""Seconds after the first answer before background work begins: a client's first requests follow
each other closely and should not compete with it."""
MAX_MOUNT_PAUSE = 0.5
"""The longest pause, in seconds, between two changes of the board. The pause is as long as the last
change took, so that mounting never takes more than half of the time."""


class Gateway:
    """Upstream servers on a board; an async context manager that owns their connections.

    Args:
        configuration: The servers, and all settings.
        folder: Where catalogs and logs are stored.
        progress: Called for each server that is listed for the first time.
        board: The board to mount tools on, where there is one already.
        open_transport: Opens the transport of a server.
        listing_wait: Seconds for which answers wait for servers that were never listed.
        observability: Observers and layers in addition to those of every board.
        store: The store for shared state; opened from the configuration where it is not given.
        retry: Whether servers that failed a moment ago are tried again at once.
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        folder: Path,
        progress: ListingProgress = lambda done, total, found: None,
        board: Pegboard | None = None,
        open_transport: OpenTransport = open_transport,
        listing_wait: float = LISTING_WAIT,
        observability: Observability | None = None,
        store: Store | None = None,
        retry: bool = True,
    ) -> None:
        instructions = configuration.settings.instructions
        self.configuration = configuration
        self.board = board or Pegboard(instructions=instructions, version=get_version())
        self.observability = observability or Observability()
        self._prepare_board(folder, store)
        self._prepare_connections(folder, open_transport)
        cache = CatalogCache(folder / "catalogs")
        self.catalogs = ServerCatalogs(configuration, cache, self.decisions.apply)
        self.replicas = ReplicaChannel(self.store)
        self.discovery = Discovery(
            self.catalogs,
            self.relay,
            trust=self.decisions.trust,
            replicas=self.replicas,
            settings=lambda: self.configuration.settings.upstreams,
            progress=progress,
            arrived=self._note_arrival,
            listing_wait=listing_wait,
        )

        # Mounting: servers that arrived since the last time, and who waits for it.
        self._arrived: set[str] = set()
        self._changed = anyio.Event()
        self._mounted = anyio.Event()
        self._listing_wait = listing_wait
        self._listing_deadline = 0.0
        self._retry = retry
        self._failed_before: set[str] = set()
        """Servers that failed the last time: listed again now, but no answer waits for them."""
        self._fixed_catalog: Catalog | None = None
        """The catalog that lists are made of while servers are missing; see `_fix_list`."""
        self._has_listed = False
        self.serves_one_client = False
        """Whether one client is served, for whom the list is fixed at the start."""

        # Serving.
        self.drain = RequestDrain()
        self.limits: RateLimits | None = None
        self._tokenizer_loaded = False
        self._answered = anyio.Event()
        self.failure: BaseException | None = None
        """Why the gateway ended, if nobody stopped it."""
        self.failed = anyio.Event()
        self._resources = AsyncExitStack()
        self._tasks: TaskGroup | None = None
        self._configure(configuration)

    def _prepare_board(self, folder: Path, store: Store | None) -> None:
        """Set up the board with the store, the decisions in it, and the observers."""
        statistics = LiveStatistics()
        if store is None:
            # The store itself is observed too: the dashboard shows when it is unavailable.
            observers = (statistics, EventLog(), *self.observability.observers)
            store = open_store(self.configuration.settings, CombinedObserver(*observers))
        self.store = store
        self.decisions = OperatorDecisions(self.configuration, store, self.observability.arms)
        self.board.folder, self.board.place = folder, name_place(self.configuration)
        self.board.rollouts = self.decisions.rollouts
        self.board.parts = Parts(
            store=self.store,
            live=statistics,
            history=open_history(folder, self.configuration.files),
            observers=(*self.observability.observers, self.decisions.rollouts),
            alternatives=self.board.alternatives,
            is_closed=self.board.is_closed,
            shapes=LearnedShapes(lambda: folder / SHAPES_FOLDER, owner=self._owner_of_shape),
            searches=self.board.searches,
            runs=open_run_records(self.configuration.settings, folder, self.configuration.files),
        )

    def _owner_of_shape(self, tool: Tool, caller: Caller) -> str | None:
        """Whom a learned shape belongs to: the caller, where the server is called on their behalf.

        Several people may share an anonymous principal, so nothing is learned from their results.
        """
        spec = self.catalogs.specs.get(tool.server or "")
        if spec is None or caller.is_local_user:
            return ""
        if spec.has_caller_headers:
            return None if caller.anonymous else caller.principal
        # Whether a server without credentials requires a login is only known when it is called.
        may_log_in = spec.uses_oauth and spec.oauth.grant != "client_credentials"
        return caller.principal if may_log_in and not caller.anonymous else ""

    def _prepare_connections(self, folder: Path, open_transport: OpenTransport) -> None:
        """Set up the connection pool; nothing is connected before it is needed."""
        self.logs = folder / "logs"
        self.logins = build_logins(self.configuration.settings, self.store)
        self.logins.on_login(self._on_login)
        self.pool = ConnectionPool(
            self.configuration.upstreams,
            logs=self.logs,
            open_transport=open_transport,
            limits=build_pool_limits(self.configuration.settings),
            logins=self.logins,
        )
        self.relay = Relay(self.pool, self.store)
        self.passthrough = Passthrough(self.relay)
        self.passthrough.access = lambda: self.access

    @property
    def options(self) -> Options:
        """How the board is shown."""
        return self.board.options

    @property
    def access(self) -> AccessControl:
        """Which servers and tools a caller may know of, by the current rules."""
        return AccessControl(self.board.policy, self.board.known_catalog)

    @property
    def is_ready(self) -> bool:
        """Whether requests are accepted, and answered without waiting for servers."""
        waits = bool(self._servers_to_wait_for()) and anyio.current_time() < self._listing_deadline
        is_open = self._tasks is not None and not self.drain.is_closed
        return is_open and not waits and self.decisions.are_known

    @property
    def is_alive(self) -> bool:
        """Whether the gateway is running; an unrecoverable failure ends it."""
        return self._tasks is not None and not self._tasks.cancel_scope.cancel_called

    def fail(self, cause: BaseException) -> None:
        """Record that the gateway has ended although nobody stopped it; sets `failed`."""
        self.failure = cause
        self.failed.set()

    async def check(self) -> None:
        """Check that a request could be answered; raises the reason if not."""
        if not self.is_alive:
            raise RuntimeError("The gateway is not running.")
        await self.board.view(LOCAL_CALLER)

    # Starting and stopping ---------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.decisions.load()
        self._restore_catalogs()
        # A definition is recorded in the lock before any client can see it.
        await self.decisions.record_definitions(self.catalogs)
        self._mount()
        self._fix_list()
        await self._resources.__aenter__()
        self._resources.push_async_callback(close_store, self.store)
        self._resources.callback(self.board.parts.history.save)
        await self._resources.enter_async_context(self.pool)
        await self._resources.enter_async_context(self.logins)
        self.pool.add_listener(self.discovery.refresher.on_event)
        self.pool.add_listener(self.passthrough.on_event)
        self.pool.add_listener(self.discovery.personal.on_event)
        self._listing_deadline = anyio.current_time() + self._listing_wait
        self._resources.push_async_callback(self.discovery.sources.aclose)
        tasks = self._tasks = await self._resources.enter_async_context(anyio.create_task_group())
        # Closed in reverse order: the tasks end before the connections that they use.
        self._resources.callback(tasks.cancel_scope.cancel)
        retry = partial(self.discovery.retry_failures, self.wait_until_listed)
        follow = partial(self.replicas.follow, self.discovery.take_from_replica)
        background: dict[str, Callable[[], Awaitable[None]]] = {
            "Listing servers that changed": self.discovery.refresher.run,
            "Mounting changed tools": self._mount_changes,
            "Listing servers again": self._refresh,
            "Retrying servers that failed": retry,
            "Following the lock, switches and rollouts": self._follow_decisions,
            "Following other replicas": follow,
            "Saving the history of calls": self.board.parts.history.save_periodically,
        }
        for name, task in background.items():
            tasks.start_soon(run_supervised, name, task)
        self._list_soon(self.pending)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self._tasks = None
        return await self._resources.__aexit__(exc_type, exc, traceback)

    def restore(self) -> None:
        """Mount the catalogs on disk; servers without one are pending. Blocks for milliseconds."""
        self._restore_catalogs()
        self._mount()
        self._fix_list()

    def _restore_catalogs(self) -> None:
        unknown = self.catalogs.restore()
        self._failed_before = self.discovery.start_with(unknown, retry=self._retry)
        self._learn_eras()

    def _learn_eras(self) -> None:
        """Tell the pool the protocol era of each cached server, which saves the negotiation."""
        for spec in self.pool.servers:
            if spec.name in self.catalogs:
                self.pool.set_known_era(spec.name, self.catalogs[spec.name].about.era)

    async def wait_until_listed(self) -> None:
        """Return when every unknown server has been listed or has failed.

        Servers that failed the last time are waited for until `listing_wait` is over, no longer.
        """
        while self._servers_to_wait_for():
            await self._mounted.wait()
        with anyio.CancelScope(deadline=self._listing_deadline):
            while self.pending:
                await self._mounted.wait()

    # Configuration and decisions ---------------------------------------------------------------

    async def reload(self, configuration: Configuration) -> None:
        """Apply a new configuration; calls in progress and unchanged servers continue."""
        self._configure(configuration)
        self.catalogs.configure(configuration)
        unknown = await to_thread.run_sync(self.catalogs.restore)
        await self.decisions.record_definitions(self.catalogs)
        new = self.discovery.reconfigure(unknown)
        # Nothing is awaited from here to `retire`: tools and connections change together.
        self.pool.limits = build_pool_limits(configuration.settings)
        leaving = self.pool.swap_specs(configuration.upstreams)
        self._learn_eras()
        self._mount()
        self._fixed_catalog = None  # another configuration, another list: it waits for new servers
        self._list_soon(new)
        await self.pool.retire(leaving)

    def _configure(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.decisions.configure(configuration)
        self.board.policy = build_policy(configuration.settings)
        self.passthrough.clean_results = configuration.settings.results.clean
        self._compose_layers()
        self.board.reconfigure(build_options(configuration))

    def _compose_layers(self) -> None:
        """Build the gateway's own layers; tokens are counted only where somebody reads the count.

        Counting loads the tokenizer and costs time with every call.
        """
        self.limits = build_rate_limits(self.configuration.settings, self.store)
        scopes = build_scope_layers(self.configuration.settings)
        limits = () if self.limits is None else (rate_limit(self.limits),)
        layers = (*self.observability.layers, self.board.guard, *scopes, *limits)
        count = count_tokens if self._wants_tokens and self._tokenizer_loaded else None
        self.board.parts = replace(self.board.parts, layers=layers, count=count)

    @property
    def _wants_tokens(self) -> bool:
        return self.observability.wants_tokens or self.decisions.rollouts.current is not None

    async def _load_tokenizer(self) -> None:
        """Load the tokenizer in the background, so that no answer has to wait for it."""
        # Where a store is shared, a rollout may begin at any time, and a rollout counts tokens.
        may_want = self._wants_tokens or isinstance(self.store, FallbackStore)
        if may_want and not self._tokenizer_loaded:
            await to_thread.run_sync(count_tokens, "")
            self._tokenizer_loaded = True
            self._compose_layers()

    async def _follow_decisions(self) -> None:
        async def on_lock() -> None:
            await self.decisions.record_definitions(self.catalogs)
            self._changed.set()

        def on_rollout() -> None:
            self._compose_layers()
            self.board.announce()  # clients request the list again, in their new mode
            tasks.start_soon(self._load_tokenizer)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._load_tokenizer)
            await self.decisions.follow(
                on_lock=on_lock, on_switch=lambda: self._changed.set(), on_rollout=on_rollout
            )

    async def switch(self, tool_id: str, enabled: bool) -> None:
        """Switch a tool on or off, here and in every replica that shares the store.

        Raises:
            StoreError: The shared store is unavailable: nothing was switched.
        """
        await self.decisions.switches.switch(tool_id, enabled=enabled)
        self._mount()

    # The state of servers ----------------------------------------------------------------------

    @property
    def pending(self) -> set[str]:
        """Servers without a catalog that are being listed."""
        return self.discovery.pending

    @property
    def knows_all_servers(self) -> bool:
        """Whether every server has a catalog; one that failed may still get one."""
        return all(name in self.catalogs for name in self.catalogs.specs)

    @property
    def failures(self) -> dict[str, str]:
        """Servers that could not be listed, with the reason."""
        return self.discovery.failures

    @property
    def unavailable(self) -> dict[str, str]:
        """Every server whose tools are missing, with the reason: a wrong entry, or a failure."""
        return {**explain_unusable(self.configuration), **self.failures}

    def _list_soon(self, names: Set[str]) -> None:
        if names and self._tasks is not None:
            task = partial(self.discovery.list_servers, sorted(names))
            self._tasks.start_soon(run_supervised, "Listing servers", task)

    def _on_login(self, server: str, principal: str) -> None:
        """List a server again that somebody has logged in to, since it may list more now."""
        if server not in self.catalogs.specs:
            return
        if principal != LOCAL_CALLER.principal:
            # The catalog is for everybody, so it is not read with one person's login.
            self.discovery.personal.forget(server, principal)
            self.board.announce()
        elif server in self.catalogs:
            self.discovery.refresher.request_refresh(server)
        else:
            self._list_soon({server})

    async def _refresh(self) -> None:
        """After the first answer, build the search index and list servers again."""
        await self._answered.wait()
        await anyio.sleep(QUIET_AFTER_ANSWER)
        # In a thread: the first search would otherwise build the index, and wait for it.
        await to_thread.run_sync(lambda: self.board.index)
        await self.discovery.refresh()

    # Mounting ----------------------------------------------------------------------------------

    def _note_arrival(self, name: str) -> None:
        self._arrived.add(name)
        self._changed.set()

    def _mount_arrived(self) -> None:
        """Mount now instead of in `_mount_changes`, for those who wait for it."""
        if self._arrived:
            self._mount()

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
            await anyio.sleep(min(MAX_MOUNT_PAUSE, anyio.current_time() - began))

    def _mount(self) -> None:
        """Put the tools of all servers on the board."""
        # A server stays pending until its tools can be called, so that nobody who waited for it
        # looks at the board too early.
        self.discovery.pending -= self._arrived
        self._arrived.clear()
        self.discovery.variants.on_mount()
        tools = self.catalogs.tools()
        pins, unmatched = self.catalogs.pins(tools)
        if unmatched and not self.pending and not self.failures:
            logger.warning("These pins match no tool: %s.", ", ".join(unmatched))
        self.board.options = replace(self.board.options, pins=pins)
        self.discovery.personal.on_mount()
        usable = self.discovery.personal.servers
        known = [s for n, s in self.catalogs.specs.items() if n in self.catalogs or n in usable]
        self.board.mount(
            self.discovery.sources.get_all(known, self.catalogs.apis),
            tools,
            pending=self.pending,
            source=self.catalogs.hash,
        )
        # Once all servers are known, lists contain them, unless a client already got another list.
        if not self.pending and not self._has_listed:
            self._fixed_catalog = None
        self.board.server_instructions = self.catalogs.instructions()
        route_resources(self.passthrough, self.catalogs.listings())
        # A new event for the next time: everybody who waits looks again after each mount.
        self._mounted.set()
        self._mounted = anyio.Event()

    def _fix_list(self) -> None:
        """While servers are unknown, make lists without them.

        Then the list is the same from the first answer on, and nobody waits for servers: it names
        the servers whose tools it cannot count, and `auto` means `proxy`.
        """
        # Of the tools that every kind of client sees: it must not change with the client.
        plain = self.catalogs.filter_for_kind(PLAIN_CLIENT, self.board.known_catalog)
        self._fixed_catalog = plain if self.pending else None
        self._has_listed = self.serves_one_client

    # Views -------------------------------------------------------------------------------------

    async def view(self, caller: Caller, **request: Unpack[ViewRequest]) -> View:
        """The board as one caller sees it; waits briefly for servers that were never listed."""
        is_whole = request.get("whole", True)
        if self.pending:
            # A fixed list needs no server, unless tools are pinned and listed as themselves.
            if is_whole or self._fixed_catalog is None or self.catalogs.has_pins:
                await self.wait_for_first_listing()
            await self._wait_for_owners(request.get("needs") or (), caller)
        params = request.get("params") or {}
        downstream = build_downstream(caller, request.get("request"), params)
        kind = capabilities_to_kind(downstream.capabilities)
        if kind:
            await self.discovery.variants.wait_for(kind, self._tasks, self._mount_arrived)
        if self.discovery.personal.servers:
            await self.discovery.personal.wait_for(caller, self._tasks)
        self._answered.set()
        view = await self.board.view(caller, **request)
        self._has_listed |= self._fixed_catalog is not None and not is_whole
        # What a gateway shows differently from the board itself. The view is new and not shared, so
        # it is changed in place: copying it for every call would have a measurable cost.
        if request.get("request") is not None and self.discovery.variants.exist:
            whole = view.catalog
            view.catalog = self.catalogs.filter_for_kind(kind, whole)
            view.plain = self.catalogs.filter_for_kind(PLAIN_CLIENT, whole)
        if self._fixed_catalog is not None:
            view.constant = self.board.policy.visible(self._fixed_catalog, caller)
        if self.discovery.personal.servers:
            self.discovery.personal.extend(view, self.board)
        if self.pending or self.failures or self.configuration.unusable:
            notes = self._describe_missing(caller, request.get("everything", False))
            view.notes = (*view.notes, *notes)
            view.is_complete = not self.pending
        return view

    def expected_mode(self, caller: Caller) -> ModeName:
        """The mode that a caller will get, by the servers that are known now."""
        fixed, is_complete = self._fixed_catalog, not self.pending
        return self.board.expected_mode(caller, fixed, is_complete=is_complete)

    def _describe_missing(self, caller: Caller, everything: bool) -> list[str]:
        """Notes on servers whose tools are missing, if the caller may know of them."""
        access = self.access

        def may_know(name: str) -> bool:
            return everything or access.can_see_server(caller, name)

        starting = [name for name in sorted(self.pending) if may_know(name)]
        # A server that failed now but has a catalog from before is not missing.
        present = self.pending | {name for name in self.failures if name in self.catalogs}
        present |= {n for n in self.failures if self.discovery.personal.has_catalog(n, caller)}
        missing = [(n, why) for n, why in sorted(self.unavailable.items()) if n not in present]
        return describe_missing_servers(starting, [why for name, why in missing if may_know(name)])

    async def wait_for_first_listing(self) -> None:
        """Wait, until `listing_wait` is over, for servers that have never been listed."""
        while self._servers_to_wait_for() and anyio.current_time() < self._listing_deadline:
            with anyio.CancelScope(deadline=self._listing_deadline):
                await self._mounted.wait()

    async def _wait_for_owners(self, needs: Iterable[LoadTarget], caller: Caller) -> None:
        """Wait until the servers of these tools are listed, for as long as a call may take."""
        may_know = self.board.policy.grant(caller).allows_group
        specs, is_bare = self.catalogs.specs, self.configuration.settings.names.style == "bare"
        owners: set[str] = set()
        for need in needs:
            if not need.name:
                continue
            tool = f"{need.category}.{need.name}" if need.category else need.name
            if self.board.known_catalog.matching(tool):
                continue
            # A bare name does not tell its server: it may be any of those that are pending.
            owners |= {
                name
                for name in self.pending
                if name in specs and (is_bare or may_own_tool(specs[name], tool)) and may_know(name)
            }
        seconds = max((self.catalogs.specs[name].timeout for name in owners), default=0.0)
        with anyio.move_on_after(seconds):
            while owners & self.pending:
                await self._mounted.wait()

    def _servers_to_wait_for(self) -> set[str]:
        """The servers that an answer waits for: not those that failed the last time."""
        return self.pending - self._failed_before
