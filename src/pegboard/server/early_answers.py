"""Answers to a client's first requests while the rest of the program is still being imported.

Importing the SDK takes most of a second, and some clients wait one second for a server's tools
before they call the model without them. A client's first requests are always the same:
`initialize` or `server/discover`, then `tools/list`. At the next start the answers are the same
too, unless the configuration or a cached catalog has changed. So they are saved and sent again.

    client ──> thread: was this request recorded?   yes ──> recorded answer ──> client
                                                    no  ──> stop reading

    imports done ──> everything read so far ──> server ──> answers that the client has are dropped

The server still handles every request, so its state is what it would have been. Where its own
answer differs, the record is replaced and the client is notified that the list has changed.

Only the standard library and `private_files` are imported here, and only cheap parts of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

MAX_ANSWERS = 24
"""Answers in one record: enough for a few clients with two or three requests each."""
MAX_MESSAGES = 32
"""Messages after which a client is past its first requests, whatever they were."""
_METHODS = frozenset({"initialize", "server/discover", "tools/list"})
_MAX_RECORD_BYTES = 4 << 20
"""A larger record would take longer to read than it saves."""
_CHUNK = 1 << 16
_FORMAT = 1
_LIST_CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'

JsonObject: TypeAlias = dict[str, Any]
Answers: TypeAlias = dict[str, JsonObject]
"""Results by the digest of the request that they answer."""


class AnswerRecord:
    """The answers of earlier starts of one configuration, in a file that only its owner can read.

    `start` identifies version, arguments and environment. The answers also depend on files:
    configuration, catalogs, lock. Their digests are saved, and any change invalidates the record.
    """

    def __init__(self, path: Path, start: str) -> None:
        self._path = path
        self._start = start
        self.answers = self._load()

    @classmethod
    def of(
        cls, config: Path, environ: Mapping[str, str], *, mode: str | None = None, version: str = ""
    ) -> AnswerRecord:
        """The record of a configuration file as it would be served now."""
        from pegboard.private_files import home_folder

        ours = sorted(item for item in environ.items() if item[0].startswith("PEGBOARD_"))
        place = [os.path.abspath(config), os.getcwd(), environ.get("HOME")]
        start = _digest([version, sys.version, mode, place, ours])
        name = f"{_digest(place[0])[:24]}.json"
        return cls(home_folder(environ) / "first_answers" / name, start)

    def _load(self) -> Answers:
        try:
            with self._path.open("rb") as file:
                found = os.fstat(file.fileno())
                is_writable = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
                if is_writable or found.st_uid != os.geteuid():  # somebody else may have written it
                    return {}
                saved = json.loads(file.read(_MAX_RECORD_BYTES))
            if (saved["format"], saved["start"]) != (_FORMAT, self._start):
                return {}
            if any(_file_digest(path) != digest for path, digest in saved["files"].items()):
                return {}
            return dict(saved["answers"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}  # without a usable record the server answers, only later

    def save(self, answers: Answers, files: Iterable[Path]) -> None:
        """Add answers, newest last, and replace the file.

        Raises:
            OSError: It cannot be written.
        """
        older = {key: value for key, value in self.answers.items() if key not in answers}
        self.answers = dict([*older.items(), *answers.items()][-MAX_ANSWERS:])
        saved = {
            "format": _FORMAT,
            "start": self._start,
            "files": {str(path): _file_digest(str(path)) for path in files},
            "answers": self.answers,
        }
        data = json.dumps(saved).encode()
        if len(data) > _MAX_RECORD_BYTES:
            self.forget()
            return
        from pegboard.private_files import make_private_folder, replace_file

        make_private_folder(self._path.parent)
        with replace_file(self._path, is_durable=False) as file:
            file.write(data)

    def forget(self) -> None:
        """Delete the file: its answers are no longer valid."""
        self.answers = {}
        self._path.unlink(missing_ok=True)


class _Session:
    """Tells requests apart, also by who makes them: the list depends on the client."""

    def __init__(self) -> None:
        self._client: object = None

    def digest(self, message: JsonObject) -> str:
        params = message.get("params")
        if message.get("method") == "initialize":
            self._client = params  # from 2026-07-28 on, each request has this in its `_meta`
        return _digest([self._client, message.get("method"), params])


class FirstExchange:
    """A client's first requests on standard input, and their answers."""

    def __init__(self, record: AnswerRecord) -> None:
        self.record = record
        self.received = b""
        """Everything that the thread has read from the client."""
        self.is_over = False
        """The client has its list, or is past it: nothing is dropped or recorded any more."""
        self.when_over: Callable[[Answers], None] | None = None
        """Called with the server's answers, once it has answered `tools/list`."""
        self._sent: Answers = {}
        self._requests: dict[str, tuple[str, str]] = {}
        self._answers: Answers = {}
        self._messages = 0
        self._partial_line = b""
        self._replayed_session, self._session = _Session(), _Session()
        self._stop_reader, self._stop_writer = os.pipe()
        self._thread = threading.Thread(target=self._replay, name="first answers", daemon=True)

    @classmethod
    def begin(
        cls, config: Path, environ: Mapping[str, str], *, mode: str | None, version: str
    ) -> FirstExchange | None:
        """Start answering from the record; `None` if standard input is not a client's pipe."""
        if not has_own_pipes():
            return None
        exchange = cls(AnswerRecord.of(config, environ, mode=mode, version=version))
        if exchange.record.answers:
            exchange._thread.start()
        return exchange

    # While the program is being imported ------------------------------------------------------

    def take_over(self) -> None:
        """Stop the thread: from here on, somebody else reads standard input."""
        os.close(self._stop_writer)
        if self._thread.ident is not None:
            self._thread.join()
        os.close(self._stop_reader)
        self.read(self.received)

    def _replay(self) -> None:
        partial_line = b""
        while self._stop_reader not in select.select([0, self._stop_reader], [], [])[0]:
            chunk = os.read(0, _CHUNK)
            self.received += chunk
            *lines, partial_line = (partial_line + chunk).split(b"\n")
            if not chunk or not all(self._send_recorded(line) for line in lines):
                return

    def _send_recorded(self, line: bytes) -> bool:
        """Answer a recorded request; false for one that has to wait for the server."""
        message = _parse(line)
        if message is None:
            return False
        if "id" not in message:
            return True  # a notification, which the server reads later
        result = self.record.answers.get(self._replayed_session.digest(message))
        if result is None:
            return False
        self._sent[_id_key(message)] = result
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        line = json.dumps(answer, separators=(",", ":")).encode() + b"\n"
        while line:
            line = line[os.write(1, line) :]
        return True

    # Once the server runs ---------------------------------------------------------------------

    def read(self, chunk: bytes) -> None:
        """Note the requests in what the client sends."""
        *lines, self._partial_line = (self._partial_line + chunk).split(b"\n")
        self._messages += len(lines)
        for message in map(_parse, lines):
            if message is not None and message.get("method") in _METHODS and "id" in message:
                digest = self._session.digest(message)
                self._requests[_id_key(message)] = message["method"], digest
        if self._messages > MAX_MESSAGES and not self._sent:
            self.is_over = True

    def write(self, line: bytes) -> bytes:
        """What to send in place of the server's line: nothing if the client has that answer."""
        message = _parse(line)
        key = "" if message is None or "method" in message else _id_key(message)
        if message is None or key not in self._requests:
            return line
        method, digest = self._requests.pop(key)
        sent = self._sent.pop(key, None)
        result = message.get("result")
        if isinstance(result, dict):
            self._answers[digest] = result
        if method == "tools/list" and not self._sent:
            self.is_over = True
            if self.when_over is not None:
                self.when_over(self._answers)
        if sent is None:
            return line
        return _LIST_CHANGED if method == "tools/list" and result != sent else b""


def has_own_pipes() -> bool:
    """Whether standard input and output are pipes that no other process shares.

    A shared pipe would become non-blocking for the others as well.
    """
    if sys.platform == "win32":
        return False
    try:
        ends = [os.fstat(number) for number in (0, 1, 2)]
    except OSError:
        return False
    are_pipes = all(stat.S_ISFIFO(end.st_mode) or stat.S_ISSOCK(end.st_mode) for end in ends[:2])
    return are_pipes and len({(end.st_dev, end.st_ino) for end in ends}) == 3


def _parse(line: bytes) -> JsonObject | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _id_key(message: JsonObject) -> str:
    """The id of a request or response; 1 and "1" are different requests."""
    return json.dumps(message.get("id"))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _file_digest(path: str) -> str | None:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None  # a file that is missing both times is the same configuration
