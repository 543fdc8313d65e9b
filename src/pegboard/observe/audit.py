"""The audit log: who did what, when, and with what outcome; one JSON line for each act.

It records tool calls, all other requests of the protocol, searches, decisions of operators, and
failed sign-ins. A layer of dispatch records calls, and an observer of events everything else.

Lines are only ever appended, each with one write, so that several processes can share a file. A
full file is renamed by its date. Arguments are recorded as a digest: two calls can be compared, but
their contents cannot be read.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pegboard.core import defaults
from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.events import (
    CallRejected,
    DescribeAnswered,
    Event,
    OperatorActed,
    RequestAnswered,
    RunFinished,
    SearchAnswered,
    SignInFailed,
)
from pegboard.core.json import Json, JsonObject, compact, digest
from pegboard.errors import PegboardError
from pegboard.ports import Handler, Layer
from pegboard.private_files import make_private_parents, open_private

logger = logging.getLogger(__name__)

_MAX_TEXT = 1_000
"""Characters of one text in a line; longer ones are cut."""


class AuditLog:
    """A file of lines, rotated at `max_bytes`; retains `max_files` rotated files, or all if 0."""

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int = defaults.AUDIT_BYTES,
        max_files: int = 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._clock = clock
        make_private_parents(path)
        self._file = self._open()

    def write(self, record: JsonObject) -> None:
        """Append one line; if that fails, an error is logged and the call goes on."""
        # Clients choose their own names and the methods they try: nobody may fill the disk.
        short = {k: v[:_MAX_TEXT] if isinstance(v, str) else v for k, v in record.items()}
        line = compact(short).encode("utf-8", "backslashreplace") + b"\n"
        try:
            self._file = self._current_file(len(line))
            # One system call on a file opened for appending: lines of several processes never mix.
            os.write(self._file, line)
        except OSError as exc:
            logger.error("The audit log %s cannot be written: %s", self.path, exc)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _open(self) -> int:
        return open_private(self.path, os.O_WRONLY | os.O_APPEND)

    def _current_file(self, length: int) -> int:
        """The file to write to; rotates a full one, and notices if another process has done so."""
        file = self._file
        here = os.fstat(file)
        try:
            # Another inode at the path means that another process has rotated the file.
            there = self.path.stat()
        except FileNotFoundError:
            there = None
        if there is not None and there.st_ino == here.st_ino:
            if here.st_size == 0 or here.st_size + length <= self._max_bytes:
                return file
            self._rotate()
        os.close(file)
        return self._open()

    def _rotate(self) -> None:
        # Date and process make the name unique: two processes may rotate in the same second.
        at = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y%m%dT%H%M%S.%f")
        rotated = self.path.with_name(f"{self.path.stem}-{at}-{os.getpid()}{self.path.suffix}")
        with suppress(FileNotFoundError):  # another process was faster
            os.rename(self.path, rotated)
        if self._max_files:
            files = sorted(self.path.parent.glob(f"{self.path.stem}-*{self.path.suffix}"))
            for path in files[: -self._max_files]:
                path.unlink(missing_ok=True)


def audit_calls(log: AuditLog, *, clock: Callable[[], float] = time.time) -> Layer:
    """A layer that records every call that reaches dispatch, including refused ones."""

    def layer(inner: Handler) -> Handler:
        async def audited(call: ToolCall) -> CallResult:
            began = clock()
            # What stays if neither branch below runs: a cancellation is no `Exception`.
            outcome, error = "cancelled", None
            try:
                result = await inner(call)
                outcome = "tool_error" if result.is_error else "ok"
                return result
            except PegboardError as exc:
                outcome, error = "error", exc.kind
                raise
            except Exception as exc:
                outcome, error = "error", type(exc).__name__
                raise
            finally:
                seconds, caller = clock() - began, call.caller
                record: dict[str, Json] = {
                    "time": _timestamp(began),
                    "operation": "tools/call",
                    "call": call.id,
                    "principal": caller.principal,
                    "client": caller.client,
                    "session": caller.session,
                    "mode": caller.mode,
                    "tool": call.tool.id,
                    "via": call.via,
                    "run": call.parent,
                    "risk": call.tool.risk,
                    "arguments": f"sha256:{digest(call.arguments)}",
                    "outcome": outcome,
                    "error": error,
                    "ms": round(seconds * 1000, 3),
                }
                log.write({k: v for k, v in record.items() if v is not None and v != ""})

        return audited

    return layer


class AuditObserver:
    """An observer that records everything except calls that reach dispatch."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log
        self._sign_ins = _FloodLimit()

    def record(self, event: Event) -> None:
        """Write a line, if the event is an act of somebody."""
        match event:
            case CallRejected():
                self._write(_rejected_call_record(event))
            # Not `CallFinished`: `audit_calls` records the calls that reach dispatch.
            case RequestAnswered():
                self._write(_request_record(event))
            case RunFinished():
                self._write(_run_record(event))
            case SearchAnswered():
                self._write(_query_record(event, "search", event.query))
            case DescribeAnswered():
                self._write(_query_record(event, "describe", list(event.tools)))
            case OperatorActed():
                self._write(_operator_record(event))
            case SignInFailed():
                if (dropped := self._sign_ins.admit(event.at)) is not None:
                    record: dict[str, Json] = {
                        "time": _timestamp(event.at),
                        "operation": "sign-in",
                        "target": event.path,
                        "address": event.address,
                        "outcome": "error",
                        "error": event.error,
                        "left_out": dropped or None,
                    }
                    self._write(record)
            case _:
                pass

    def _write(self, record: dict[str, Json]) -> None:
        known = {key: value for key, value in record.items() if value not in (None, "", [], {})}
        self._log.write(known)


