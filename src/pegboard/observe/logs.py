"""Logs: JSON lines for collectors, plain lines for a terminal, one observer for events.

Standard library only, and nothing is set up at import. `log_json` and `log_text` give the
`pegboard` loggers a handler; `EventLog` is the observer that writes events to them.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

from pegboard.core.caches import BoundedCache
from pegboard.core.events import (
    BreakerChanged,
    CallFinished,
    CallRetried,
    CallStarted,
    DescribeAnswered,
    Event,
    ListAnswered,
    RequestAnswered,
    RunFinished,
    RunStarted,
    SearchAnswered,
    StoreStateChanged,
    UpstreamStateChanged,
    event_to_json,
)
from pegboard.core.json import JsonObject
from pegboard.core.redaction import Redactor, secret_values
from pegboard.core.sanitization import escape_hidden, escape_hidden_json

if TYPE_CHECKING:
    from pegboard.config.loader import Configuration
    from pegboard.upstream.listing import ListingResult


_FIELDS = "pegboard_fields"
_SUCCESS = -1
"""Stands for the level of successful events, which depends on the format of the log."""


class EventLog:
    """Writes each event as a line, at a level that fits it.

    Successful events matter only to collectors: they are logged at `INFO` where lines are JSON, and
    at `DEBUG` elsewhere, where a line would only have the name of the event. Search queries are
    left out unless `queries` is set; argument values are in an event only if the observing layer is
    configured to record them.
    """

    def __init__(self, logger: logging.Logger | None = None, *, queries: bool = False) -> None:
        self._logger = logger or logging.getLogger("pegboard.events")
        self._queries = queries

    def record(self, event: Event) -> None:
        """Write one line."""
        level = _event_level(event)
        if level == _SUCCESS:
            if not self._logger.isEnabledFor(logging.INFO):
                return
            level = logging.INFO if _is_structured(self._logger) else logging.DEBUG
        # Without a handler, Python would print the bare names of events on stderr.
        if not self._logger.isEnabledFor(level) or not self._logger.hasHandlers():
            return
        if isinstance(event, SearchAnswered) and not self._queries:
            event = replace(event, query=None)
        fields = event_to_json(event)
        del fields["event"]  # it is the line's message
        self._logger.log(level, event.kind, extra={_FIELDS: fields})


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object; secrets are redacted in every part of it."""

    def __init__(self, redactor: Redactor | None = None) -> None:
        super().__init__()
        self._redactor = redactor or Redactor()

    def format(self, record: logging.LogRecord) -> str:
        """The record on one line."""
        line: JsonObject = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._redactor.text(record.getMessage()),
        }
        fields = getattr(record, _FIELDS, None)
        if fields:
            line |= self._redactor.value(fields)
        if record.exc_info:
            line["exception"] = self._redactor.text(self.formatException(record.exc_info))
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=str)
        return escape_hidden_json(text)


