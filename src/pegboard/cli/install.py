"""`pegboard install`, `uninstall` and `clients`: one entry in an MCP client instead of many."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer
from rich.table import Table

from pegboard.cli.output import (
    EXIT_FAILED,
    NARROW,
    JsonOption,
    PathCell,
    abbreviate_home,
    line,
    out,
    print_error,
    print_json,
)
from pegboard.core.json import JsonObject
from pegboard.errors import ConfigError, PegboardError
from pegboard.install.client_status import ClientStatus, inspect_client, inspect_clients
from pegboard.install.clients import find_client, load_clients, this_machine

if TYPE_CHECKING:
    from pegboard.cli.client_costs import ClientCost
    from pegboard.install.plan import Plan
    from pegboard.oauth.grants import LoginState


def _complete(incomplete: str) -> list[str]:
    return [key for key in load_clients() if key.startswith(incomplete)]


ClientArgument = Annotated[
    str,
    typer.Argument(
        metavar="CLIENT",
        help=f"One of {', '.join(load_clients())}.",
        autocompletion=_complete,
        show_default=False,
    ),
]
FileOption = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help="Another file of the client, such as a project's."),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show the change without writing anything.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def install(
    client: ClientArgument,
    file: FileOption = None,
    mode: Annotated[
        str | None,
        typer.Option(metavar="MODE", help="The mode to use instead of the recommended one."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Show only the tools of this profile in your pegboard.toml."
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="SERVER", help="Leave this server where it is. Can be repeated."),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure",
            help="Start servers that were never listed, and show the tokens before and after.",
        ),
    ] = True,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Put Pegboard in front of an MCP client's servers, and show how many tokens that saves."""
    from pegboard.install.plan import apply_install, plan_install

    def plan_with(reasons: dict[str, str]) -> Plan:
        return plan_install(
            find_client(client),
            this_machine(),
            command=_pegboard_command(),
            file=file,
            mode=mode,
            profile=profile,
            keep=reasons,
        )

    kept = dict.fromkeys(keep or (), "because of --keep")
    plan = plan_with(kept)
    if measure and (missing := _find_missing_logins(plan, ask=not (yes or as_json or dry_run))):
        plan = plan_with({**missing, **kept})
    if not as_json:
        _show_install(plan)
    cost = _measure(plan) if measure and plan.moved else None
    if cost is not None and not as_json:
        cost.show()
    is_done = False
    # Without a record, an unchanged file still has to be recorded: `uninstall` needs that.
    if not dry_run and (plan.is_change or not plan.folder.record.exists()):
        question = f"Change {abbreviate_home(str(plan.path))}?"
        if cost is not None and cost.saves_nothing:
            question = f"Change {abbreviate_home(str(plan.path))} anyway?"
        _confirm(yes, as_json, question)
        apply_install(plan)
        is_done = True
    if as_json:
        tokens = cost.to_json() if cost is not None else None
        print_json({**_plan_json(plan), "tokens": tokens, "done": is_done})
    elif is_done:
        undo = f"pegboard uninstall {client}{f' --file {file}' if file else ''}"
        out.paragraph(f"Done. Restart {plan.client.title}. `{undo}` undoes this.")
    elif dry_run and plan.is_change:
        out.paragraph("Nothing was changed. Without --dry-run, you are asked first.")


def _find_missing_logins(plan: Plan, *, ask: bool) -> dict[str, str]:
    """The servers that need a login before they can move, with the reason for leaving them."""
    from pegboard.cli.login import login
    from pegboard.config.server_entries import ConfigEnvironment
    from pegboard.config.settings import Settings
    from pegboard.gateway.from_settings import build_grant_storage
    from pegboard.install.server_logins import find_missing_logins

    # Servers that an earlier installation moved are not in this file any more, and stay moved.
    path = plan.path
    environment = ConfigEnvironment(os.environ, this_machine().home, Path.cwd())
    storage = build_grant_storage(Settings(), None)
    reasons: dict[str, str] = {}
    for name in find_missing_logins(path, plan.moved, environment, storage):
        command = f"pegboard login {name} --config {path}"
        question = f"{name} needs a login of its own for Pegboard. Log in now?"
        is_done = False
        if ask and sys.stdin.isatty() and typer.confirm(question):
            try:
                login(name, config=path)
                is_done = True
            except ConfigError as exc:  # the others can still be installed
                print_error(exc.message)
            except typer.Exit:
                pass  # the reason was already printed
        if not is_done:
            reasons[name] = f"it needs a login: run `{command}`, then install again"
    return reasons


def _measure(plan: Plan) -> ClientCost | None:
    """The cost of the servers that move; `None` if none of them could be listed."""
    from pegboard.cli.client_costs import measure_client, warn_not_measured

    status = inspect_client(plan.client, this_machine(), plan.path)
    cost = measure_client(status, mode=plan.mode, only=plan.moved, profile=plan.profile)
    warn_not_measured([cost])
    return cost if cost.measured.tools else None