class _FloodLimit:
    """Admits a number of events per second, so that strangers cannot fill the disk."""

    def __init__(self, max_per_second: int = 10) -> None:
        self._max_per_second = max_per_second
        self._second = 0.0
        self._count = 0
        self._dropped = 0

    def admit(self, at: float) -> int | None:
        """How many events were dropped before this one; `None` when this one is dropped."""
        # `abs`, because a clock that was set back must not stop the log for that long.
        if abs(at - self._second) >= 1.0:
            self._second, self._count = at, 0
        self._count += 1
        if self._count > self._max_per_second:
            self._dropped += 1
            return None
        dropped, self._dropped = self._dropped, 0
        return dropped


def _request_record(event: RequestAnswered) -> dict[str, Json]:
    return {
        "time": _timestamp(event.at),
        "operation": event.method,
        "target": event.target,
        "principal": event.principal,
        "client": event.client,
        "session": event.session,
        "outcome": _outcome(event.outcome),
        "error": event.error,
        "ms": round(event.duration * 1000, 3),
    }


def _query_record(
    event: SearchAnswered | DescribeAnswered, operation: str, query: Json
) -> dict[str, Json]:
    return {
        "time": _timestamp(event.at),
        "operation": operation,
        "principal": event.principal,
        "client": event.client,
        "mode": event.mode,
        # Hashed, as it may contain private data; equal hashes still show repetition.
        "arguments": f"sha256:{digest(query)}",
        "outcome": "ok",
        "ms": round(event.duration * 1000, 3),
    }


def _operator_record(event: OperatorActed) -> dict[str, Json]:
    return {
        "time": _timestamp(event.at),
        "operation": event.action,
        "targets": list(event.targets),
        "details": dict(event.details),
        "principal": event.principal,
        "source": event.source,
        "address": event.address,
        "outcome": _outcome(event.outcome),
        "error": event.error,
    }


def _run_record(event: RunFinished) -> dict[str, Json]:
    return {
        "time": _timestamp(event.at),
        "operation": "run",
        "run": event.id,
        "principal": event.principal,
        "client": event.client,
        "session": event.session,
        "mode": event.mode,
        "via": event.via,
        "arguments": f"sha256:{event.digest}",
        "program": event.program,
        "ran": event.ran,
        "calls": event.calls,
        "writes": event.writes,
        "outcome": _outcome(event.outcome),
        "error": event.error,
        "ms": round(event.duration * 1000, 3),
    }


def _outcome(outcome: str) -> str:
    return outcome if outcome in ("ok", "cancelled") else "error"


def _rejected_call_record(event: CallRejected) -> dict[str, Json]:
    return {
        "time": _timestamp(event.at),
        "operation": "tools/call",
        "principal": event.principal,
        "client": event.client,
        "session": event.session,
        "mode": event.mode,
        "tool": event.name,
        "via": event.via,
        "arguments": f"sha256:{event.arguments}",
        "outcome": "error",
        "error": event.error,
    }


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
