"""`pegboard install`, `uninstall` and `clients`: one entry in an MCP client instead of many."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from pegboard.cli.output import (
    EXIT_FAILED,
    NARROW,
    JsonOption,
    abbreviate_home,
    line,
    out,
    print_json,
)
from pegboard.core.json import Json, JsonObject
from pegboard.errors import PegboardError
from pegboard.install.client_entry import NAME
from pegboard.install.client_files import install_folder, read_client_file, read_install_record
from pegboard.install.clients import Client, Machine, find_client, load_clients, this_machine
from pegboard.install.config_editor import parse_servers

if TYPE_CHECKING:
    from pegboard.install.plan import Plan


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
        typer.Option(metavar="MODE", help="The mode, instead of the one recommended for it."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="SERVER", help="Leave this server where it is. Can be repeated."),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Put Pegboard in front of the servers of an MCP client."""
    from pegboard.install.plan import apply_install, plan_install

    plan = plan_install(
        find_client(client),
        this_machine(),
        command=_pegboard_command(),
        file=file,
        mode=mode,
        keep=keep or (),
    )
    if not as_json:
        _show_install(plan)
    is_done = False
    # Without a record, an unchanged file still has to be recorded: `uninstall` needs that.
    if not dry_run and (plan.is_change or not plan.folder.record.exists()):
        _confirm(yes, as_json, f"Change {plan.path}?")
        apply_install(plan)
        is_done = True
    if as_json:
        print_json({**_plan_json(plan), "done": is_done})
    elif is_done:
        out.print(f"Done. Restart {plan.client.title}. `pegboard uninstall {client}` undoes this.")


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
        _confirm(yes, as_json, f"Restore {plan.path}?")
        apply_uninstall(plan)
    if as_json:
        print_json({**_plan_json(plan), "done": not dry_run})
    elif not dry_run:
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
            "there is no terminal to ask for confirmation: pass --yes, or --dry-run to only look"
        )
    if not typer.confirm(question):
        raise typer.Exit(EXIT_FAILED)


def _show_install(plan: Plan) -> None:
    client = plan.client
    if not plan.is_change and plan.folder.record.exists():
        out.print(f"{client.title} already has Pegboard; nothing to change in {plan.path}.")
        return
    _show_diff(plan)
    if plan.moved:
        out.print(f"Moved behind Pegboard: {', '.join(plan.moved)}")
    else:
        out.print(f"There are no servers to move. Add some to {plan.folder.settings}.")
    for server in plan.skipped:
        out.print(f"Not moved: {server.name} ({server.reason})")
    out.print(f"Mode: {plan.mode}. The servers are stored in {plan.folder.path}.")


def _show_diff(plan: Plan) -> None:
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for changed in _redacted_diff(plan).splitlines():
        style = "bold" if changed.startswith(("+++", "---")) else styles.get(changed[:1], "")
        out.print(line((changed, style)), soft_wrap=True)


def _redacted_diff(plan: Plan) -> str:
    """The diff without the secrets that clients have in their files."""
    from pegboard.config.documents import parse_document
    from pegboard.core.redaction import Redactor

    # The redactor finds secrets by the keys of values, and a diff has only lines. So the secrets
    # are collected from the parsed file, and then removed from the text of the diff.
    redactor = Redactor()
    secrets: list[str] = []
    for data in (plan.content.data, plan.after):
        if data:
            value = parse_document(data.decode("utf-8-sig"), plan.path).value
            secrets += _changed_texts(value, redactor.value(value))
    return Redactor(secrets).text(plan.diff())


def _changed_texts(before: Json, after: Json) -> list[str]:
    """The texts that redaction changed: the secrets of the file."""
    if isinstance(before, str):
        return [] if before == after else [before]
    if isinstance(before, dict):
        parts: Any = after if isinstance(after, dict) else {}
        return [t for k, v in before.items() for t in _changed_texts(v, parts.get(k))]
    if isinstance(before, list):
        items: Any = after if isinstance(after, list) else [None] * len(before)
        return [t for v, w in zip(before, items, strict=False) for t in _changed_texts(v, w)]
    return []


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
        "diff": _redacted_diff(plan),
    }


# --- pegboard clients -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """One client on this machine."""

    client: Client
    file: str
    is_found: bool
    has_pegboard: bool
    servers: tuple[str, ...]
    problem: str | None = None

    @property
    def state(self) -> str:
        if not self.is_found:
            return "not found"
        if self.problem:
            return "cannot be changed"
        return "has Pegboard" if self.has_pegboard else "found"

    def to_json(self) -> JsonObject:
        return {
            "client": self.client.key,
            "title": self.client.title,
            "file": self.file,
            "installed": self.is_found,
            "pegboard": self.has_pegboard,
            "mode": self.client.mode,
            "servers": list(self.servers),
            "problem": self.problem,
        }


def clients(as_json: JsonOption = False) -> None:
    """List the MCP clients on this machine, with their files and servers."""
    machine = this_machine()
    found = [_inspect(client, machine) for client in load_clients().values()]
    if as_json:
        print_json({"clients": [status.to_json() for status in found]})
    else:
        _show_clients(found)


def _inspect(client: Client, machine: Machine) -> ClientStatus:
    """The status of a client; a problem with its file is reported as part of it."""
    path = machine.client_file(client)
    is_found = machine.has(client)  # a client without a file can still be installed
    try:
        record = read_install_record(install_folder(client, machine, path))
        text = read_client_file(path).text
        names = tuple(n for n in parse_servers(text, path, client.table) if n != NAME)
        return ClientStatus(client, str(path), is_found, record is not None, names)
    except PegboardError as exc:
        return ClientStatus(client, str(path), is_found, False, (), exc.message)


def _show_clients(found: list[ClientStatus]) -> None:
    heads = ["client", "state", "servers", "mode", "file"]
    heads = heads[:3] if out.width < NARROW else heads
    table = Table(*heads, box=None, header_style="bold")
    table.columns[0].no_wrap = True
    for one in sorted(found, key=lambda status: not status.is_found):
        count = str(len(one.servers)) if one.is_found and not one.problem else "-"
        row = [one.client.key, one.state, count, one.client.mode, abbreviate_home(one.file)]
        table.add_row(*row[: len(heads)], style="" if one.is_found else "dim")
    out.print(table)
    for one in found:
        if one.problem and one.is_found:
            out.print(f"{one.client.key}: {one.problem}", style="yellow")
    if any(one.state == "found" for one in found):
        out.print("\n`pegboard install CLIENT --dry-run` shows what would change.")
    elif not any(one.is_found for one in found):
        out.print("\nNo client was found. `pegboard install CLIENT --file FILE` uses another file.")
