"""What a server prints beside the protocol: a bounded file, and its last lines in memory.

The file is for a person who looks for the reason of a fault; the tail is for the message that a
model gets about that fault. A log that cannot be written (full disk, no permission) costs the file,
never the server: the tail goes on, and `fault` says what happened.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import IO

FILE_LIMIT = 1_000_000
TAIL_LINES = 20
LINE_LIMIT = 500


class BoundedLog:
    """A log of at most two files of `limit` bytes: `path`, and `path` + `.1` with older lines."""

    def __init__(self, path: Path | None = None, *, limit: int = FILE_LIMIT) -> None:
        self.path = path
        self.fault: str | None = None
        self._limit = limit
        self._file: IO[bytes] | None = None
        self._size = 0
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._partial = b""

    def write(self, data: bytes) -> None:
        """Add what the server printed; never raises."""
        self._remember(data)
        self._keep(data)

    def note(self, text: str) -> None:
        """Add a line of our own to the file; it is no word of the server's."""
        self._keep(f"[pegboard] {text}\n".encode())

    def _keep(self, data: bytes) -> None:
        if self.path is None or self.fault is not None:
            return
        try:
            self._append(self.path, data[-self._limit :])
        except OSError as exc:
            self.fault = f"{self.path} cannot be written: {exc.strerror or exc}"
            self.close()

    @property
    def last_line(self) -> str | None:
        """The last line that says something, cut to a readable length."""
        partial = self._partial.decode(errors="replace").strip()
        return partial or next(reversed(self._tail), None)

    @property
    def tail(self) -> tuple[str, ...]:
        return tuple(self._tail)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, path: Path, data: bytes) -> None:
        if self._file is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
            self._size = self._file.tell()
        if self._size + len(data) > self._limit:
            self._file.close()
            path.replace(path.with_name(path.name + ".1"))
            self._file = path.open("wb", buffering=0)
            self._size = 0
        self._file.write(data)
        self._size += len(data)

    def _remember(self, data: bytes) -> None:
        *lines, self._partial = (self._partial + data).split(b"\n")
        self._partial = self._partial[-LINE_LIMIT:]
        for line in lines[-TAIL_LINES:]:
            text = line[-LINE_LIMIT:].decode(errors="replace").strip()
            if text:
                self._tail.append(text)


class ProcessLog(BoundedLog):
    """What one process of a server prints: into the server's file, with last lines of its own.

    A client whose process failed is told its last line, and never that of another client's.
    """

    def __init__(self, server: BoundedLog) -> None:
        super().__init__(server.path)
        self._server = server

    def _keep(self, data: bytes) -> None:
        self._server._keep(data)
