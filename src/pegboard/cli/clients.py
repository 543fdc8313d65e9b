"""`pegboard clients`: the MCP clients of this machine and what they have."""

from __future__ import annotations

from dataclasses import dataclass

from rich.table import Table

from pegboard.cli.boards import JsonOption
from pegboard.cli.output import NARROW, abbreviate_home, out, print_json
from pegboard.core.json import JsonObject
from pegboard.errors import PegboardError
from pegboard.install import files
from pegboard.install.client_entry import NAME
from pegboard.install.clients import Client, Machine, load_clients, this_machine
from pegboard.install.config_editor import parse_servers
from pegboard.install.records import ours_of, read_record


@dataclass(frozen=True, slots=True)
class Seen:
    """One client as it is on this machine."""

    client: Client
    file: str
    is_here: bool
    has_pegboard: bool
    servers: tuple[str, ...]
    problem: str | None = None


def clients(as_json: JsonOption = False) -> None:
    """List the MCP clients of this machine: where their files are, and what is in them."""
    machine = this_machine()
    seen = [look(client, machine) for client in load_clients().values()]
    if as_json:
        print_json({"clients": [_as_json(one) for one in seen]})
    else:
        _show(seen)


def look(client: Client, machine: Machine) -> Seen:
    """The client as it is; what is wrong with its file is part of the answer."""
    path = machine.file_of(client)
    is_here = machine.has(client)
    try:
        record = read_record(ours_of(client, machine, path))
        text = files.read(path).text
        names = tuple(n for n in parse_servers(text, path, client.table) if n != NAME)
        return Seen(client, str(path), is_here, record is not None, names)
    except PegboardError as exc:
        return Seen(client, str(path), is_here, False, (), exc.message)


def _as_json(seen: Seen) -> JsonObject:
    return {
        "client": seen.client.key,
        "title": seen.client.title,
        "file": seen.file,
        "installed": seen.is_here,
        "pegboard": seen.has_pegboard,
        "mode": seen.client.mode,
        "servers": list(seen.servers),
        "problem": seen.problem,
    }


def _show(seen: list[Seen]) -> None:
    heads = ["client", "state", "servers", "mode", "file"]
    heads = heads[:3] if out.width < NARROW else heads
    table = Table(*heads, box=None, header_style="bold")
    table.columns[0].no_wrap = True
    for one in sorted(seen, key=lambda s: not s.is_here):
        style = "" if one.is_here else "dim"
        count = str(len(one.servers)) if one.is_here and not one.problem else "-"
        row = [one.client.key, _state(one), count, one.client.mode, abbreviate_home(one.file)]
        table.add_row(*row[: len(heads)], style=style)
    out.print(table)
    for one in seen:
        if one.problem and one.is_here:
            out.print(f"{one.client.key}: {one.problem}", style="yellow")
    if any(s.is_here and not s.has_pegboard and not s.problem for s in seen):
        out.print("\n`pegboard install CLIENT --dry-run` shows what would change.")
    elif not any(s.is_here for s in seen):
        out.print("\nNone was found. `pegboard install CLIENT --file FILE` takes a file elsewhere.")


def _state(seen: Seen) -> str:
    if not seen.is_here:
        return "not found"
    if seen.problem:
        return "cannot be changed"
    return "has Pegboard" if seen.has_pegboard else "found"
