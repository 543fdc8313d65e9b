"""What commands print: JSON for programs, tables for people, errors in one sentence.

Names and descriptions come from servers. Everything for people goes through `Terminal`, which has
no markup and shows control characters as code points; what has a style is made with `line`.
"""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from pegboard.core.json import Json
from pegboard.core.sanitization import escape_hidden, escape_hidden_json

EXIT_FAILED = 1
EXIT_WRONG_USE = 2
EXIT_CONFIGURATION = 3
EXIT_INTERRUPTED = 130

NARROW = 72
"""Columns below which only the most telling figures are shown."""
WIDE = 160
"""Columns where there is no terminal to ask: enough to cut nothing that a script looks for."""


def _width() -> int | None:
    return None if sys.stdout.isatty() or os.environ.get("COLUMNS") else WIDE


class Terminal(Console):
    """A console that prints any text as what it is: no markup, no escapes, no emoji codes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:  # pyright: ignore[reportIncompatibleMethodOverride] passed on as given
        """A string for printing, alone or in a table."""
        return super().render_str(escape_hidden(text), **options)


out = Terminal(width=_width())
err = Terminal(stderr=True)


def line(*parts: str | tuple[str, str]) -> Text:
    """A text of several parts, each plain or with its style."""
    styled = [(part, "") if isinstance(part, str) else part for part in parts]
    return Text.assemble(*((escape_hidden(text), style) for text, style in styled))


class _Escaped(logging.Formatter):
    """Log lines in which nothing can repaint a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return escape_hidden(super().format(record))


def configure_streams() -> None:
    """Let text that a stream's code page does not have come out as `?`, not as a failure.

    Warnings of commands that set up no log are escaped like all other output.
    """
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Escaped())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def print_json(value: Json) -> None:
    """One JSON document on standard output, readable, never wrapped, right in any code page."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    only_ascii = encoding not in ("utf8", "utf8sig")
    text = json.dumps(value, ensure_ascii=only_ascii, indent=2, default=str)
    sys.stdout.write(escape_hidden_json(text) + "\n")


def print_error(message: str) -> None:
    """An error in one sentence, on standard error."""
    err.print(line(("error:", "bold red"), f" {message}"), soft_wrap=True)


def print_warning(label: str, message: str) -> None:
    """Something that is missing or odd, in one sentence, on standard error."""
    err.print(line((f"{label}:", "yellow"), f" {message}"), soft_wrap=True)


def abbreviate_home(path: str) -> str:
    """A path as people write it, with `~` for their home folder."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if home != "/" and path.startswith(home + os.sep) else path
