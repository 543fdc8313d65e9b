"""`pegboard doctor`: how every server of a configuration is."""

from __future__ import annotations

from dataclasses import asdict

import anyio
import typer
from rich.table import Table

from pegboard.cli.boards import ConfigOption, JsonOption
from pegboard.cli.output import EXIT_CONFIGURATION, EXIT_FAILED, out, plain, print_json
from pegboard.core.json import JsonObject
from pegboard.tokens import DEFAULT_TOKENIZER


def doctor(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Look at every server: reachable, era, tools, tokens, latency, problems."""
    if config is None:
        raise typer.BadParameter("say which servers: --config FILE")
    from pegboard.gateway.checkup import check
    from pegboard.gateway.opening import Opening
    from pegboard.gateway.reporting import say_progress

    opening = Opening.of(config)
    configuration = opening.read()
    found = anyio.run(check, configuration, opening.folder(configuration), say_progress)
    result: JsonObject = {
        "tokenizer": DEFAULT_TOKENIZER,
        "servers": [asdict(one) for one in found],
        "problems": [problem.message for problem in configuration.problems],
        "notes": list(configuration.notes),
    }
    if as_json:
        print_json(result)
    else:
        _show(result)
    if any(not one.reachable for one in found):
        raise typer.Exit(EXIT_FAILED)
    if configuration.problems:
        raise typer.Exit(EXIT_CONFIGURATION)


def _show(result: JsonObject) -> None:
    table = Table("server", "", "era", "tools", "tokens", "first answer", "listed in", box=None)
    for column in table.columns[3:]:
        column.justify = "right"
    for one in result["servers"]:
        state = "[green]reachable[/]" if one["reachable"] else "[bold red]failed[/]"
        latency = f"{one['latency'] * 1000:.0f} ms" if one["latency"] is not None else "-"
        table.add_row(
            plain(one["server"]),
            state,
            one["era"] or "-",
            f"{one['tools']:,}" if one["reachable"] else "-",
            f"{one['tokens']:,}" if one["reachable"] else "-",
            latency,
            f"{one['seconds']:.1f} s",
        )
    out.print(table)
    for one in result["servers"]:
        for problem in one["problems"]:
            out.print(f"[yellow]•[/] {plain(problem)}", highlight=False, soft_wrap=True)
    for problem in result["problems"]:
        out.print(f"[red]configuration:[/] {plain(problem)}", highlight=False, soft_wrap=True)
    for note in result["notes"]:
        out.print(plain(note), style="dim", highlight=False, soft_wrap=True)
