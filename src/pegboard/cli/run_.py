"""`pegboard run`: run a program over the tools of a configuration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import anyio
import typer
from anyio import to_thread

from pegboard.cli.config_discovery import find_source
from pegboard.cli.output import EXIT_FAILED, JsonOption, err, out, print_json
from pegboard.cli.targets import ConfigOption, open_config_board
from pegboard.core.calls import CallResult
from pegboard.core.code.consent import ConsentQuestion


def run(
    file: Annotated[str, typer.Argument(help="A Python program; - for standard input.")],
    config: ConfigOption = None,
    write: Annotated[
        bool, typer.Option("--write", help="Let it call tools that are not read-only.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Consent to destructive calls without being asked.")
    ] = False,
    after: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Do not repeat what this run completed."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a program that calls tools by name, and print its value."""
    source = _read_program(file)
    board = open_config_board(find_source(config))

    async def consent(question: ConsentQuestion) -> bool:
        if yes or not sys.stdin.isatty():
            return yes
        err.print(question.text, markup=False, highlight=False)
        return await to_thread.run_sync(lambda: typer.confirm("Make these calls?", err=True))

    async def work() -> CallResult:
        async with board:
            return await board.run_code(source, write, after, consent=consent)

    print_run(anyio.run(work), as_json=as_json)


def print_run(result: CallResult, *, as_json: bool) -> None:
    """Print the value of a program, or why it has none: then the command fails."""
    if as_json:
        print_json(result.wire)
    else:
        for block in result.content:
            out.print(block.get("text", ""), soft_wrap=True, markup=False, highlight=False)
    if result.is_error:
        raise typer.Exit(EXIT_FAILED)


def _read_program(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise typer.BadParameter(f"{file} cannot be read: {exc}") from exc
