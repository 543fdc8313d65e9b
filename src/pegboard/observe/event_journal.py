"""The event journal: what happened in one process, for the dashboard of another.

    gateway on stdio  ──writes──>  KEY-TIME-PID-NUMBER.jsonl  ──read──>  `pegboard ui`

A process that serves on standard input has no address that a dashboard could connect to. So it
writes one line to a file for each call and each answered list: names, times and counts. For the
history of calls, it also writes shortened arguments and error messages, without secrets, unless the
operator turned that off. Queries, results and handles are never written. Only the user can read the
file; it is rotated when it is full, and deleted when it is old.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from pegboard.core.call_preview import redact_preview
from pegboard.core.events import (
    CallFinished,
    CallRejected,
    DescribeAnswered,
    Event,
    ListAnswered,
    SearchAnswered,
)
from pegboard.core.json import Json, JsonObject, compact
from pegboard.observe.call_history import config_key
from pegboard.ports import Observer
from pegboard.private_files import make_private_folder, open_private

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from pegboard.core.redaction import Redactor


logger = logging.getLogger(__name__)

MAX_BYTES = 256 * 1024
"""The size at which a file is rotated; one rotated file is retained."""
MAX_FILES = 20
MAX_AGE = 7 * 86_400.0
_KINDS = {
    kind.kind: kind
    for kind in (CallFinished, CallRejected, ListAnswered, SearchAnswered, DescribeAnswered)
}
_PRIVATE_FIELDS = ("arguments", "query", "found", "tools")
"""What somebody searched for, or was shown."""
_WRITTEN_FIELDS = {
    kind.kind: [
        f.name
        for f in fields(kind)
        if f.repr
        and (
            f.name not in _PRIVATE_FIELDS
            or (kind is ListAnswered and f.name == "tools")
            or (kind is CallRejected and f.name == "arguments")
        )
    ]
    for kind in _KINDS.values()
}
"""The fields that are written of each kind of event; of a list, `tools` is a number, and of a
rejected call, `arguments` is a digest."""
_WRITE_DELAY = 0.2
"""Seconds for which events are collected into one write, so that calls do not wait for the disk."""
_MAX_WAITING = 100


class EventJournal:
    """An observer that writes calls; if it cannot write, it warns once and stops.

    Args:
        folder: Where the file is.
        key: Identifies the configuration.
        redactor: Removes secrets from arguments and messages; without it, none are written.
        max_bytes: The size at which a file is rotated.
    """

    def __init__(
        self,
        folder: Path,
        key: str,
        *,
        redactor: Redactor | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._folder = folder
        self._redactor = redactor
        self._name = f"{key}-{time.time_ns() // 1_000_000}-{os.getpid()}"
        self._number = 0
        self._max_bytes = max_bytes
        self._size = 0
        self._file: int | None = None
        self._is_closed = False
        self._waiting: list[Event] = []
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def path(self) -> Path:
        """The current file."""
        return self._path(self._number)

    def record(self, event: Event) -> None:
        """Write a line soon, if the event is of a kind that is written."""
        if event.kind not in _KINDS or self._is_closed:
            return
        self._waiting.append(event)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None  # without a loop there is no timer: write at once
        if loop is None or len(self._waiting) >= _MAX_WAITING:
            self.write()
        # A timer of a loop that has ended never fires: a new loop needs a new one.
        elif self._timer is None or self._loop is not loop:
            self._loop, self._timer = loop, loop.call_later(_WRITE_DELAY, self.write)

    def write(self) -> None:
        """Write the collected events."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        try:
            lines = b"".join(_event_to_line(event, self._redactor) for event in waiting)
            if self._file is not None and self._size + len(lines) > self._max_bytes:
                os.close(self._file)
                self._file = None
                # The full file stays until the next rotation, for readers that are not at its end.
                self._path(self._number - 1).unlink(missing_ok=True)
                self._number += 1
            if self._file is None:
                make_private_folder(self._folder)
                self._file = open_private(self.path, os.O_WRONLY | os.O_APPEND)
                self._size = 0
            self._size += os.write(self._file, lines)
        except OSError as exc:
            self._is_closed = True
            logger.warning("`pegboard ui` will not see these calls: %s: %s", self.path, exc)

    def close(self) -> None:
        """Write the rest and close the file."""
        self.write()
        self._is_closed = True
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _path(self, number: int) -> Path:
        return self._folder / f"{self._name}-{number}.jsonl"


