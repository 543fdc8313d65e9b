"""Where the lock is stored: in a file beside the configuration, or in the shared store.

    FileLockStorage     one JSON file that people can read: it can be committed, reviewed and
                        copied. It is replaced atomically, and writes are serialized.
    SharedLockStorage   one key for each server in the shared store, for replicas that have no
                        folder in common.

A lock that is gone is not an empty lock: an empty one would approve whatever servers list next. So
a small marker file beside the lock file records that there was one. In the store, an index names
the servers that have a record, and a process that remembers a record which the store has lost
writes it back.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeAlias

import anyio
from anyio import to_thread

from pegboard.config.settings import Settings
from pegboard.core.json import Json, JsonObject
from pegboard.core.tool_lock import LockDecision, ServerLock
from pegboard.errors import ConfigError, StoreError
from pegboard.ports import Store
from pegboard.private_files import lock_file, replace_file

logger = logging.getLogger(__name__)

LockChange: TypeAlias = Callable[[ServerLock], ServerLock]
"""Returns the new record for the old one; pure, because it may be run again."""

POLL_INTERVAL = 0.5
"""Seconds between two checks of the modification time of a lock file."""
IN_STORE = "store"
"""The value of `trust.lock` that puts the lock into the shared store."""
_VERSION = 2
_READABLE = (1, 2)
_INDEX = "locks"
_TOPIC = "locks"


class LockStorage(Protocol):
    """The records of all servers.

    Methods raise `ConfigError` or `StoreError` where the records cannot be read or written.
    """

    async def all(self) -> dict[str, ServerLock]:
        """The records by server."""
        ...

    async def update(self, server: str, change: LockChange) -> ServerLock:
        """Change the record of one server, atomically among all writers; returns the new one."""
        ...

    def changes(self) -> AbstractAsyncContextManager[AsyncIterator[object]]:
        """Yields something each time that records may have changed, here or elsewhere."""
        ...


def open_lock_storage(settings: Settings, config_folder: Path, store: Store) -> LockStorage | None:
    """The storage that a configuration names, if it locks definitions at all.

    Args:
        settings: The settings of the gateway.
        config_folder: The folder where relative paths start.
        store: The store for decisions, see `decision_store`.
    """
    lock = settings.trust.lock
    if lock is None:
        return None
    if lock == IN_STORE:
        return SharedLockStorage(store)
    return FileLockStorage(config_folder / Path(lock).expanduser())


async def apply_decision(locks: LockStorage, decision: LockDecision) -> None:
    """Apply an operator's approval, rejection or revocation, from the dashboard or the CLI.

    Raises:
        ToolNotFound: There is no record of the tool.
        NotPermitted: The definition that it names is not pending any more.
    """
    await locks.update(decision.server, lambda record: record.apply(decision))
    logger.info(
        "%s: %s of %s.%s, definition %s",
        decision.by, decision.action, decision.server, decision.tool, decision.digest or "any",
    )  # fmt: skip


class FileLockStorage:
    """Records in one JSON file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # The marker is also the file that writers lock, since the lock file itself is replaced.
        self._marker = path.with_name(f".{path.name}.turn")
        self._seen_file = False

    def read(self) -> dict[str, ServerLock]:
        """The records in the file; none where there has never been a file.

        Raises:
            ConfigError: It cannot be read, or is gone.
        """
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            with suppress(OSError):
                # Seen by this process, or marked by an earlier one.
                self._seen_file = self._seen_file or self._marker.stat().st_size > 0
            if not self._seen_file:
                return {}
            raise ConfigError(
                f"The lock file {self.path} is gone. Restore it; to start with an empty one, "
                f"delete {self._marker} as well and restart the gateways that use it."
            ) from None
        except (OSError, ValueError) as exc:
            raise ConfigError(f"The lock file {self.path} cannot be read: {exc}") from exc
        try:
            document: Json = json.loads(text)
            if document["version"] not in _READABLE:
                raise ConfigError(
                    f"The lock file {self.path} has version {document['version']!r}; this release "
                    f"reads versions up to {_VERSION}."
                )
            servers: JsonObject = document["servers"]
            records = {name: ServerLock.from_json(tools) for name, tools in servers.items()}
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as exc:
            raise ConfigError(f"The lock file {self.path} cannot be read: {exc!r}") from exc
        self._mark_existing()
        return records

    async def all(self) -> dict[str, ServerLock]:
        return await to_thread.run_sync(self.read)

    async def update(self, server: str, change: LockChange) -> ServerLock:
        return await to_thread.run_sync(self.update_now, server, change)

    def update_now(self, server: str, change: LockChange) -> ServerLock:
        """`update` for callers that may block."""
        # Read and written under one lock: two gateways that approve at once must not undo each
        # other.
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with lock_file(self._marker):
                records = self.read()
                before = records.get(server, ServerLock())
                after = records[server] = change(before)
                # Compared by identity: a change that has nothing to do returns the record it was
                # given.
                if after is not before:
                    servers = {name: one.to_json() for name, one in sorted(records.items())}
                    text = json.dumps(
                        {"version": _VERSION, "servers": servers}, indent=1, sort_keys=True
                    )
                    with replace_file(self.path) as file:
                        file.write(f"{text}\n".encode())
                    self._mark_existing()
        except OSError as exc:
            raise StoreError(f"The lock file {self.path} cannot be written: {exc}") from exc
        return after

    def _mark_existing(self) -> None:
        """Record that there is a lock file, for later processes."""
        self._seen_file = True
        with suppress(OSError):  # the folder may be read-only; this process remembers it anyway
            if not self._marker.exists() or self._marker.stat().st_size == 0:
                self._marker.write_text(f"{self.path.name} exists.\n", encoding="utf-8")

    @asynccontextmanager
    async def changes(self) -> AsyncGenerator[AsyncIterator[object]]:
        before = self._stamp()  # before anybody reads the file, so that no change is missed

        async def poll(last: tuple[int, ...] | None) -> AsyncIterator[object]:
            while True:
                await anyio.sleep(POLL_INTERVAL)
                now = self._stamp()
                if now != last:
                    last = now
                    yield now

        yield poll(before)

    def _stamp(self) -> tuple[int, ...] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ctime_ns, found.st_ino


