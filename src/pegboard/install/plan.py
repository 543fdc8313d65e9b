"""What installing or uninstalling would do: worked out whole before anything is written.

    before  --take servers out, put one entry in-->  after   the client's own file
    servers that were taken out                  -->  kept    in our folder

Installing again starts from what uninstalling would leave, so that it is one rule and not two.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pegboard.config.client_formats import find_disabled_servers
from pegboard.config.documents import located_error, parse_document
from pegboard.config.server_entries import runs_pegboard
from pegboard.core.json import JsonObject
from pegboard.core.options import check_mode
from pegboard.errors import ConfigError, PegboardError
from pegboard.install import files
from pegboard.install.client_entry import NAME, SkippedServer, build_entry, select_servers
from pegboard.install.clients import Client, Machine
from pegboard.install.config_editor import (
    add_server,
    copy_servers,
    empty_document,
    parse_servers,
    remove_servers,
)
from pegboard.install.files import Content, digest
from pegboard.install.records import Ours, Record, ours_of, read_record


@dataclass(frozen=True, slots=True)
class Plan:
    """A change of one client's file, ready to be shown and carried out."""

    client: Client
    ours: Ours
    content: Content = field(repr=False)
    after: bytes | None = field(repr=False)
    before: bytes | None = field(repr=False)
    """What uninstalling puts back."""
    kept: bytes | None = field(default=None, repr=False)
    settings: bytes | None = field(default=None, repr=False)
    mode: str = ""
    taken: tuple[str, ...] = ()
    left: tuple[SkippedServer, ...] = ()
    entry: JsonObject = field(default_factory=dict[str, Any], repr=False)

    @property
    def path(self) -> Path:
        return self.content.path

    @property
    def is_change(self) -> bool:
        """Whether the client's file would be another one."""
        return self.after != self.content.data

    def diff(self) -> str:
        """The change, as people read changes."""
        old = self.content.text.splitlines()
        new = Content(self.path, self.after).text.splitlines() if self.after is not None else []
        name = str(self.path)
        return "\n".join(difflib.unified_diff(old, new, name, name, lineterm=""))


def plan_install(
    client: Client,
    machine: Machine,
    *,
    command: Sequence[str],
    file: Path | None = None,
    mode: str | None = None,
    keep: Collection[str] = (),
) -> Plan:
    """What installing into a client would do.

    Args:
        client: The client.
        machine: Where its file is looked for.
        command: What starts Pegboard, without the command `serve`.
        file: Another file of that client's kind.
        mode: Another mode than the one that suits the client.
        keep: Servers to leave where they are.

    Raises:
        PegboardError: The client is not there.
        ConfigError: Its file cannot be changed; says why.
    """
    path = _file(client, machine, file)
    ours = ours_of(client, machine, path)
    content = files.read(path)
    parse_servers(content.text, path, client.table)  # refuse what is of no known shape
    record = read_record(ours)
    before = content.data if record is None else restored(client, ours, record, content)
    bare = Plan(client=client, ours=ours, content=content, before=before, after=None)
    shown = check_mode(mode or client.mode)
    serve = (*command, "serve", "--config", str(ours.settings), "--mode", shown)
    return _unless_done(replace(_filled(bare, serve, keep), mode=shown), record)


def _filled(plan: Plan, serve: Sequence[str], keep: Collection[str]) -> Plan:
    """The plan with what is to be written, from what uninstalling would leave."""
    client, path = plan.client, plan.path
    text = Content(path, plan.before).text
    servers = parse_servers(text, path, client.table)
    if NAME in servers:
        raise located_error(
            path,
            f"there is a server {NAME!r} already that this command did not write: "
            "rename or remove it first.",
        )
    taken, left = select_servers(client, servers, off=_off(text, path), keep=keep)
    entry = build_entry(client, serve, [servers[name] for name in taken])
    rest = remove_servers(text, path, client.table, taken)
    after = add_server(rest, path, client.table, NAME, entry)
    kept = copy_servers(empty_document(path, client.table), path, client.table, text, taken)
    return replace(
        plan,
        after=plan.content.encoded(after),
        kept=kept.encode(),
        settings=_settings(client, plan.ours).encode(),
        taken=tuple(taken),
        left=tuple(left),
        entry=entry,
    )


