"""What commands print: JSON for programs, tables for people, errors in one sentence."""

from __future__ import annotations

import json
import sys

from rich.console import Console

from pegboard.core.json import Json

EXIT_FAILED = 1
EXIT_WRONG_USE = 2
EXIT_CONFIGURATION = 3

out = Console()
err = Console(stderr=True)


def print_json(value: Json) -> None:
    """One JSON document on standard output, readable and never wrapped."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


def fail(message: str) -> None:
    """An error in one sentence, on standard error."""
    err.print(f"[bold red]error:[/] {plain(message)}", highlight=False, soft_wrap=True)


def plain(text: str) -> str:
    """Text that Rich prints as it is."""
    return text.replace("[", "\\[")
