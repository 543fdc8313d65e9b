"""What operators decide about tools while a gateway runs: the lock, switched-off tools, a rollout.

    lock       which definitions of tools are approved; unapproved ones are held back
    switches   tools that were switched off
    rollout    a mode that part of the callers get

Each decision is stored where all replicas read it, and every replica follows changes. Decisions
have a store of their own, which evicts nothing and has no local fallback: until the lock and the
switches have been read, no tool of a server can be used.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import anyio
from anyio import to_thread

from pegboard.config import Configuration
from pegboard.config.settings import Settings, TrustSettings
from pegboard.core.json import Json
from pegboard.core.sanitization import find_flags
from pegboard.core.tool_lock import (
    HoldReason,
    ListedDefinition,
    ServerLock,
    ToolLock,
    TrustMode,
    TrustRule,
    make_placeholder,
)
from pegboard.core.tools import Tool, set_enabled
from pegboard.errors import PegboardError, StoreError
from pegboard.gateway.background_tasks import log_failure
from pegboard.gateway.catalogs import ServerCatalogs
from pegboard.gateway.lock_storage import FileLockStorage, LockStorage, SharedLockStorage
from pegboard.observe.rollouts import ArmObserver, RolloutTracker
from pegboard.ports import Store
from pegboard.record_watch import follow
from pegboard.store.fallback import decision_store
from pegboard.store.memory import MemoryStore
from pegboard.upstream.catalog_cache import CachedCatalog
from pegboard.upstream.spec import UpstreamSpec

logger = logging.getLogger(__name__)

IN_STORE = "store"


class ToolTrust:
    """The lock as far as this gateway knows it now; until it was read, all tools are held back."""

    def __init__(
        self,
        locks: LockStorage | None,
        settings: TrustSettings | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._locks = locks
        self._settings = settings or TrustSettings()
        self._clock = clock
        self._modes: dict[str, TrustMode] = {}
        self._known: dict[str, ServerLock] = {}
        self.is_known = locks is None
        """Whether the lock has been read, or there is none."""
        self.problem: str | None = None
        """Why the lock could not be read the last time."""

    @property
    def locks(self) -> LockStorage | None:
        """Where decisions are stored, if definitions are locked at all."""
        return self._locks

    def configure(self, specs: Iterable[UpstreamSpec], settings: TrustSettings) -> None:
        """Take how servers are to be trusted: all of them, and those that say otherwise."""
        self._settings = settings
        self._modes = {spec.name: spec.trust for spec in specs if spec.trust is not None}

    async def load(self) -> None:
        """Read the lock again; what was known before goes on where it cannot be read.

        Raises:
            PegboardError: It cannot be read.
        """
        if self._locks is None:
            return
        try:
            self._known = await self._locks.all()
        except PegboardError as exc:
            if exc.message != self.problem:
                effect = "decisions as last read go on" if self.is_known else "no tool is usable"
                logger.warning("The lock cannot be read, so %s: %s", effect, exc.message)
            self.problem = exc.message
            raise
        self.is_known, self.problem = True, None

    def take(self, other: ToolTrust) -> None:
        """Go by what another reader of the same lock found."""
        self._known, self.is_known, self.problem = other._known, other.is_known, other.problem

    async def see(self, server: str, catalogue: CachedCatalog) -> None:
        """Record what a server lists, and warn of what is held back or looks suspicious.

        What cannot be recorded is held back.
        """
        if self._locks is None or not self.is_known:
            return
        listed = (await to_thread.run_sync(lambda: catalogue.listed)).values()
        rule, now = self.rule(server), self._clock()
        before = self._known.get(server, ServerLock())
        if before.see(listed, rule, now) is before:
            return
        try:
            record = await self._locks.update(server, lambda old: old.see(listed, rule, now))
        except PegboardError as exc:
            logger.warning(
                "New definitions of %s could not be recorded and are held back: %s",
                server, exc.message,
            )  # fmt: skip
            return
        self._known = {**self._known, server: record}
        _warn_about_held_tools(server, before, record)
        _warn_about_flags(server, before, listed)

    def judged(self, tool: Tool, catalogue: CachedCatalog) -> Tool:
        """The tool itself, or a stand-in where its definition in this catalog is held back."""
        if self._locks is None or tool.server is None:
            return tool
        hold = self._hold(tool.server, catalogue.listed.get(tool.own_name))
        return tool if hold is None else make_placeholder(tool, hold)

    def _hold(self, server: str, listed: ListedDefinition | None) -> HoldReason | None:
        if not self.is_known:
            return "unknown"
        if listed is None:
            return "unrecorded"
        return self._known.get(server, ServerLock()).hold(listed, self.rule(server))

    def rule(self, server: str) -> TrustRule:
        """How the definitions of a server are judged."""
        settings = self._settings
        reordered = any(fnmatchcase(server, pattern) for pattern in settings.reordered)
        return TrustRule(self._modes.get(server, settings.mode), reordered)

    async def watch(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Follow changes that others make to the lock, until cancelled."""

        async def read() -> None:
            await self.load()
            await changed()

        if self._locks is not None:
            await follow(self._locks.changes, read)


def build_trust(settings: Settings, beside: Path, store: Store) -> ToolTrust:
    """The trust that a configuration asks for; `beside` is where relative paths start.

    `store` is the one for decisions, see `decision_store`.
    """
    return ToolTrust(open_lock_storage(settings, beside, store), settings.trust)


def open_lock_storage(settings: Settings, beside: Path, store: Store) -> LockStorage | None:
    """Where the lock of a configuration is kept, if it has one."""
    lock = settings.trust.lock
    if lock is None:
        return None
    if lock == IN_STORE:
        return SharedLockStorage(store)
    return FileLockStorage(beside / Path(lock).expanduser())


