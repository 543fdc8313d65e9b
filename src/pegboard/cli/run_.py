"""`pegboard run` and `pegboard replay`: run a program, or repeat a run without making its calls."""

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
from pegboard.core.calls import LOCAL_CALLER, Caller, CallResult
from pegboard.core.code.consent import ConsentQuestion
from pegboard.modes.run_code import RUN_WRITE_CODE


def run(
    file: Annotated[str, typer.Argument(help="A Python program; - for standard input.")],
    config: ConfigOption = None,
    write: Annotated[
        bool, typer.Option("--write", help="Allow calls to tools that are not read-only.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Consent to destructive calls without being asked.")
    ] = False,
    after: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Do not repeat the calls that this run completed."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a program that calls tools by name, and print its result."""
    try:
        source = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise typer.BadParameter(f"the program {file} cannot be read: {exc}") from exc
    board = open_config_board(find_source(config))

    async def consent(question: ConsentQuestion) -> bool:
        if yes:
            return True
        # On standard error, so that standard output has nothing but the value of the program.
        err.print(question.text, markup=False, highlight=False)
        if not sys.stdin.isatty():
            err.print("There is no terminal to ask for consent. Pass --yes to make these calls.")
            return False
        return await _confirm("Make these calls?")

    async def work() -> CallResult:
        async with board:
            return await board.run_code(source, write, after, consent=consent)

    result = anyio.run(work)
    if not write and any(RUN_WRITE_CODE in block.get("text", "") for block in result.content):
        err.print("Here, --write stands for run_write_code: it allows these calls.")
    print_run(result, as_json=as_json)


async def _confirm(question: str) -> bool:
    if sys.platform == "win32":
        return await to_thread.run_sync(lambda: typer.confirm(question, err=True))
    err.print(f"{question} [y/N]: ", end="", markup=False, highlight=False)
    # A thread that reads the terminal cannot be ended, so Ctrl-C would wait for an answer.
    await anyio.wait_readable(sys.stdin)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def print_run(result: CallResult, *, as_json: bool) -> None:
    """Print the value of a program, or why it has none: then the command fails."""
    if as_json:
        print_json(result.wire)
    else:
        for block in result.content:
            out.print(block.get("text", ""), soft_wrap=True, markup=False, highlight=False)
    if result.is_error:
        raise typer.Exit(EXIT_FAILED)


def replay(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The id of a run, such as r-5f2c....")],
    config: ConfigOption = None,
    principal: Annotated[
        str, typer.Option(metavar="NAME", help="The principal who ran it.")
    ] = LOCAL_CALLER.principal,
    as_json: JsonOption = False,
) -> None:
    """Repeat a recorded run: its calls are answered from the record, and no tool is called.

    Needs `store_programs` in [code].
    """
    board = open_config_board(find_source(config))

    async def work() -> CallResult:
        async with board:
            view = await board.view(Caller(principal))
            return await board.dispatcher.replay_program(view, run)

    print_run(anyio.run(work), as_json=as_json)
