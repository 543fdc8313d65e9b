"""Which tools of the servers are let through: definitions against the lock, texts made clean."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path

import anyio
from anyio import to_thread

from pegboard.config.settings import Settings
from pegboard.core.cleaning import flags_of
from pegboard.core.json import JsonObject
from pegboard.core.lock import Locked, ServerLock, TrustMode, held
from pegboard.core.tools import Tool
from pegboard.errors import StoreError
from pegboard.gateway.locks import LockFile, Locks, StoreLocks
from pegboard.ports import Store
from pegboard.store.fallback import strict
from pegboard.upstream.kept import KeptCatalogue
from pegboard.upstream.spec import UpstreamSpec

logger = logging.getLogger(__name__)

IN_STORE = "store"


class Trust:
    """What is recorded of the servers' tools, as far as this gateway knows it now."""

    def __init__(
        self,
        locks: Locks | None,
        mode: TrustMode = "first-use",
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._locks = locks
        self._mode: TrustMode = mode
        self._clock = clock
        self._modes: dict[str, TrustMode] = {}
        self._known: dict[str, ServerLock] = {}
        self._seen: dict[str, str] = {}
        self._is_read = not isinstance(locks, StoreLocks)
        if isinstance(locks, LockFile):
            self._known = locks.read()

    @property
    def locks(self) -> Locks | None:
        """Where decisions are kept, if definitions are locked at all."""
        return self._locks

    @property
    def is_read(self) -> bool:
        """Whether the records are known; until then everything is held back."""
        return self._is_read

    def configure(self, specs: Iterable[UpstreamSpec], mode: TrustMode) -> None:
        """Take how servers are to be trusted: all of them, and those that say otherwise."""
        self._mode = mode
        self._modes = {spec.name: spec.trust for spec in specs if spec.trust is not None}

    async def load(self) -> None:
        """Read the records anew; what is known stays where they cannot be read."""
        if self._locks is None:
            return
        try:
            self.take(await self._locks.all())
        except StoreError as exc:
            logger.warning("The lock cannot be read: %s", exc)

    def take(self, records: Mapping[str, ServerLock]) -> None:
        """Go by these records."""
        self._known = dict(records)
        self._is_read = True

    async def see(self, server: str, catalogue: KeptCatalogue) -> None:
        """Record what a server lists, and say what is held back or looks suspicious."""
        if self._locks is None or self._seen.get(server) == catalogue.hash:
            return
        listed = await to_thread.run_sync(catalogue.entries)
        mode, now = self._modes.get(server, self._mode), self._clock()
        before = self._known.get(server, ServerLock())
        try:
            record = await self._locks.update(server, lambda kept: kept.see(listed, mode, now))
            self._seen[server] = catalogue.hash
        except StoreError as exc:
            # Judged by what is known; recorded when `watch` finds the store again.
            logger.warning("What %s lists could not be recorded: %s", server, exc)
            record = before.see(listed, mode, now)
        self._known[server] = record
        _tell_held(server, before, record)
        _tell_flags(server, before, listed)

    def judged(self, tool: Tool) -> Tool:
        """The tool itself, or a stand-in where it is held back."""
        if self._locks is None or tool.server is None:
            return tool
        if not self._is_read:
            return held(tool, _UNREAD)
        locked = self._locked(tool.server, tool.own_name)
        return tool if locked.state == "usable" else held(tool, locked)

    def _locked(self, server: str, name: str) -> Locked:
        known = self._known.get(server)
        locked = known.tools.get(name) if known else None
        if locked is not None:
            return locked
        return _NEW if self._modes.get(server, self._mode) == "approve" else _USABLE

    async def watch(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Follow changes that others make to the records, until cancelled."""
        while self._locks is not None:
            try:
                async with self._locks.changes() as changes:
                    await self.load()  # what was decided since the last time
                    await changed()
                    async for _ in changes:
                        await self.load()
                        await changed()
            except StoreError:
                await anyio.sleep(_RETRY)


_RETRY = 1.0
_UNREAD = Locked(unread=True)
_USABLE = Locked()
_NEW = ServerLock().see([{"name": ""}], "approve", 0.0).tools[""]


def trust_of(settings: Settings, beside: Path, store: Store) -> Trust:
    """The trust that a configuration asks for; `beside` is where relative paths start."""
    return Trust(locks_of(settings, beside, store), settings.trust.mode)


def locks_of(settings: Settings, beside: Path, store: Store) -> Locks | None:
    """Where the lock of a configuration is kept, if it has one."""
    lock = settings.trust.lock
    if lock is None:
        return None
    if lock == IN_STORE:
        return StoreLocks(strict(store))
    return LockFile(beside / Path(lock).expanduser())


def _tell_held(server: str, before: ServerLock, after: ServerLock) -> None:
    new = {n: t.state for n, t in after.waiting.items() if before.tools.get(n) != t}
    if new:
        names = ", ".join(f"{name} ({state})" for name, state in sorted(new.items()))
        logger.warning(
            "Held back of %s: %s. Look with `pegboard lock diff`, allow with `pegboard lock "
            "approve`.", server, names,
        )  # fmt: skip


def _tell_flags(server: str, before: ServerLock, listed: Iterable[JsonObject]) -> None:
    known: Mapping[str, Locked] = before.tools
    for entry in listed:
        record = known.get(str(entry.get("name")))
        if record is not None and record.approved and record.approved.definition == entry:
            continue
        if flags := flags_of(entry):
            what = "; ".join(flags)
            logger.warning("%s.%s looks suspicious: %s.", server, entry.get("name"), what)
