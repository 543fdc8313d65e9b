"""The commands put together, and what happens when one fails."""

from __future__ import annotations

import sys
from typing import Annotated

import click
import typer

from pegboard.cli import call, demo, describe, doctor, listing, lock, rollout, search, serve
from pegboard.cli.output import EXIT_CONFIGURATION, EXIT_FAILED, fail
from pegboard.errors import ConfigError, PegboardError

app = typer.Typer(
    name="pegboard",
    help="A catalogue of MCP tools that costs what is used, not what exists.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

app.command("serve")(serve.serve)
app.command("demo")(demo.demo)
app.command("list")(listing.list_tools)
app.command("search")(search.search)
app.command("describe")(describe.describe)
app.command("call")(call.call)
app.command("doctor")(doctor.doctor)
app.add_typer(lock.app, name="lock")
app.add_typer(rollout.app, name="rollout")


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Set what holds for every command; `run` reads it from the command line itself."""


def run() -> None:
    """Run the command line; our errors become a sentence and an exit code."""
    debug = "--debug" in sys.argv[1:]
    try:
        code = app(standalone_mode=False)
        if isinstance(code, int) and code:  # what `typer.Exit` becomes outside standalone mode
            raise SystemExit(code)
    except click.exceptions.Abort:
        raise SystemExit(130) from None
    except click.ClickException as exc:
        exc.show()
        raise SystemExit(exc.exit_code) from None
    except PegboardError as exc:
        if debug:
            raise
        fail(exc.message)
        raise SystemExit(
            EXIT_CONFIGURATION if isinstance(exc, ConfigError) else EXIT_FAILED
        ) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
