"""What commands print: JSON for programs, tables for people, errors in one sentence."""

from __future__ import annotations

import io
import json
import os
import sys

from rich.console import Console

from pegboard.core.json import Json

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


out = Console(width=_width())
err = Console(stderr=True)


def suit_streams() -> None:
    """Let text that a stream's code page does not have come out as `?`, not as a failure."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def print_json(value: Json) -> None:
    """One JSON document on standard output, readable, never wrapped, right in any code page."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    only_ascii = encoding not in ("utf8", "utf8sig")
    sys.stdout.write(json.dumps(value, ensure_ascii=only_ascii, indent=2, default=str) + "\n")


def fail(message: str) -> None:
    """An error in one sentence, on standard error."""
    err.print(f"[bold red]error:[/] {plain(message)}", highlight=False, soft_wrap=True)


def near_home(path: str) -> str:
    """A path as people write it, with `~` for their home folder."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if home != "/" and path.startswith(home + os.sep) else path


def plain(text: str) -> str:
    """Text that Rich prints as it is."""
    return text.replace("[", "\\[")
