"""The commands put together, and what happens when one fails."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from pegboard import __version__
from pegboard.cli import (
    call,
    clients,
    demo,
    describe,
    doctor,
    eval_,
    index,
    install,
    list_tools,
    lock,
    measure,
    rollout,
    search,
    serve,
    ui,
)
from pegboard.cli.output import (
    EXIT_CONFIGURATION,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    configure_streams,
    out,
    print_error,
)
from pegboard.errors import ConfigError, PegboardError, ToolNotFound

_WRONG_USE: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""The root of what Typer raises for wrong use; it exports only some of its leaves."""

app = typer.Typer(
    name="pegboard",
    help="A catalogue of MCP tools that costs what is used, not what exists.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

app.command("serve")(serve.serve)
app.command("demo")(demo.demo)
app.command("list")(list_tools.list_tools)
app.command("search")(search.search)
app.command("describe")(describe.describe)
app.command("call")(call.call)
app.command("fields")(describe.fields)
app.command("index")(index.index)
app.command("eval")(eval_.evaluate)
app.command("doctor")(doctor.doctor)
app.command("try")(search.try_tasks)
app.command("measure")(measure.measure)
app.command("install")(install.install)
app.command("uninstall")(install.uninstall)
app.command("clients")(clients.clients)
app.add_typer(lock.app, name="lock")
app.add_typer(rollout.app, name="rollout")
app.command("ui")(ui.ui)


def _say_version(asked: bool) -> None:
    if asked:
        out.print(f"pegboard {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; goes anywhere.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_say_version, help="Show it.")
    ] = False,
) -> None:
    """Set what holds for every command; `run` takes it off the command line itself."""


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; what fails becomes a sentence and an exit code."""
    words, debug = _without_debug(sys.argv[1:] if arguments is None else arguments)
    configure_streams()
    try:
        code = app(words, prog_name="pegboard", standalone_mode=False)
        sys.stdout.flush()
    except (typer.Abort, KeyboardInterrupt):
        raise SystemExit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(EXIT_FAILED) from None
    except Exception as exc:
        if debug:
            raise
        raise SystemExit(_told(exc)) from None
    if isinstance(code, int) and code:  # what `typer.Exit` becomes outside standalone mode
        raise SystemExit(code)


def _told(exc: BaseException) -> int:
    """Say in one sentence what is wrong; gives the exit code."""
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    if isinstance(exc, _WRONG_USE):
        return _told_wrong_use(exc)
    if isinstance(exc, PegboardError):
        lost = isinstance(exc, ToolNotFound) and not exc.nearest
        print_error(
            f"{exc.message} `pegboard search` finds tools by task." if lost else exc.message
        )
        return EXIT_CONFIGURATION if isinstance(exc, ConfigError) else EXIT_FAILED
    if isinstance(exc, OSError):
        print_error(f"{exc.filename or 'The system'}: {exc.strerror or exc}.")
        return EXIT_FAILED
    print_error(f"This is a fault of Pegboard ({type(exc).__name__}: {exc}): --debug shows where.")
    return EXIT_FAILED


def _told_wrong_use(exc: Any) -> int:
    message = exc.format_message().removeprefix("Invalid value: ")
    message = message[:1].upper() + message[1:] if not message.startswith("--") else message
    if not message:  # help was shown instead
        return exc.exit_code
    context = getattr(exc, "ctx", None)
    command = context.command_path if context is not None else "pegboard"
    end = "" if message.endswith("?") else "."
    print_error(f"{message.rstrip('.')}{end} See `{command} --help`.")
    return exc.exit_code


def _without_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments without `--debug`, wherever it stands before a `--`."""
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    ours = [word for word in words[:end] if word != "--debug"]
    return [*ours, *words[end:]], len(ours) < end