class SharedLockStorage:
    """Records in the shared store, one key for each server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, ServerLock] = {}
        """Records as this process last saw them, to restore what the store loses."""

    async def all(self) -> dict[str, ServerLock]:
        names = await self._store.get(_INDEX)
        if not isinstance(names, list | None):
            raise StoreError(f"The store holds something that is not a lock at {_INDEX!r}.")
        records: dict[str, ServerLock] = {}
        # Includes what only this process remembers: an emptied store must not unlock anything.
        for name in {*(names or ()), *self._known}:
            value = await self._store.get(_store_key(name))
            if value is not None:
                records[name] = self._known[name] = _parse_record(name, value)
            elif name in self._known:
                logger.warning("The store has lost the lock of %s; it is written back.", name)
                records[name] = await self.update(name, lambda record: record)
            else:
                raise StoreError(
                    f"The lock of {name} is gone from the store. Restore the store; to start with "
                    f"an empty lock, delete the key {_INDEX!r} under the store's prefix as well."
                )
        return records

    async def update(self, server: str, change: LockChange) -> ServerLock:
        changed = False

        def apply(value: Json) -> Json:
            nonlocal changed
            before = self._known.get(server, ServerLock())
            if value is not None:
                before = _parse_record(server, value)
            after = change(before)
            changed = value is None or after is not before
            return after.to_json()

        record = _parse_record(server, await self._store.update(_store_key(server), apply))
        self._known[server] = record
        if changed:
            # Stores list no keys, so the names of servers are a record of their own. After the lock
            # itself: a name without its lock reads as one that was lost.
            await self._store.update(_INDEX, lambda names: sorted({*(names or ()), server}))
            await self._store.publish(_TOPIC, server)
        return record

    def changes(self) -> AbstractAsyncContextManager[AsyncIterator[object]]:
        return self._store.subscribe(_TOPIC)


def _store_key(server: str) -> str:
    return f"lock/{server}"


def _parse_record(server: str, value: Json) -> ServerLock:
    try:
        return ServerLock.from_json(value)
    except ValueError as exc:
        raise StoreError(f"The lock of {server} in the store cannot be read: {exc}") from exc
