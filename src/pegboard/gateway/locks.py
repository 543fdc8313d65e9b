"""Where locks are kept: in a file beside the configuration, or in the shared store.

The file is for people too: it can be committed, reviewed and copied. It is written whole and then
takes the old one's place; processes that write it take turns. The store is for replicas that have
no folder in common.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Protocol, TypeAlias

import anyio
from anyio import to_thread

from pegboard.core.json import Json, JsonObject
from pegboard.core.lock import ServerLock
from pegboard.errors import ConfigError
from pegboard.ports import Store

Change: TypeAlias = Callable[[ServerLock], ServerLock]
"""Old record to new; pure, since it may be run again."""

LOOK_EVERY = 0.5
"""Seconds between two looks at the time of a lock file."""
_VERSION = 1
_INDEX = "locks"
_TOPIC = "locks"


class Locks(Protocol):
    """The records of all servers."""

    async def all(self) -> dict[str, ServerLock]:
        """What is recorded, by server."""
        ...

    async def update(self, server: str, change: Change) -> ServerLock:
        """Change the record of one server, atomically among all who do; gives the new one."""
        ...

    def changes(self) -> AbstractAsyncContextManager[AsyncIterator[object]]:
        """Something for each time that records may have changed, from here or elsewhere."""
        ...


class LockFile:
    """Records in one JSON file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, ServerLock]:
        """What the file says; nothing where there is none.

        Raises:
            ConfigError: It cannot be read. It is never taken for empty then: that would let through
                whatever servers list next.
        """
        try:
            document: Json = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as exc:
            raise ConfigError(f"The lock file {self.path} cannot be read: {exc}") from exc
        try:
            if document["version"] != _VERSION:
                raise ConfigError(f"The lock file {self.path} is of another version.")
            return {
                name: ServerLock.from_json(tools) for name, tools in document["servers"].items()
            }
        except (KeyError, TypeError, AttributeError) as exc:
            raise ConfigError(f"{self.path} is no lock file: {exc!r}") from exc

    async def all(self) -> dict[str, ServerLock]:
        return await to_thread.run_sync(self.read)

    async def update(self, server: str, change: Change) -> ServerLock:
        return await to_thread.run_sync(self.update_now, server, change)

    def update_now(self, server: str, change: Change) -> ServerLock:
        """The same as `update`, for those who may block."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _turn(self.path.with_name(f".{self.path.name}.turn")):
            records = self.read()
            before = records.get(server, ServerLock())
            after = records[server] = change(before)
            if after is not before:
                self._write({name: record.to_json() for name, record in sorted(records.items())})
        return after

    def _write(self, servers: JsonObject) -> None:
        text = json.dumps(
            {"version": _VERSION, "servers": servers}, ensure_ascii=True, indent=1, sort_keys=True
        )
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}-")
        try:
            with open(handle, "w", encoding="utf-8") as file:
                file.write(f"{text}\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    @asynccontextmanager
    async def changes(self) -> AsyncGenerator[AsyncIterator[object]]:
        yield self._changes(self._stamp())

    async def _changes(self, seen: tuple[int, int] | None) -> AsyncIterator[object]:
        while True:
            await anyio.sleep(LOOK_EVERY)
            now = self._stamp()
            if now != seen:
                seen = now
                yield now

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino


class StoreLocks:
    """Records in the shared store, one key for each server."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def all(self) -> dict[str, ServerLock]:
        names: list[str] = await self._store.get(_INDEX) or []
        return {name: ServerLock.from_json(await self._store.get(_key(name))) for name in names}

    async def update(self, server: str, change: Change) -> ServerLock:
        changed = False

        def apply(kept: Json) -> Json:
            nonlocal changed
            before = ServerLock.from_json(kept)
            after = change(before)
            changed = after is not before
            return after.to_json() or None

        record = ServerLock.from_json(await self._store.update(_key(server), apply))
        if changed:
            await self._store.update(_INDEX, lambda kept: sorted({*(kept or ()), server}))
            await self._store.publish(_TOPIC, server)
        return record

    def changes(self) -> AbstractAsyncContextManager[AsyncIterator[object]]:
        return self._store.subscribe(_TOPIC)


def _key(server: str) -> str:
    return f"lock/{server}"


@contextmanager
def _turn(path: Path) -> Generator[None]:
    """Be the only process in the block; the system frees the place of one that dies in it."""
    with open(path, "a+b") as file:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
            try:
                yield
            finally:
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
            yield