def log_json(
    stream: TextIO, *, level: int | str = logging.INFO, redactor: Redactor | None = None
) -> logging.Handler:
    """Write the logs of all `pegboard` loggers to a stream, as JSON lines; returns the handler.

    On stdio the stream must not be standard output: the protocol uses that.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter(redactor))
    logger = logging.getLogger("pegboard")
    logger.addHandler(handler)
    logger.setLevel(level)
    return handler


class RepeatFilter(logging.Filter):
    """Admits a burst of the same warning, and then one line that counts the rest.

    Otherwise a stranger could fill the disk with a warning that is easy to cause, such as a request
    that is not HTTP. Two lines are the same if logger, level and beginning are. Events are never
    dropped.
    """

    def __init__(
        self,
        *,
        burst: int = 10,
        interval: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._burst = burst
        self._interval = interval
        self._clock = clock
        self._counts: BoundedCache[tuple[str, int, str], tuple[float, int]]
        self._counts = BoundedCache(_MAX_COMPARED)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        if record.levelno < logging.WARNING or hasattr(record, _FIELDS):
            return True
        # The beginning only: arguments such as addresses differ from line to line.
        key, now = (record.name, record.levelno, str(record.msg)[:_COMPARED_CHARS]), self._clock()
        began, count = self._counts.get(key) or (now, 0)
        if now - began >= self._interval:
            dropped = count - self._burst
            if dropped > 0:
                record.msg = f"{record.getMessage()} ({dropped} more lines like this left out)"
                record.args = ()
            began, count = now, 0
        self._counts.put(key, (began, count + 1))
        return count < self._burst


_COMPARED_CHARS = 60
_MAX_COMPARED = 1_000


def limit_repeated_lines() -> None:
    """Limit repeated warnings on standard error, of all loggers."""
    handlers = [*logging.getLogger("pegboard").handlers, *logging.getLogger("uvicorn").handlers]
    if logging.lastResort is not None:  # the handler of loggers without one, such as asyncio's
        handlers.append(logging.lastResort)
    for handler in handlers:
        if not any(isinstance(one, RepeatFilter) for one in handler.filters):
            handler.addFilter(RepeatFilter())


def _event_level(event: Event) -> int:
    match event:
        case CallStarted() | RunStarted():
            return logging.DEBUG
        case CallFinished(outcome="failed") | CallRetried() | BreakerChanged(state="open"):
            return logging.WARNING
        case UpstreamStateChanged(state="failed") | StoreStateChanged(available=False):
            return logging.WARNING
        case CallFinished(outcome="ok") | ListAnswered() | SearchAnswered() | DescribeAnswered():
            return _SUCCESS
        case RequestAnswered() | RunFinished(outcome="ok"):
            return _SUCCESS
        case _:
            return logging.INFO


def _is_structured(logger: logging.Logger | None) -> bool:
    """Whether some handler of this logger writes the fields of events."""
    while logger is not None:
        if any(isinstance(handler.formatter, JsonFormatter) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


_EVENT_LOGGER = "pegboard.events"


_key_redactor = Redactor()
"""Knows the usual formats of keys; the redactor of the log also knows configured values."""


class TextFormatter(logging.Formatter):
    """Formats records for a terminal: no secrets, and no control sequences from servers."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__("pegboard: %(message)s")
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return escape_hidden(self._redactor.text(super().format(record)))


def collect_secrets(configuration: Configuration) -> set[str]:
    """The values of a configuration that no log may contain."""
    specs = (*configuration.upstreams, *configuration.sources)
    secrets = {secret for spec in specs for secret in spec.secrets}
    return secrets | secret_values(urls=(configuration.settings.store.url,))


def print_line(text: str) -> None:
    """Print a line for the operator, on stderr: the protocol uses standard output."""
    sys.stderr.write(f"pegboard: {escape_hidden(_key_redactor.text(text))}\n")
    sys.stderr.flush()


def print_problems(configuration: Configuration) -> None:
    """Print what is wrong with a configuration, and what was left out on purpose."""
    for problem in configuration.problems:
        print_line(f"problem: {problem.message}")
    for note in configuration.notes:
        print_line(note)
    if not configuration.upstreams and not configuration.sources:
        print_line("no server of this configuration can be used.")


def print_progress(done: int, total: int, found: ListingResult) -> None:
    """Print one line for each server that is listed for the first time."""
    if found.listing is None:
        what = found.failure
    else:
        tools = len(found.listing.tools)
        noun = "tool" if tools == 1 else "tools"
        what = f"{found.server}: {tools} {noun} in {found.seconds:.1f} s"
    print_line(f"[{done}/{total}] {what}")


def log_text(redactor: Redactor) -> None:
    """Write warnings of all `pegboard` loggers to stderr, as plain lines."""
    logger = logging.getLogger("pegboard")
    # An application that has set up logging itself keeps its own handlers.
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(TextFormatter(redactor))
        handler.addFilter(lambda record: record.name != _EVENT_LOGGER)  # one for every call
        logger.addHandler(handler)
        logger.propagate = False


def log_sdk(redactor: Redactor, *, as_json: bool) -> None:
    """Write the SDK's warnings to stderr, in a line each.

    Its tracebacks quote what servers answered, at length: as plain text they are left out.
    """
    logger = logging.getLogger("mcp")
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setLevel(logging.WARNING)
        handler.setFormatter(JsonFormatter(redactor) if as_json else _SdkFormatter(redactor))
        handler.addFilter(RepeatFilter())
        logger.addHandler(handler)
        logger.propagate = False


class _SdkFormatter(TextFormatter):
    def formatException(self, ei: Any) -> str:
        return f"({ei[0].__name__})" if ei[0] else ""
