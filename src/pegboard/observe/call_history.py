"""Call history: counts of calls and lists by hour, for the charts of the dashboard.

    event --> CallHistory --> counts in memory --save, every few seconds--> history.sqlite

Statistics (`statistics.py`) start from zero in each process. This history does not: all processes
that serve one configuration add to the same file, and `pegboard ui` reads it. It contains names and
counts, by hour; no arguments, results or principals. A board without a folder has its history in
memory.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio
from anyio import to_thread

from pegboard.core.events import CallFinished, CallRejected, Event, ListAnswered
from pegboard.private_files import make_private_folder, open_private

if TYPE_CHECKING:
    import sqlite3

logger = logging.getLogger(__name__)

HOUR = 3600
RETENTION_DAYS = 90
SAVE_INTERVAL = 5.0
"""Seconds between two writes of new counts to the file."""
_MAX_ROWS = 20_000
"""Rows in memory; the oldest hour is dropped. Clients choose the names of what they call."""
_BUSY_TIMEOUT = 5.0

RowKind: TypeAlias = Literal["call", "rejected", "list"]
_Key: TypeAlias = tuple[int, RowKind, str, str]
_Counts: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """What was counted in one hour for one tool, or of lists for one mode.

    `name` is the id of a tool, or for a list its mode. Rejected calls have neither a server nor a
    name: no tool was found for them.
    """

    hour: int
    """Seconds since the epoch at which the hour begins."""
    kind: RowKind
    server: str = ""
    name: str = ""
    count: int = 0
    failed: int = 0
    tokens_saved: int = 0


class CallHistory:
    """An observer that counts by hour; its methods may be called from any thread.

    Args:
        path: The file, which processes share; `None` for a history in memory.
        key: Identifies the configuration, since those of one user share the file.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        path: Path | None = None,
        key: str = "",
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self._key = key
        self._clock = clock
        self._lock = threading.Lock()
        """For the counts; held briefly, because calls wait for it."""
        self._file_lock = threading.Lock()
        self._counts: dict[_Key, _Counts] = {}
        self._has_warned = False

    def record(self, event: Event) -> None:
        """Count an event, if it is a call or a list."""
        match event:
            case CallFinished():
                # What nobody has counted, such as a result that was not changed, saved nothing.
                before = event.tokens_out_before or event.tokens_out or 0
                saved = 0 if event.tokens_out is None else max(0, before - event.tokens_out)
                failed = int(event.outcome != "ok")
                self._count(event.at, "call", event.upstream or "", event.tool, failed, saved)
            case CallRejected():
                self._count(event.at, "rejected", "", "", 1, 0)
            case ListAnswered():
                self._count(event.at, "list", "", event.mode, 0, 0)
            case _:
                pass

    def read(self, since: float) -> list[HistoryRow]:
        """The rows from a time on, of all processes; blocks while it reads the file."""
        # No save at the same time: rows that are on their way to the file would be missing.
        with self._file_lock:
            rows: list[HistoryRow] = []
            if self.path is not None and self.path.exists():
                query = (
                    "SELECT hour, kind, server, name, count, failed, tokens_saved FROM history"
                    " WHERE config = ? AND hour >= ?"
                )
                try:
                    with self._open() as file:
                        found = file.execute(query, (self._key, since - HOUR))
                        rows = [HistoryRow(*row) for row in found]
                except Exception as exc:
                    self._warn("read", exc)
            with self._lock:
                new = list(self._counts.items())
        return rows + [HistoryRow(*k, *v) for k, v in new if k[0] >= since - HOUR]

    def save(self) -> None:
        """Add the new counts to the file; blocks. Without a file, nothing happens."""
        if self.path is None or not self._counts:
            return
        with self._file_lock:
            # Taken out first: calls must not wait for the disk.
            with self._lock:
                new, self._counts = self._counts, {}
            try:
                # Added up in the file, because several processes count for the same hour.
                with self._open() as file, file:
                    file.executemany(
                        "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
                        " ON CONFLICT DO UPDATE SET count = count + excluded.count,"
                        " failed = failed + excluded.failed,"
                        " tokens_saved = tokens_saved + excluded.tokens_saved",
                        [(self._key, *key, *values) for key, values in new.items()],
                    )
                    oldest = self._clock() - RETENTION_DAYS * 86_400
                    file.execute("DELETE FROM history WHERE hour < ?", (oldest,))
            except Exception as exc:
                # Charts are not worth failing for. The next save tries again.
                self._warn("saved", exc)
                with self._lock:
                    for key, counts in new.items():
                        self._add(key, counts)

    async def save_periodically(self) -> None:
        """Save new counts every few seconds, until canceled."""
        while True:
            await anyio.sleep(SAVE_INTERVAL)
            await to_thread.run_sync(self.save)

    def _count(
        self, at: float, kind: RowKind, server: str, name: str, failed: int, saved: int
    ) -> None:
        with self._lock:
            self._add((int(at) // HOUR * HOUR, kind, server, name), (1, failed, saved))

    def _add(self, key: _Key, counts: _Counts) -> None:
        count, failed, saved = self._counts.get(key, (0, 0, 0))
        self._counts[key] = (count + counts[0], failed + counts[1], saved + counts[2])
        if len(self._counts) > _MAX_ROWS:
            oldest = min(hour for hour, *_ in self._counts)
            self._counts = {k: v for k, v in self._counts.items() if k[0] != oldest}

    def _warn(self, verb: str, exc: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning("The history of calls cannot be %s: %s: %s", verb, self.path, exc)

    # The file ----------------------------------------------------------------------------------

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        import sqlite3  # here, because a start must not wait for it

        path = self.path or Path()
        make_private_folder(path.parent)
        # Created before SQLite would do it, so that only the user can read it.
        os.close(open_private(path, os.O_WRONLY))
        with closing(sqlite3.connect(path, timeout=_BUSY_TIMEOUT)) as file:
            file.execute(
                "CREATE TABLE IF NOT EXISTS history (config TEXT, hour INTEGER, kind TEXT,"
                " server TEXT, name TEXT, count INTEGER, failed INTEGER, tokens_saved INTEGER,"
                " PRIMARY KEY (config, hour, kind, server, name)) WITHOUT ROWID"
            )
            yield file


def open_history(folder: Path, files: Sequence[Path]) -> CallHistory:
    """The history of a configuration, which is identified by the first of its files."""
    if not files:
        return CallHistory()
    return CallHistory(folder / "history" / "calls.sqlite", config_key(files[0]))


def config_key(config: Path) -> str:
    """Identifies a configuration without revealing its path."""
    return hashlib.sha256(str(config.resolve()).encode()).hexdigest()[:16]