def uninstall(
    client: ClientArgument,
    file: FileOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Remove Pegboard from an MCP client and restore its servers."""
    from pegboard.install.plan import apply_uninstall, plan_uninstall

    plan = plan_uninstall(find_client(client), this_machine(), file=file)
    if not as_json:
        _show_diff(plan)
    if not dry_run:
        _confirm(yes, as_json, f"Restore {abbreviate_home(str(plan.path))}?")
        apply_uninstall(plan)
    if as_json:
        print_json({**_plan_json(plan), "done": not dry_run})
    elif dry_run:
        out.paragraph("Nothing was changed. Without --dry-run, you are asked first.")
    else:
        out.print(f"Done. {plan.client.title} has its servers back. Restart it.")


def _pegboard_command() -> tuple[str, ...]:
    """The command that starts Pegboard, by its full path: clients search few folders."""
    running = Path(sys.argv[0])  # the same installation that the user has just run
    if running.stem == "pegboard" and running.is_file():
        return (str(running.absolute()),)
    found = shutil.which("pegboard")
    return (found,) if found else (sys.executable, "-m", "pegboard")


def _confirm(yes: bool, as_json: bool, question: str) -> None:
    if yes:
        return
    # A program that reads JSON, or a pipe, could not answer a question.
    if as_json or not sys.stdin.isatty():
        raise typer.BadParameter(
            "there is no terminal to ask for confirmation: pass --yes, or --dry-run to only show "
            "the change"
        )
    if not typer.confirm(question):
        raise typer.Exit(EXIT_FAILED)


def _show_install(plan: Plan) -> None:
    client = plan.client
    if not plan.is_change and plan.folder.record.exists():
        out.paragraph(f"{client.title} already has Pegboard; nothing to change in {plan.path}.")
        return
    _show_diff(plan)
    if plan.moved:
        out.paragraph(f"Behind Pegboard: {', '.join(plan.moved)}")
    else:
        out.paragraph(f"There are no servers to move. Add some to {plan.folder.settings}.")
    for server in plan.skipped:
        out.paragraph(f"Left where it is: {server.name} ({server.reason})")
    profile = f" Profile: {plan.profile}." if plan.profile else ""
    out.paragraph(
        f"Mode: {plan.mode}.{profile} The servers and these settings are stored in "
        f"{abbreviate_home(str(plan.folder.path))}."
    )


def _show_diff(plan: Plan) -> None:
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for changed in plan.diff().splitlines():
        style = "bold" if changed.startswith(("+++", "---")) else styles.get(changed[:1], "")
        out.print(line((changed, style)), soft_wrap=True)


def _plan_json(plan: Plan) -> JsonObject:
    return {
        "client": plan.client.key,
        "title": plan.client.title,
        "file": str(plan.path),
        "mode": plan.mode or None,
        "changed": plan.is_change,
        "taken": list(plan.moved),
        "left": [{"name": server.name, "reason": server.reason} for server in plan.skipped],
        "config": str(plan.folder.settings),
        "backup": str(plan.folder.backup),
        "profile": plan.profile,
        "diff": plan.diff(),
    }


# --- pegboard clients -----------------------------------------------------------------------------


def clients(as_json: JsonOption = False) -> None:
    """List the MCP clients on this machine, with their files and servers."""
    found = inspect_clients(this_machine())
    logins = {one.path: _read_logins(one) for one in found if one.behind}
    if as_json:
        shown = [
            {
                "client": one.client.key,
                "title": one.client.title,
                "file": str(one.path),
                "installed": one.is_found,
                "pegboard": one.record is not None,
                "mode": one.record.mode if one.record else one.client.mode,
                "servers": list(one.servers),
                "behind": list(one.behind),
                "problem": one.problem,
                "logins": logins.get(one.path, {}),
            }
            for one in found
        ]
        print_json({"clients": shown})
        return
    _show_clients(found)
    missing = {
        name: state
        for states in logins.values()
        for name, state in states.items()
        if state != "signed in"
    }
    for name, state in sorted(missing.items()):
        out.paragraph(line((f"{state}: ", "yellow"), f"{name}, with `pegboard login {name}`."))


def _read_logins(status: ClientStatus) -> dict[str, LoginState]:
    """The user's logins to the servers of a client that are behind Pegboard."""
    from pegboard.gateway.cached_board import read_login_states
    from pegboard.gateway.config_source import ConfigSource

    try:
        source = ConfigSource.from_path(status.folder.settings)
        configuration = source.read()
        return anyio.run(read_login_states, configuration, source.folder(configuration))
    except PegboardError:
        return {}  # reported by `doctor`, with the reason


def describe_state(status: ClientStatus) -> str:
    """The state of a client in a few words."""
    if not status.is_found:
        return "not found"
    if status.problem:
        return "cannot be changed"
    return "has Pegboard" if status.record is not None else "found"


def _show_clients(found: list[ClientStatus]) -> None:
    heads = ["client", "state", "servers", "mode", "file"]
    heads = heads[:3] if out.width < NARROW else heads
    table = Table(*heads, box=None, header_style="bold")
    table.columns[0].no_wrap = True
    for one in sorted(found, key=lambda status: not status.is_found):
        count = str(len(one.servers)) if one.is_found and (one.servers or not one.problem) else "-"
        file = PathCell(abbreviate_home(str(one.path)))
        mode = one.record.mode if one.record else one.client.mode
        row = [one.client.key, describe_state(one), count, mode, file]
        table.add_row(*row[: len(heads)], style="" if one.is_found else "dim")
    out.print(table)
    for one in found:
        if one.problem and one.is_found:
            out.paragraph(line((f"{one.client.key}: {one.problem}", "yellow")))
    if any(describe_state(one) == "found" for one in found):
        out.print("\n`pegboard install CLIENT --dry-run` shows what would change.")
    elif not any(one.is_found for one in found):
        out.print("\nNo client was found. `pegboard install CLIENT --file FILE` uses another file.")
