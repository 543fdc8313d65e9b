"""What operators decide about tools while a gateway runs: the lock, switched-off tools, a rollout.

    lock       which definitions of tools are approved; all others are held back
    switches   tools that were switched off
    rollout    a mode that some of the callers get

Each decision is stored where all replicas read it, and every replica follows changes. Decisions
have a store of their own, which evicts nothing and has no local fallback: until the lock and the
switches have been read, no tool of a server can be used.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import anyio
from anyio import to_thread

from pegboard.config.loader import Configuration
from pegboard.config.settings import TrustSettings
from pegboard.core.json import Json
from pegboard.core.sanitization import find_flags
from pegboard.core.tool_lock import (
    HoldReason,
    ServerLock,
    TrustMode,
    TrustRule,
    make_placeholder,
)
from pegboard.core.tools import Tool, set_enabled
from pegboard.errors import PegboardError, StoreError
from pegboard.gateway.background_tasks import log_failure
from pegboard.gateway.catalogs import ServerCatalogs
from pegboard.gateway.lock_storage import LockStorage, open_lock_storage
from pegboard.observe.rollouts import ArmObserver, RolloutTracker
from pegboard.ports import Store
from pegboard.record_watch import follow_record
from pegboard.store.fallback import decision_store
from pegboard.store.memory import MemoryStore
from pegboard.upstream.catalog_cache import CachedCatalog
from pegboard.upstream.spec import UpstreamSpec

logger = logging.getLogger(__name__)

SWITCHES_KEY = "switched-off"


class ToolTrust:
    """The lock as this gateway last read it; before it was read, all tools are held back.

    Args:
        locks: Where the lock is stored; `None` if definitions are not locked.
        settings: How servers are trusted.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        locks: LockStorage | None,
        settings: TrustSettings | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.locks = locks
        self._settings = settings or TrustSettings()
        self._clock = clock
        self._modes: dict[str, TrustMode] = {}
        self._records: dict[str, ServerLock] = {}
        self.is_known = locks is None
        """Whether the lock has been read, or there is none."""
        self.problem: str | None = None
        """Why the lock could not be read the last time."""

    def configure(self, specs: Iterable[UpstreamSpec], settings: TrustSettings) -> None:
        """Set the trust mode: for all servers, and for those that have their own."""
        self._settings = settings
        self._modes = {spec.name: spec.trust for spec in specs if spec.trust is not None}

    async def load(self) -> None:
        """Read the lock; if that fails, the last known records stay in use.

        Raises:
            PegboardError: It cannot be read.
        """
        if self.locks is None:
            return
        try:
            self._records = await self.locks.all()
        except PegboardError as exc:
            if exc.message != self.problem:  # the same reason is logged once
                effect = "the last known decisions apply" if self.is_known else "no tool is usable"
                logger.warning("The lock cannot be read, so %s: %s", effect, exc.message)
            self.problem = exc.message
            raise
        self.is_known, self.problem = True, None

    def copy_from(self, other: ToolTrust) -> None:
        """Take over what another reader of the same lock has read."""
        self._records, self.is_known, self.problem = other._records, other.is_known, other.problem

    async def record(self, server: str, catalog: CachedCatalog) -> None:
        """Record what a server lists, and warn of what is held back or looks suspicious.

        A definition that cannot be recorded is held back.
        """
        if self.locks is None or not self.is_known:
            return
        # In a thread: it computes the digest of every definition.
        listed = (await to_thread.run_sync(lambda: catalog.listed)).values()
        rule, now = self.rule(server), self._clock()
        before = self._records.get(server, ServerLock())
        if before.record(listed, rule, now) is before:
            return
        try:
            after = await self.locks.update(server, lambda old: old.record(listed, rule, now))
        except PegboardError as exc:
            logger.warning(
                "New definitions of %s could not be recorded and are held back: %s",
                server, exc.message,
            )  # fmt: skip
            return
        self._records = {**self._records, server: after}
        held = {n: t.state for n, t in after.waiting.items() if before.tools.get(n) != t}
        if held:
            names = ", ".join(f"{name} ({state})" for name, state in sorted(held.items()))
            logger.warning(
                "%s: these tools are held back: %s. See the changes with `pegboard lock diff`, "
                "allow them with `pegboard lock approve`.", server, names,
            )  # fmt: skip
        for definition in listed:
            lock, name = before.tools.get(definition.name), definition.name
            if lock is not None and lock.approved is not None and lock.approved.matches(definition):
                continue  # somebody has seen and approved exactly this text
            if flags := find_flags(definition.entry()):
                logger.warning("%s.%s looks suspicious: %s.", server, name, "; ".join(flags))

    def apply(self, tool: Tool, catalog: CachedCatalog) -> Tool:
        """The tool itself, or a placeholder where its definition in this catalog is held back."""
        if self.locks is None or tool.server is None:
            return tool
        listed = catalog.listed.get(tool.own_name)
        hold: HoldReason | None
        if not self.is_known:
            hold = "unknown"
        elif listed is None:
            hold = "unrecorded"
        else:
            record = self._records.get(tool.server, ServerLock())
            hold = record.hold(listed, self.rule(tool.server))
        return tool if hold is None else make_placeholder(tool, hold)

    def rule(self, server: str) -> TrustRule:
        """How the definitions of a server are judged."""
        settings = self._settings
        reordered = any(fnmatchcase(server, pattern) for pattern in settings.reordered)
        return TrustRule(self._modes.get(server, settings.mode), reordered)

    async def follow(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Read the lock again whenever somebody changed it, until canceled."""

        async def read() -> None:
            await self.load()
            await changed()

        if self.locks is not None:
            await follow_record(self.locks.changes, read)


class ToolSwitches:
    """The tools that are switched off, as this gateway last read them.

    Before they were read, all tools are held back: one of them may be switched off.

    Args:
        store: The store for decisions, see `decision_store`.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.off: frozenset[str] = frozenset()
        self.is_known = isinstance(store, MemoryStore)
        """Whether the switches have been read; a process's own memory starts without any."""

    async def switch(self, tool_id: str, *, enabled: bool) -> None:
        """Switch a tool on or off in every replica.

        Raises:
            StoreError: The shared store is unavailable: nothing was switched.
        """

        def change(value: Json) -> Json:
            off = (self.off if value is None else _parse_ids(value)) - {tool_id}
            return sorted(off if enabled else {*off, tool_id})

        self.off = _parse_ids(await self._store.update(SWITCHES_KEY, change))
        await self._store.publish(SWITCHES_KEY, None)

    def apply(self, tool: Tool) -> Tool:
        """The tool, disabled if it was switched off; a placeholder while that is unknown."""
        if not self.is_known:
            return make_placeholder(tool, "unknown")
        return set_enabled(tool, False) if tool.id in self.off else tool

    async def load(self) -> None:
        """Read which tools are switched off.

        Raises:
            StoreError: It cannot be read. The last known switches stay in use.
        """
        value = await self._store.get(SWITCHES_KEY)
        if value is None and self.off:
            # The store lost the record (a restart without a disk). This process still knows it and
            # writes it back, unless another one was faster.
            value = await self._store.update(
                SWITCHES_KEY, lambda found: sorted(self.off) if found is None else found
            )
        self.off, self.is_known = _parse_ids(value), True

    def copy_from(self, other: ToolSwitches) -> None:
        """Take over what another reader of the same store has read."""
        self.off, self.is_known = other.off, other.is_known

    async def follow(self, changed: Callable[[], None]) -> None:
        """Read the switches again whenever somebody changed them, until canceled."""

        async def read() -> None:
            before = self.off, self.is_known
            await self.load()
            if (self.off, self.is_known) != before:
                changed()

        await follow_record(lambda: self._store.subscribe(SWITCHES_KEY), read)


def _parse_ids(value: Json) -> frozenset[str]:
    if value is None:
        return frozenset()
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise StoreError(
            f"The store holds something that is not a list of tools at {SWITCHES_KEY!r}."
        )
    return frozenset(value)


class OperatorDecisions:
    """All decisions, as this gateway last read them.

    Args:
        configuration: Says where the lock is, and how servers are trusted.
        store: The gateway's store.
        arm_observers: Called with the figures of a rollout's arms.
    """

    def __init__(
        self, configuration: Configuration, store: Store, arm_observers: Sequence[ArmObserver]
    ) -> None:
        settings = configuration.settings
        config_folder = configuration.files[0].parent if configuration.files else Path.cwd()
        self.store = decision_store(store)
        locks = open_lock_storage(settings, config_folder, self.store)
        self.trust = ToolTrust(locks, settings.trust)
        self.switches = ToolSwitches(self.store)
        self.rollouts = RolloutTracker(self.store, arm_observers)
        self.configure(configuration)

    @property
    def are_known(self) -> bool:
        """Whether the lock and the switches have been read."""
        return self.trust.is_known and self.switches.is_known

    @property
    def are_shared(self) -> bool:
        """Whether other processes can make decisions too: by a lock, or by a shared store."""
        return self.trust.locks is not None or not isinstance(self.store, MemoryStore)

    def configure(self, configuration: Configuration) -> None:
        """Apply the trust settings of a configuration."""
        self.trust.configure(configuration.upstreams, configuration.settings.trust)

    async def load(self) -> None:
        """Read all decisions, before any tool is shown; what cannot be read stays unknown."""
        for part in (self.trust, self.switches, self.rollouts):
            try:
                await part.load()
            except PegboardError as exc:
                if part is not self.trust:  # it has logged the reason itself
                    logger.warning("Operators' decisions cannot be read: %s", exc.message)

    async def record_definitions(self, catalogs: ServerCatalogs) -> None:
        """Record the definitions of all servers that the lock does not have yet."""
        for name in [name for name in catalogs.specs if name in catalogs]:
            try:
                await self.trust.record(name, catalogs[name])
            except Exception as exc:  # of one server; the others are recorded anyway
                log_failure(f"What {name} lists could not be compared with the lock", exc)

    def copy_from(self, other: OperatorDecisions) -> None:
        """Take over what another reader of the same records has read."""
        self.trust.copy_from(other.trust)
        self.switches.copy_from(other.switches)

    def apply(self, tool: Tool, catalog: CachedCatalog) -> Tool:
        """The tool as it may be shown: itself, disabled, or a placeholder if it is held back."""
        return self.switches.apply(self.trust.apply(tool, catalog))

    async def follow(
        self,
        *,
        on_lock: Callable[[], Awaitable[None]],
        on_switch: Callable[[], None],
        on_rollout: Callable[[], None],
    ) -> None:
        """Follow decisions, wherever they are made, until canceled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.trust.follow, on_lock)
            tasks.start_soon(self.switches.follow, on_switch)
            tasks.start_soon(self.rollouts.follow, on_rollout)
