"""What commands print: JSON for programs, tables for people, one sentence for an error.

Names and descriptions come from servers and are not trusted. All text for people goes through
`Terminal`, which interprets no markup and shows control characters as code points; styled text is
built with `line`.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from pegboard.core.json import Json
from pegboard.core.sanitization import escape_hidden, escape_hidden_json

EXIT_FAILED = 1
EXIT_CONFIGURATION = 3
EXIT_INTERRUPTED = 130

NARROW = 72
"""Terminals with fewer columns get only the most important columns of a table."""
WIDE = 160
"""The width without a terminal: wide enough that nothing a script searches for is cut off."""

JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ProgressCallback: TypeAlias = Callable[[int, int], None]
"""Called with the number of steps done and the total."""


class Terminal(Console):
    """A console that prints text literally: no markup, no escape sequences, no emoji codes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:  # pyright: ignore[reportIncompatibleMethodOverride] passed on as given
        """A string for printing, alone or in a table."""
        return super().render_str(escape_hidden(text), **options)

    def paragraph(self, text: str | Text, style: str = "") -> None:
        """Print prose, on a terminal wrapped between words; a longer word, such as a path, stays.

        Without a terminal nothing is wrapped, so that scripts can search for sentences.
        """
        whole = Text(escape_hidden(text), style) if isinstance(text, str) else text
        for part in whole.split(allow_blank=True):
            breaks: list[int] = []
            start = 0
            for word in re.finditer(r"\S+", part.plain) if self.is_terminal else ():
                if word.end() - start > self.width and word.start() > start:
                    start = word.start()
                    breaks.append(start)
            for one in part.divide(breaks):
                one.rstrip()  # the space at which the line was broken
                self.print(one, soft_wrap=True)


out = Terminal(width=None if sys.stdout.isatty() or os.environ.get("COLUMNS") else WIDE)
err = Terminal(stderr=True)


def line(*parts: str | tuple[str, str]) -> Text:
    """A text of several parts, each plain or with a style."""
    styled = [(part, "") if isinstance(part, str) else part for part in parts]
    return Text.assemble(*((escape_hidden(text), style) for text, style in styled))


class _EscapingFormatter(logging.Formatter):
    """Formats log records so that their text cannot control a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return escape_hidden(super().format(record))


def configure_streams() -> None:
    """Print characters that a stream cannot encode as `?`, and escape log warnings.

    Commands that set up no logging print warnings through `logging.lastResort`.
    """
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_EscapingFormatter())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def print_json(value: Json) -> None:
    """Print one JSON document on standard output, readable, never wrapped, in any encoding."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    # A Windows console may use a code page that lacks characters; escaped JSON is valid in all.
    only_ascii = encoding not in ("utf8", "utf8sig")
    text = json.dumps(value, ensure_ascii=only_ascii, indent=2, default=str)
    sys.stdout.write(escape_hidden_json(text) + "\n")


def print_error(message: str) -> None:
    """Print an error in one sentence on standard error."""
    err.paragraph(line(("error:", "bold red"), f" {message}"))


def print_warning(label: str, message: str) -> None:
    """Print a warning in one sentence on standard error."""
    err.paragraph(line((f"{label}:", "yellow"), f" {message}"))


@contextmanager
def progress_bar(label: str) -> Generator[ProgressCallback]:
    """A progress bar on standard error if that is a terminal; otherwise nothing is shown."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn())
    # Transient: the bar is gone when the result is printed.
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(label, total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield advance


def format_count(count: int, noun: str) -> str:
    """A number with its noun: `1 server`, `1,200 servers`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def shorten_line(text: str) -> str:
    """A line that fits the terminal; one that is cut ends between words, with `…`."""
    if len(text) < out.width:
        return text
    return text[: out.width - 2].rpartition(" ")[0].rstrip(" ,") + " …"


def abbreviate_home(text: str) -> str:
    """A path, or a sentence with paths, with `~` for the user's home folder."""
    home = os.path.expanduser("~")
    # For a user whose home is `/`, as in some containers, every path would start with `~`.
    return text.replace(home + os.sep, "~" + os.sep) if home != "/" else text


@dataclass(frozen=True, slots=True)
class PathCell:
    """A path in a table, wrapped between folders and not in the middle of a name."""

    path: str

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        longest = max(len(part) for part in self._parts)
        return Measurement(min(longest, options.max_width), len(self.path))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = ""
        for part in self._parts:
            if shown and len(shown) + len(part) > options.max_width:
                yield Text(shown)
                shown = ""
            shown += part
        yield Text(shown, overflow="fold")

    @property
    def _parts(self) -> list[str]:
        return re.findall(r"[^/\\]*[/\\]?", escape_hidden(self.path))
