"""`pegboard` without a command: what is on this machine, and the one command to run next.

Nothing is started. Token counts come from catalogs that an earlier command has listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio
from rich.table import Table

from pegboard import __version__
from pegboard.cli.output import err, line, out
from pegboard.core import defaults
from pegboard.install.client_status import ClientStatus, inspect_clients
from pegboard.install.clients import this_machine


def show_start() -> None:
    """Print the clients on this machine and the next step."""
    title = (f"Pegboard {__version__}", "bold")
    out.paragraph(line(title, ": pay only for the tools that a model uses."))
    machine = this_machine()
    has_config = machine.user_config.is_file()
    found = [status for status in inspect_clients(machine) if status.is_found]
    with err.status("Counting tokens ..."):
        tokens = {s.path: _cached_tokens(s) for s in found if s.servers}
    if found:
        table = Table("client", "servers", "tokens of all tools", "", box=None, header_style="bold")
        for column in table.columns[1:3]:
            column.justify = "right"
        for status in found:
            count = tokens.get(status.path)
            notes = ["has Pegboard"] if status.record is not None else []
            notes += ["defers tools itself"] if status.client.defers_tools else []
            table.add_row(
                status.client.title,
                f"{len(status.servers):,}" if status.servers else "none",
                "-" if not status.servers else "not measured" if count is None else f"{count:,}",
                ", ".join(notes),
            )
        out.print()
        out.print(table)
    if has_config:
        out.paragraph(f"Your configuration: {machine.user_config}")
    command, why = _next_step(found, tokens, has_config=has_config)
    out.print()
    out.print(line("Next: ", (command, "bold green")))
    out.paragraph(why)
    out.print("\n`pegboard --help` lists all commands.", style="dim")


def _cached_tokens(status: ClientStatus) -> int | None:
    """Tokens of all definitions, if every server that can be used has been listed before."""
    from pegboard.cli.config_discovery import client_source
    from pegboard.errors import ConfigError
    from pegboard.gateway.cached_board import open_cached_board
    from pegboard.measure.mode_costs import count_list_tokens

    source = client_source(status)
    try:
        configuration = source.read()
        board = open_cached_board(source, configuration)
    except ConfigError:
        return None  # `pegboard doctor` says what is wrong
    if board is None:
        return None
    return anyio.run(count_list_tokens, board, "eager")


def _next_step(
    found: list[ClientStatus], tokens: Mapping[Path, int | None], *, has_config: bool
) -> tuple[str, str]:
    """The command to run next, and why."""
    candidates = [s for s in found if s.servers and s.record is None and s.problem is None]
    # Nothing is saved where the client defers tools itself, or where `auto` would list all tools.
    worthwhile = [
        status
        for status in candidates
        if not status.client.defers_tools
        and (tokens[status.path] is None or (tokens[status.path] or 0) > defaults.EAGER_BUDGET)
    ]
    if worthwhile:
        client = max(worthwhile, key=lambda status: len(status.servers)).client
        return f"pegboard install {client.key}", (
            f"It measures the servers of {client.title}, shows what would change and what that "
            "saves, and asks before it writes anything."
        )
    if any(status.record is not None for status in found) or has_config:
        return "pegboard ui", "It opens the dashboard: calls, tokens saved, every server."
    if candidates:
        return "pegboard demo", (
            "Your clients load few tokens for tools, or defer tools themselves: Pegboard would "
            "save little there. The demo shows what it does with over a hundred tools."
        )
    if any(status.problem for status in found):
        return "pegboard clients", "It says why a client's file cannot be changed."
    return "pegboard demo", (
        "No client with servers was found on this machine. The demo starts an example server with "
        "over a hundred tools and shows the cost of each step."
    )