def _warn_about_held_tools(server: str, before: ServerLock, after: ServerLock) -> None:
    new = {n: t.state for n, t in after.waiting.items() if before.tools.get(n) != t}
    if new:
        names = ", ".join(f"{name} ({state})" for name, state in sorted(new.items()))
        logger.warning(
            "Held back of %s: %s. Look with `pegboard lock diff`, allow with `pegboard lock "
            "approve`.", server, names,
        )  # fmt: skip


def _warn_about_flags(server: str, before: ServerLock, listed: Iterable[ListedDefinition]) -> None:
    known: Mapping[str, ToolLock] = before.tools
    for one in listed:
        record = known.get(one.name)
        if record is not None and record.approved is not None and record.approved.matches(one):
            continue
        if flags := find_flags(one.entry()):
            logger.warning("%s.%s looks suspicious: %s.", server, one.name, "; ".join(flags))


SWITCHES_KEY = "switched-off"


class ToolSwitches:
    """The tools that are switched off, as far as this gateway knows; all are held until it does.

    Args:
        store: The store for decisions, see `decision_store`.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.off: frozenset[str] = frozenset()
        self.is_known = isinstance(store, MemoryStore)
        """Whether the switches have been read; a process's own memory starts without any."""

    async def turn(self, tool_id: str, *, enabled: bool) -> None:
        """Switch a tool on or off in every replica.

        Raises:
            StoreError: The shared store is unavailable: nothing was switched.
        """

        def change(value: Json) -> Json:
            off = (self.off if value is None else _parse_ids(value)) - {tool_id}
            return sorted(off if enabled else {*off, tool_id})

        self.off = _parse_ids(await self._store.update(SWITCHES_KEY, change))
        await self._store.publish(SWITCHES_KEY, None)

    def judged(self, tool: Tool) -> Tool:
        """The tool, off where somebody switched it off; held back while that is not known."""
        if not self.is_known:
            return make_placeholder(tool, "unknown")
        return set_enabled(tool, False) if tool.id in self.off else tool

    async def load(self) -> None:
        """Read which tools are switched off.

        Raises:
            StoreError: It cannot be read. What was known before goes on.
        """
        value = await self._store.get(SWITCHES_KEY)
        if value is None and self.off:  # the store lost the record, and this process knows it
            value = await self._store.update(
                SWITCHES_KEY, lambda v: sorted(self.off) if v is None else v
            )
        self.off, self.is_known = _parse_ids(value), True

    def take(self, other: ToolSwitches) -> None:
        """Go by what another reader of the same store found."""
        self.off, self.is_known = other.off, other.is_known

    async def follow(self, changed: Callable[[], None]) -> None:
        """Keep to what the store says, until cancelled."""

        async def read() -> None:
            before = self.off, self.is_known
            await self.load()
            if (self.off, self.is_known) != before:
                changed()

        await follow(lambda: self._store.subscribe(SWITCHES_KEY), read)


def _parse_ids(value: Json) -> frozenset[str]:
    if value is None:
        return frozenset()
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise StoreError(
            f"The store holds something that is not a list of tools at {SWITCHES_KEY!r}."
        )
    return frozenset(value)


class OperatorDecisions:
    """All of them, as far as this gateway knows them now."""

    def __init__(
        self, configuration: Configuration, store: Store, told: Sequence[ArmObserver]
    ) -> None:
        beside = configuration.files[0].parent if configuration.files else Path.cwd()
        self.store = decision_store(store)
        self.trust = build_trust(configuration.settings, beside, self.store)
        self.switches = ToolSwitches(self.store)
        self.rollouts = RolloutTracker(self.store, told)
        self.configure(configuration)

    @property
    def are_known(self) -> bool:
        """Whether the lock and the switches have been read."""
        return self.trust.is_known and self.switches.is_known

    @property
    def are_shared(self) -> bool:
        """Whether other processes can take part in them: by a lock, or by a shared store."""
        return self.trust.locks is not None or not isinstance(self.store, MemoryStore)

    def configure(self, configuration: Configuration) -> None:
        """Take what a configuration says of trust."""
        self.trust.configure(configuration.upstreams, configuration.settings.trust)

    async def load(self) -> None:
        """Read what was decided, before any tool is shown; what cannot be read stays unknown."""
        for part in (self.trust, self.switches, self.rollouts):
            try:
                await part.load()
            except PegboardError as exc:
                if part is not self.trust:  # which warns by itself
                    logger.warning("Operators' decisions cannot be read: %s", exc.message)

    async def see(self, offers: ServerCatalogs) -> None:
        """Record the definitions that servers offer, where the lock does not have them yet."""
        for name in [name for name in offers.specs if name in offers]:
            try:
                await self.trust.see(name, offers[name])
            except Exception as exc:  # of one server; the others are judged all the same
                log_failure(f"What {name} lists could not be compared with the lock", exc)

    def take(self, other: OperatorDecisions) -> None:
        """Go by what another reader of the same records found."""
        self.trust.take(other.trust)
        self.switches.take(other.switches)

    def judged(self, tool: Tool, catalogue: CachedCatalog) -> Tool:
        """The tool as it may be shown: itself, switched off, or a stand-in where it is held."""
        return self.switches.judged(self.trust.judged(tool, catalogue))

    async def follow(
        self,
        *,
        locked: Callable[[], Awaitable[None]],
        switched: Callable[[], None],
        rolled_out: Callable[[], None],
    ) -> None:
        """Keep to what is decided anywhere, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.trust.watch, locked)
            tasks.start_soon(self.switches.follow, switched)
            tasks.start_soon(self.rollouts.follow, rolled_out)