def plan_uninstall(client: Client, machine: Machine, *, file: Path | None = None) -> Plan:
    """What putting a client's file back would do.

    Raises:
        PegboardError: Pegboard was not installed there.
        ConfigError: The file cannot be changed; says why.
    """
    path = file or machine.file_of(client)
    ours = ours_of(client, machine, path)
    record = read_record(ours)
    if record is None:
        raise PegboardError(f"Pegboard is not installed in {client.title} ({path}).")
    content = files.read(path)
    before = restored(client, ours, record, content)
    return Plan(client=client, ours=ours, content=content, after=before, before=before)


def restored(client: Client, ours: Ours, record: Record, content: Content) -> bytes | None:
    """The client's file as uninstalling leaves it.

    Byte for byte what it was when nobody has changed it since; else the file as it is now, without
    our entry and with the servers that were taken over, as far as it does not have them itself.
    """
    kept = _read(ours.kept)
    if digest(content.data) == record.before:
        return content.data
    if digest(content.data) == record.after and digest(kept) == record.kept:
        backup = _read(ours.backup)
        if digest(backup) == record.before:
            return backup
    path, table = content.path, client.table
    text = content.text if content.text.strip() else empty_document(path, table)
    servers = parse_servers(text, path, table)
    if NAME in servers and _is_ours(servers[NAME], record):
        text = remove_servers(text, path, table, [NAME])
    source = (kept or b"").decode("utf-8") or empty_document(path, table)
    missing = [n for n in parse_servers(source, ours.kept, table) if n not in servers]
    return content.encoded(copy_servers(text, path, table, source, missing))


def _is_ours(entry: JsonObject, record: Record) -> bool:
    words = entry.get("command") or entry.get("cmd")
    command = words[0] if isinstance(words, list) and words else words
    return entry == record.entry or runs_pegboard({**entry, "command": command})


def _unless_done(plan: Plan, record: Record | None) -> Plan:
    """The plan, or one that changes nothing when the file says the same in another order."""
    if record is None or not plan.is_change or plan.content.data is None:
        return plan
    kept = _read(plan.ours.kept)
    now = parse_servers(plan.content.text, plan.path, plan.client.table)
    is_same = now.get(NAME) == plan.entry and not set(now) & set(plan.taken)
    if is_same and kept is not None and digest(kept) == record.kept:
        return replace(plan, after=plan.content.data, kept=None, settings=None)
    return plan


def _file(client: Client, machine: Machine, file: Path | None) -> Path:
    if file is not None:
        return file
    if not machine.has(client):
        looked = ", ".join(str(path) for path in machine.files_of(client))
        raise PegboardError(
            f"{client.title} was not found on this machine (looked for {looked}). "
            "If its file is elsewhere, name it with --file."
        )
    return machine.file_of(client)


def _off(text: str, path: Path) -> set[str]:
    document = parse_document(text, path)
    mcp = document.value.get("mcp")
    allowed = mcp.get("allowed") if isinstance(mcp, dict) else None
    if isinstance(allowed, list) and NAME not in allowed and "mcpServers" in document.value:
        raise document.error(
            f'only the servers listed here may run: add "{NAME}" to it first.', ("mcp", "allowed")
        )
    return find_disabled_servers(document, None)


def _settings(client: Client, ours: Ours) -> str:
    name = ours.kept.relative_to(ours.folder).as_posix()
    return (
        f"# What stands behind the `{NAME}` entry of {client.title}, "
        f"written by `pegboard install {client.key}`.\n"
        "# Settings of your own may be added here: they stay when the command is run again.\n"
        f'import = ["{name}"]\n'
    )


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror or exc}.") from exc
