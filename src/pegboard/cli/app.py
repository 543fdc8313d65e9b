"""The `pegboard` command: all commands together, and how an error becomes an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from pegboard import __version__
from pegboard.cli import (
    call,
    demo,
    describe,
    doctor,
    eval_,
    index,
    install,
    list_tools,
    lock,
    login,
    measure,
    rollout,
    run_,
    search,
    serve,
    start,
    ui,
)
from pegboard.cli.help_pages import Command, Group, group_epilog, help_epilog, start_epilog
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
"""The base class of Typer's usage errors, which Typer does not export."""

app = typer.Typer(
    name="pegboard",
    cls=Group,
    help="A gateway and library for MCP tools: pay only for the tools that a model uses.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=start_epilog(),
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

_COMMANDS: dict[str, Callable[..., None]] = {
    "install": install.install,
    "uninstall": install.uninstall,
    "clients": install.clients,
    "measure": measure.measure,
    "ui": ui.ui,
    "serve": serve.serve,
    "doctor": doctor.doctor,
    "login": login.login,
    "logout": login.logout,
    "list": list_tools.list_tools,
    "search": search.search,
    "try": search.try_tasks,
    "describe": describe.describe,
    "fields": describe.fields,
    "call": call.call,
    "run": run_.run,
    "replay": run_.replay,
    "index": index.index,
    "eval": eval_.evaluate,
    "demo": demo.demo,
}
for _name, _function in _COMMANDS.items():
    app.command(_name, cls=Command, epilog=help_epilog(_name))(_function)
app.add_typer(lock.app, name="lock", epilog=group_epilog("lock"))
app.add_typer(rollout.app, name="rollout", epilog=group_epilog("rollout"))


def _print_version(is_requested: bool) -> None:
    if is_requested:
        out.print(f"pegboard {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error. Works anywhere."),
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version."),
    ] = False,
) -> None:
    """A gateway and library for MCP tools: pay only for the tools that a model uses."""
    # `--debug` is only here for the help: `run` removes it before Typer sees it.
    if context.invoked_subcommand is None:
        start.show_start()


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; an error becomes one sentence and an exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # `--debug` may stand anywhere before a `--`, after which all words belong to another command.
    end = words.index("--") if "--" in words else len(words)
    debug = "--debug" in words[:end]
    words = [*(word for word in words[:end] if word != "--debug"), *words[end:]]
    configure_streams()
    try:
        # Standalone, Typer would print errors itself and exit with codes of its own.
        code = app(words, prog_name="pegboard", standalone_mode=False)
        sys.stdout.flush()
    except (typer.Abort, KeyboardInterrupt):
        raise SystemExit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe: exit quietly, also when Python flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(EXIT_FAILED) from None
    except Exception as exc:
        if debug:
            raise
        raise SystemExit(_report(exc)) from None
    if isinstance(code, int) and code:  # `typer.Exit` outside standalone mode
        raise SystemExit(code)


def _report(exc: BaseException) -> int:
    """Print an error in one sentence; returns the exit code."""
    # Task groups wrap even a single exception.
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    if isinstance(exc, _WRONG_USE):
        wrong_use: Any = exc
        # Typer's messages are fragments; the user gets a sentence and a hint.
        message = wrong_use.format_message().removeprefix("Invalid value: ")
        message = message if message.startswith("--") else message[:1].upper() + message[1:]
        if message:  # otherwise Typer has printed the help instead
            context = getattr(exc, "ctx", None)
            command = context.command_path if context is not None else "pegboard"
            end = "" if message.endswith("?") else "."
            print_error(f"{message.rstrip('.')}{end} See `{command} --help`.")
        return wrong_use.exit_code
    if isinstance(exc, PegboardError):
        has_no_hint = isinstance(exc, ToolNotFound) and not exc.nearest
        print_error(
            f"{exc.message} `pegboard search` finds tools by task." if has_no_hint else exc.message
        )
        return EXIT_CONFIGURATION if isinstance(exc, ConfigError) else EXIT_FAILED
    if isinstance(exc, OSError):
        print_error(f"{exc.filename or 'The system'}: {exc.strerror or exc}.")
        return EXIT_FAILED
    print_error(f"Internal error ({type(exc).__name__}: {exc}). --debug shows the traceback.")
    return EXIT_FAILED
