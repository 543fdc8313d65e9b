"""Records in files of this user, for what must survive the process where nothing is shared.

    folder/<hash of the key>.json      one record; its modification time is when it expires
    folder/.lock                       held while a record is changed, by one process at a time

A gateway that a client starts has its state in memory, which ends with it. A program that waits for
a person's consent must not end with it: the client may be restarted before the person answers. Only
such records are stored here, so there are few of them, and a folder is enough.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from anyio import to_thread

from pegboard.core.json import Json
from pegboard.ports import Change, Records
from pegboard.private_files import lock_file, make_private_folder, replace_file
from pegboard.store.memory import MemoryStore, check_ttl, decode, encode

logger = logging.getLogger(__name__)

_MAX_BYTES = 256 * 1024 * 1024
_FOREVER = 4_000_000_000.0
"""A time that file systems can write, for records that do not expire: the year 2096."""


class FileRecords:
    """Records in a folder, which several processes may use at the same time.

    Where the folder cannot be written (a read-only container, a full disk), records are in memory,
    as those of a gateway without a folder are.

    Args:
        folder: Made with the first record, for its owner alone.
        max_bytes: Of all records together; those that expire first are removed first.
        clock: Seconds since the epoch.
        fallback: Takes what the folder does not.
    """

    def __init__(
        self,
        folder: Path,
        *,
        max_bytes: int = _MAX_BYTES,
        clock: Callable[[], float] = time.time,
        fallback: Records | None = None,
    ) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._clock = clock
        self._fallback = MemoryStore() if fallback is None else fallback
        self._has_warned = False

    async def get(self, key: str) -> Json:
        """The value, or `None`."""
        # Values that could not be written to the folder are newer than those in it.
        found = await self._fallback.get(key)
        return await to_thread.run_sync(self._read, self._path(key)) if found is None else found

    async def update(self, key: str, change: Change, *, ttl: float | None = None) -> Json:
        """Apply a pure change atomically and return the new value."""
        check_ttl(ttl)
        before = await self._fallback.get(key)
        if before is None:
            try:
                return await to_thread.run_sync(partial(self._update, key, change, ttl))
            except OSError as exc:
                if not self._has_warned:
                    logger.warning("Runs are in memory only: %s", exc)
                self._has_warned = True
            before = await to_thread.run_sync(self._read, self._path(key))
        return await self._fallback.update(
            key, lambda stored: change(before if stored is None else stored), ttl=ttl
        )

    def _path(self, key: str) -> Path:
        hashed = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / f"{hashed}.json"

    def _read(self, path: Path) -> Json:
        try:
            if path.stat().st_mtime <= self._clock():
                return None
            return decode(path.read_bytes())
        except (OSError, ValueError):  # missing, or not one of our files
            return None

    def _update(self, key: str, change: Change, ttl: float | None) -> Json:
        path = self._path(key)
        make_private_folder(self._folder)
        with lock_file(self._folder / ".lock"):
            value = change(self._read(path))
            if value is None:
                path.unlink(missing_ok=True)
                return None
            data = encode(value)
            self._make_room(len(data))
            # After a power cut a record may be missing or broken; both read as an unknown run.
            with replace_file(path, is_durable=False) as file:
                file.write(data)
            # The expiry is the time of the file, so that no file has to be read to be removed.
            expires_at = _FOREVER if ttl is None else self._clock() + ttl
            os.utime(path, (expires_at, expires_at))
        return decode(data)

    def _make_room(self, size: int) -> None:
        """Remove expired records, and then those that expire first until the new one fits."""
        states = [(path, path.stat()) for path in self._folder.glob("*.json")]
        total = size + sum(state.st_size for _, state in states)
        for path, state in sorted(states, key=lambda one: one[1].st_mtime):
            if state.st_mtime > self._clock() and total <= self._max_bytes:
                return
            path.unlink(missing_ok=True)
            total -= state.st_size
