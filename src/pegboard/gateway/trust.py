"""Which tools of the servers may be used: the definitions at hand against the lock."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from anyio import to_thread

from pegboard.config.governance import TrustSettings
from pegboard.config.settings import Settings
from pegboard.core.cleaning import flags_of
from pegboard.core.lock import Hold, Listed, Locked, ServerLock, TrustMode, TrustRule, held
from pegboard.core.tools import Tool
from pegboard.errors import PegboardError
from pegboard.following import follow
from pegboard.gateway.locks import LockFile, Locks, StoreLocks
from pegboard.ports import Store
from pegboard.upstream.kept import KeptCatalogue
from pegboard.upstream.spec import UpstreamSpec

logger = logging.getLogger(__name__)

IN_STORE = "store"


class Trust:
    """The lock as far as this gateway knows it now; until it was read, all tools are held back."""

    def __init__(
        self,
        locks: Locks | None,
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
    def locks(self) -> Locks | None:
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

    def take(self, other: Trust) -> None:
        """Go by what another reader of the same lock found."""
        self._known, self.is_known, self.problem = other._known, other.is_known, other.problem

    async def see(self, server: str, catalogue: KeptCatalogue) -> None:
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
        _warn_of_held(server, before, record)
        _warn_of_flags(server, before, listed)

    def judged(self, tool: Tool, catalogue: KeptCatalogue) -> Tool:
        """The tool itself, or a stand-in where its definition in this catalog is held back."""
        if self._locks is None or tool.server is None:
            return tool
        hold = self._hold(tool.server, catalogue.listed.get(tool.own_name))
        return tool if hold is None else held(tool, hold)

    def _hold(self, server: str, listed: Listed | None) -> Hold | None:
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


def trust_of(settings: Settings, beside: Path, store: Store) -> Trust:
    """The trust that a configuration asks for; `beside` is where relative paths start.

    `store` is the one for decisions, see `decision_store`.
    """
    return Trust(locks_of(settings, beside, store), settings.trust)


def locks_of(settings: Settings, beside: Path, store: Store) -> Locks | None:
    """Where the lock of a configuration is kept, if it has one."""
    lock = settings.trust.lock
    if lock is None:
        return None
    if lock == IN_STORE:
        return StoreLocks(store)
    return LockFile(beside / Path(lock).expanduser())


def _warn_of_held(server: str, before: ServerLock, after: ServerLock) -> None:
    new = {n: t.state for n, t in after.waiting.items() if before.tools.get(n) != t}
    if new:
        names = ", ".join(f"{name} ({state})" for name, state in sorted(new.items()))
        logger.warning(
            "Held back of %s: %s. Look with `pegboard lock diff`, allow with `pegboard lock "
            "approve`.", server, names,
        )  # fmt: skip


def _warn_of_flags(server: str, before: ServerLock, listed: Iterable[Listed]) -> None:
    known: Mapping[str, Locked] = before.tools
    for one in listed:
        record = known.get(one.name)
        if record is not None and record.approved is not None and record.approved.matches(one):
            continue
        if flags := flags_of(one.entry()):
            logger.warning("%s.%s looks suspicious: %s.", server, one.name, "; ".join(flags))
