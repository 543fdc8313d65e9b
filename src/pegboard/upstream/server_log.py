"""What a server prints outside the protocol: a bounded file, and its last lines in memory.

The file is for a person who looks for the cause of a failure; the last lines are for the message
that a model gets about it. Both omit the secrets that the server was configured with. If the
file cannot be written (full disk, no permission), the server still works: the last lines are still
collected, and `fault` says what happened.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from pegboard.core.redaction import Redactor
from pegboard.private_files import make_private_folder, open_private

MAX_FILE_BYTES = 1_000_000
TAIL_LINES = 20
MAX_LINE_LENGTH = 500
MAX_PARTIAL_LINE = 65_536
"""Bytes of a line that are held until its end comes: a secret may arrive in two parts."""

_TRACEBACK = "Traceback (most recent call last)"
_FRAME = " |+"
"""What Python draws around the tracebacks of an exception group."""
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt)\b")
_DETAIL = re.compile(
    r"""(?!.*[^\W\d_]{2})      # no word at all: a brace, a caret, a rule
    |at\s|File\s"             # where it happened
    |note:\s                  # what Rust adds
    |Node\.js\sv\d            # what Node.js prints last
    |npm\snotice|npm\s(?:error|ERR!)\s*(?:\d+\s*)?(?:\Z|A\scomplete|Note\sthat|tarball,)
    |[\w$]+:\s.*[,{\[\]}]\Z  # a property of an error object""",
    re.VERBOSE,
)


class BoundedLog:
    """A log of at most two files of `limit` bytes: `path`, and `path` + `.1` with older lines."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        limit: int = MAX_FILE_BYTES,
        redactor: Redactor | None = None,
    ) -> None:
        self.path = path
        self.fault: str | None = None
        self.redactor = redactor or Redactor()
        self._limit = limit
        self._file: IO[bytes] | None = None
        self._size = 0
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._partial_line = b""

    def write(self, data: bytes) -> None:
        """Add what the server printed; never raises."""
        # Only whole lines are redacted: a secret that arrives in two parts would be missed.
        whole, newline, self._partial_line = (self._partial_line + data).rpartition(b"\n")
        if len(self._partial_line) > MAX_PARTIAL_LINE:
            whole, newline, self._partial_line = whole + newline + self._partial_line, b"", b""
        if whole or newline:
            lines = self._redact(whole)
            self._add_to_tail(lines)
            self._add_to_file(lines + newline)

    def note(self, text: str) -> None:
        """Add a line of our own to the file; it is not among the server's last lines."""
        self._flush()
        self._add_to_file(f"[pegboard] {self.redactor.text(text)}\n".encode(errors="replace"))

    @property
    def last_line(self) -> str | None:
        """The last meaningful line, cut to a readable length."""
        partial = _decode_line(self._redact(self._partial_line))
        return find_error_line([*self._tail, partial] if partial else self._tail)

    @property
    def tail(self) -> tuple[str, ...]:
        return tuple(self._tail)

    def close(self) -> None:
        self._flush()
        self._close_file()

    def _flush(self) -> None:
        """Write the last, incomplete line."""
        if self._partial_line:
            line = self._redact(self._partial_line)
            self._add_to_tail(line)
            self._add_to_file(line)
            self._partial_line = b""

    def _redact(self, data: bytes) -> bytes:
        # Bytes that are not UTF-8 must be preserved.
        text = data.decode(errors="surrogateescape")
        return self.redactor.text(text).encode(errors="surrogateescape")

    def _add_to_tail(self, lines: bytes) -> None:
        for line in lines.split(b"\n")[-TAIL_LINES:]:
            if text := _decode_line(line):
                self._tail.append(text)

    def _add_to_file(self, data: bytes) -> None:
        if self.path is None or self.fault is not None:
            return
        path, data = self.path, data[-self._limit :]
        try:
            if self._file is None:
                make_private_folder(path.parent)
                descriptor = open_private(path, os.O_WRONLY | os.O_APPEND)
                self._file = os.fdopen(descriptor, "ab", buffering=0)
                self._size = self._file.tell()
            if self._size + len(data) > self._limit:
                # By size alone: what was written by an earlier process counts too.
                self._file.close()
                path.replace(path.with_name(path.name + ".1"))
                self._file = os.fdopen(open_private(path), "wb", buffering=0)
                self._size = 0
            self._file.write(data)
            self._size += len(data)
        except OSError as exc:
            # After one failure the file is not written again: a full disk would otherwise be tried
            # at every line.
            self.fault = f"{self.path} cannot be written: {exc.strerror or exc}"
            self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class ProcessLog(BoundedLog):
    """What one process of a server prints: into the server's file, with last lines of its own.

    A client whose process failed gets its last line, and never that of another client's.
    """

    def __init__(self, server: BoundedLog) -> None:
        super().__init__(server.path, redactor=server.redactor)
        self._server = server

    def _add_to_file(self, data: bytes) -> None:
        self._server._add_to_file(data)


def _decode_line(line: bytes) -> str:
    return line[-MAX_LINE_LENGTH:].decode(errors="replace").strip()


def find_error_line(lines: Sequence[str] | deque[str]) -> str | None:
    """The line that explains a failure: a traceback's exception, else the last line with words."""
    found = [line.strip(_FRAME) for line in lines]
    starts = [number for number, line in enumerate(found) if _TRACEBACK in line]
    if starts:
        raised = [line for line in found[starts[-1] :] if _EXCEPTION.match(line)]
        if raised:
            return raised[-1]
    # Otherwise the last line with words in it: a stack trace of Node.js ends in braces and places.
    in_words = [line for line in found if line and not _DETAIL.match(line)]
    return in_words[-1] if in_words else next(reversed(lines), None)
