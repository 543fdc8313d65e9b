"""What the operator of a gateway reads, line by line on standard error."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from pegboard.config import Configuration
from pegboard.core.cleaning import escaped
from pegboard.core.redaction import Redactor, secret_values

if TYPE_CHECKING:
    from pegboard.upstream.discovery import Found

_EVENTS = "pegboard.events"


_redactor = Redactor()
"""Knows the forms of keys; the values of a configuration are known to the log's own."""


class _Lines(logging.Formatter):
    """Log lines for a terminal: no secrets, and what servers name things cannot repaint it."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__("pegboard: %(message)s")
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return escaped(self._redactor.text(super().format(record)))


def secrets_of(configuration: Configuration) -> set[str]:
    """The values of a configuration that no log may show."""
    known = (*configuration.upstreams, *configuration.sources)
    found = {secret for one in known for secret in one.secrets}
    return found | secret_values(urls=(configuration.settings.store.url,))


def say(text: str) -> None:
    """A line for the operator; standard output is the protocol's."""
    sys.stderr.write(f"pegboard: {escaped(_redactor.text(text))}\n")
    sys.stderr.flush()


def report(configuration: Configuration) -> None:
    """What is wrong with a configuration, and what was left out on purpose."""
    for problem in configuration.problems:
        say(f"problem: {problem.message}")
    for note in configuration.notes:
        say(note)
    if not configuration.upstreams and not configuration.sources:
        say("no server of this configuration can be used.")


def say_progress(done: int, total: int, found: Found) -> None:
    """One line for each server that is listed for the first time."""
    if found.listing is None:
        what = found.error.message if found.error else "no answer"
    else:
        what = f"{found.server}: {len(found.listing.tools)} tools in {found.seconds:.1f} s"
    say(f"[{done}/{total}] {what}")


def say_warnings(redactor: Redactor) -> None:
    """Have warnings of all parts read like the rest."""
    logger = logging.getLogger("pegboard")
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Lines(redactor))
        handler.addFilter(lambda record: record.name != _EVENTS)  # of every single call
        logger.addHandler(handler)
        logger.propagate = False