def delete_old_journals(folder: Path, *, now: float) -> None:
    """Delete old files, and all but the newest `MAX_FILES`."""
    found = sorted(_journal_files(folder, "*"), key=_modified_at, reverse=True)
    for number, path in enumerate(found):
        if number >= MAX_FILES or _modified_at(path) < now - MAX_AGE:
            with suppress(OSError):
                path.unlink()


class JournalReader:
    """Reads the journals of all processes with one key."""

    def __init__(self, folder: Path, key: str) -> None:
        self._folder = folder
        self._key = key
        self._read: dict[str, int] = {}
        """The position up to which each file has been read, by its name."""

    def read_new(self) -> list[Event]:
        """The events written since the last time, oldest first."""
        found: list[Event] = []
        for path in _journal_files(self._folder, self._key):
            try:
                with path.open("rb") as file:
                    file.seek(self._read.get(path.name, 0))
                    data = file.read()
            except OSError:  # deleted meanwhile
                continue
            # A line that is still being written is read the next time.
            whole = data[: data.rfind(b"\n") + 1]
            self._read[path.name] = self._read.get(path.name, 0) + len(whole)
            events = map(_parse_event, whole.splitlines())
            found += [event for event in events if event is not None]
        return sorted(found, key=lambda event: event.at)


def _journal_files(folder: Path, key: str) -> list[Path]:
    return list(folder.glob(f"{key}-*.jsonl"))


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _event_to_line(event: Event, redactor: Redactor | None) -> bytes:
    record: JsonObject = {"event": event.kind}
    for name in _WRITTEN_FIELDS[event.kind]:
        value = getattr(event, name)
        if value is not None and value != {}:
            record[name] = value
    if redactor is not None and isinstance(event, CallFinished | CallRejected):
        record["preview"], record["message"] = redact_preview(event, redactor)
    return compact(record).encode("utf-8", "backslashreplace") + b"\n"


def _parse_event(line: bytes) -> Event | None:
    """The event of a line; `None` if it is not one, for example of a later version."""
    try:
        record: Json = json.loads(line)
        kind = _KINDS[record.pop("event")]
        known = {f.name for f in fields(kind)}
        given: dict[str, Any] = {k: v for k, v in record.items() if k in known}
        if kind is DescribeAnswered:
            given["tools"] = ()  # required by the event, but never written
        return kind(**given)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


POLL_INTERVAL = 0.5
"""Seconds between two reads of the journals."""


@contextmanager
def open_journal(
    folder: Path, config: Path, redactor: Redactor | None = None
) -> Generator[EventJournal]:
    """The journal that this process writes for a configuration; old ones are deleted."""
    journal = EventJournal(folder / "journals", config_key(config), redactor=redactor)
    delete_old_journals(journal.path.parent, now=time.time())
    try:
        yield journal
    finally:
        journal.close()


def follow_journals(app: Starlette, observer: Observer, folder: Path, config: Path) -> None:
    """While an application runs, pass events of other processes with this configuration on."""
    reader = JournalReader(folder / "journals", config_key(config))
    inner = app.router.lifespan_context

    async def poll() -> None:
        while True:
            for event in await to_thread.run_sync(reader.read_new):
                observer.record(event)
            await anyio.sleep(POLL_INTERVAL)

    @asynccontextmanager
    async def lifespan(application: Starlette) -> AsyncGenerator[Any]:
        async with inner(application) as state, anyio.create_task_group() as tasks:
            tasks.start_soon(poll)
            yield state
            tasks.cancel_scope.cancel()

    app.router.lifespan_context = lifespan
