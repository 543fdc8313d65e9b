"""Installing into a client and uninstalling again: planned as a whole, then carried out.

    before  -- take servers out, put one entry in -->  after      the client's own file
    servers that were taken out                   -->  servers    in our folder

A plan is a value, so that it can be shown before anything is written. Installing again starts from
what uninstalling would leave: one rule covers both. Our own files are written first and the
client's file last, so that a failure on the way leaves the client as it was.

A change is shown as a diff without secrets. They are found in the parsed file, by the names of keys
and the forms of values, and replaced in the text where exactly that value is written. Replacing
them in the lines of a finished diff would also hit paths and words that happen to contain one. A
reference such as `${GITHUB_TOKEN}` is not a secret and stays readable.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pegboard.config.client_formats import find_disabled_servers
from pegboard.config.documents import located_error, parse_document
from pegboard.config.server_entries import runs_pegboard
from pegboard.core.json import Json, JsonObject
from pegboard.core.redaction import REDACTED, Redactor, is_secret
from pegboard.errors import ConfigError, PegboardError
from pegboard.install.client_entry import (
    NAME,
    ServedSettings,
    SkippedServer,
    build_entry,
    select_servers,
)
from pegboard.install.client_files import (
    FileContent,
    InstallFolder,
    InstallRecord,
    digest_bytes,
    exclusive_lock,
    install_folder,
    list_install_records,
    read_client_file,
    read_install_record,
    replace_unchanged,
    require_unchanged,
    write_file,
)
from pegboard.install.clients import Client, Machine
from pegboard.install.config_editor import (
    add_server,
    copy_servers,
    empty_document,
    parse_server_table,
    remove_servers,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """A change of one client's file, ready to be shown and applied."""

    client: Client
    folder: InstallFolder
    content: FileContent = field(repr=False)
    after: bytes | None = field(repr=False)
    before: bytes | None = field(repr=False)
    """What uninstalling restores."""
    servers: bytes | None = field(default=None, repr=False)
    settings: bytes | None = field(default=None, repr=False)
    """The content of our `pegboard.toml`, if it has to be written."""
    mode: str = ""
    profile: str | None = None
    moved: tuple[str, ...] = ()
    skipped: tuple[SkippedServer, ...] = ()
    entry: JsonObject = field(default_factory=dict[str, Any], repr=False)

    @property
    def path(self) -> Path:
        return self.content.path

    @property
    def changes_file(self) -> bool:
        """Whether the client's file would change."""
        return self.after != self.content.data

    @property
    def is_change(self) -> bool:
        """Whether the client's file or our settings for it would change."""
        return self.changes_file or self.settings is not None

    def diff(self) -> str:
        """The change of the client's file as a unified diff, without secrets."""
        return redacted_diff(self.path, self.content.data, self.after)


# --- planning -------------------------------------------------------------------------------------


def plan_install(
    client: Client,
    machine: Machine,
    *,
    command: Sequence[str],
    file: Path | None = None,
    mode: str | None = None,
    profile: str | None = None,
    keep: Mapping[str, str] | Collection[str] = (),
) -> Plan:
    """What installing into a client would do.

    Args:
        client: The client.
        machine: Where its file is looked for.
        command: The command that starts Pegboard, without `serve`.
        file: A file to use instead of the client's usual one.
        mode: A mode to use instead of the one recommended for the client.
        profile: A profile of the user's configuration to show only a part of the tools.
        keep: Servers to leave where they are, with reasons if it is a mapping.

    Raises:
        PegboardError: The client is not installed.
        ConfigError: Its file cannot be changed; the message says why.
    """
    if file is None and not machine.has(client):
        searched = ", ".join(str(path) for path in machine.client_files(client))
        raise PegboardError(
            f"{client.title} was not found on this machine (looked for {searched}). "
            "If its file is elsewhere, pass it with --file."
        )
    path = file.absolute() if file else machine.client_file(client)
    folder = install_folder(client, machine, path)
    content = read_client_file(path)
    # Reject an unknown layout before anything else.
    parse_server_table(content.text, path, client.table)
    record = read_install_record(folder)
    before = content.data if record is None else restore_content(client, folder, record, content)
    settings = ServedSettings.read(folder, client).with_choice(mode, profile, machine.user_config)
    # The mode is a setting and not a flag, so that `PEGBOARD_MODE` takes precedence over it.
    serve = (*command, "serve", "--config", str(folder.settings))
    base = Plan(
        client=client,
        folder=folder,
        content=content,
        before=before,
        after=None,
        settings=settings.to_write(),
        mode=settings.mode,
        profile=settings.profile,
    )
    reasons = keep if isinstance(keep, Mapping) else dict.fromkeys(keep, "because of --keep")
    plan = _with_changes(base, serve, reasons)
    if record is not None and _is_installed(plan, record):
        return replace(plan, after=content.data, servers=None)
    return plan


def _with_changes(plan: Plan, serve: Sequence[str], keep: Mapping[str, str]) -> Plan:
    """The plan with everything to write, computed from what uninstalling would leave."""
    client, path, table = plan.client, plan.path, plan.client.table
    text = FileContent(path, plan.before).text
    servers = parse_server_table(text, path, table)
    if NAME in servers:
        raise located_error(
            path,
            f"there is already a server {NAME!r} that this command did not write: "
            "rename or remove it first.",
        )
    document = parse_document(text, path)
    mcp = document.value.get("mcp")
    # Gemini CLI has an allow list: our entry would be written and silently ignored.
    allowed = mcp.get("allowed") if isinstance(mcp, dict) else None
    if isinstance(allowed, list) and NAME not in allowed and "mcpServers" in document.value:
        raise document.error(
            f'only the servers listed here may run: add "{NAME}" to the list first.',
            ("mcp", "allowed"),
        )
    off = find_disabled_servers(document, None)
    moved, skipped = select_servers(client, servers, off=off, keep=keep)
    entry = build_entry(client, serve, [servers[name] for name in moved])
    after = add_server(remove_servers(text, path, table, moved), path, table, NAME, entry)
    saved = copy_servers(empty_document(path, table), path, table, text, moved)
    return replace(
        plan,
        after=plan.content.encode(after),
        servers=saved.encode(),
        moved=tuple(moved),
        skipped=tuple(skipped),
        entry=entry,
    )


def _is_installed(plan: Plan, record: InstallRecord) -> bool:
    """Whether the file already says the same, perhaps in another order or layout."""
    if not plan.changes_file or plan.content.data is None:
        return False
    saved = _read(plan.folder.servers)
    now = parse_server_table(plan.content.text, plan.path, plan.client.table)
    is_same = now.get(NAME) == plan.entry and not set(now) & set(plan.moved)
    return is_same and saved is not None and digest_bytes(saved) == record.kept


def plan_uninstall(client: Client, machine: Machine, *, file: Path | None = None) -> Plan:
    """What restoring a client's file would do.

    Raises:
        PegboardError: Pegboard is not installed there.
        ConfigError: The file cannot be changed; the message says why.
    """
    path = file.absolute() if file else find_installed_file(client, machine)
    folder = install_folder(client, machine, path)
    record = read_install_record(folder)
    if record is None:
        raise PegboardError(f"Pegboard is not installed in {client.title} ({path}).")
    content = read_client_file(path)
    before = restore_content(client, folder, record, content)
    return Plan(client=client, folder=folder, content=content, after=before, before=before)


def find_installed_file(client: Client, machine: Machine) -> Path:
    """The file that Pegboard is installed in: the client's usual one, or one named with `--file`.

    Raises:
        PegboardError: It is installed in several other files, so that one has to be named.
    """
    usual = machine.client_file(client)
    if read_install_record(install_folder(client, machine, usual)) is not None:
        return usual
    records = [r for r in list_install_records(machine) if r.client == client.key]
    if len(records) > 1:
        files = ", ".join(record.file for record in records)
        raise PegboardError(
            f"Pegboard is installed in several files of {client.title}: {files}. "
            "Name one of them with --file."
        )
    return Path(records[0].file) if records else usual


def restore_content(
    client: Client, folder: InstallFolder, record: InstallRecord, content: FileContent
) -> bytes | None:
    """The client's file as uninstalling leaves it.

    Byte for byte the original if nobody has changed the file since. Otherwise the file as it is
    now, without our entry and with the servers that were moved, except those it has again.
    """
    saved = _read(folder.servers)
    if digest_bytes(content.data) == record.before:
        return content.data
    if digest_bytes(content.data) == record.after and digest_bytes(saved) == record.kept:
        backup = _read(folder.backup)
        if digest_bytes(backup) == record.before:
            return backup
    path, table = content.path, client.table
    text = content.text if content.text.strip() else empty_document(path, table)
    servers = parse_server_table(text, path, table)
    if entry := servers.get(NAME):
        words = entry.get("command") or entry.get("cmd")
        command = words[0] if isinstance(words, list) and words else words
        # An entry that a user has edited is still ours if it runs Pegboard.
        if entry == record.entry or runs_pegboard({**entry, "command": command}):
            text = remove_servers(text, path, table, [NAME])
    source = (saved or b"").decode("utf-8") or empty_document(path, table)
    # A user may have added a moved server again; theirs wins.
    missing = [n for n in parse_server_table(source, folder.servers, table) if n not in servers]
    return content.encode(copy_servers(text, path, table, source, missing))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror or exc}.") from exc


# --- applying -------------------------------------------------------------------------------------


def apply_install(plan: Plan) -> None:
    """Write what the plan says.

    Raises:
        ConfigError: The client's file was changed in the meantime or cannot be written; it is left
            as it is.
    """
    folder = plan.folder
    with exclusive_lock(folder.path.parent):
        earlier = read_install_record(folder)
        if not plan.is_change and earlier is not None:
            return  # already installed, exactly like this
        require_unchanged(plan.content)
        settings = _settings_digest(plan, earlier)
        with _restored_on_failure(folder):
            if plan.settings is not None:
                write_file(folder.settings, plan.settings)
            if not plan.changes_file and earlier is not None:
                record = replace(earlier, mode=plan.mode, settings=settings)
                write_file(folder.record, record.to_json().encode())
                return
            if plan.servers is not None:
                write_file(folder.servers, plan.servers)
            if plan.before is not None:
                write_file(folder.backup, plan.before)
            else:
                folder.backup.unlink(missing_ok=True)
            # Only folders that we create are removed again, the innermost first.
            missing = [str(parent) for parent in plan.path.parents if not parent.exists()]
            created = (*(earlier.made if earlier else ()), *missing)
            record = InstallRecord(
                client=plan.client.key,
                file=str(plan.path),
                mode=plan.mode,
                before=digest_bytes(plan.before),
                after=digest_bytes(plan.after),
                kept=digest_bytes(plan.servers),
                settings=settings,
                entry=plan.entry,
                made=tuple(dict.fromkeys(created)),
            )
            write_file(folder.record, record.to_json().encode())
            if plan.after is not None:
                replace_unchanged(plan.content, plan.after)


def _settings_digest(plan: Plan, earlier: InstallRecord | None) -> str | None:
    """The digest that our settings have while nobody else has changed them."""
    now = digest_bytes(_read(plan.folder.settings))
    if now is not None and (earlier is None or now != earlier.settings):
        # The user's own settings are in there: no digest will match, and uninstalling leaves them.
        return earlier.settings if earlier else None
    return digest_bytes(plan.settings) if plan.settings is not None else now


@contextmanager
def _restored_on_failure(folder: InstallFolder) -> Generator[None]:
    """Restore our own files if the client's file cannot be written."""
    paths = (folder.servers, folder.settings, folder.backup, folder.record)
    before = {path: path.read_bytes() if path.exists() else None for path in paths}
    try:
        yield
    except BaseException:
        for path, data in before.items():
            if data is None:
                path.unlink(missing_ok=True)
            else:
                write_file(path, data)
        raise


def apply_uninstall(plan: Plan) -> None:
    """Restore the client's file and remove our own files; an edited `pegboard.toml` stays."""
    folder = plan.folder
    with exclusive_lock(folder.path.parent):
        require_unchanged(plan.content)
        record = read_install_record(folder)
        if plan.after is None:
            plan.path.unlink(missing_ok=True)
            for created in record.made if record else ():
                with suppress(OSError):  # not empty: something else is stored there by now
                    Path(created).rmdir()
        elif plan.changes_file:
            replace_unchanged(plan.content, plan.after)
        obsolete = [folder.servers, folder.backup, folder.record]
        settings = _read(folder.settings)
        if record and settings is not None and digest_bytes(settings) == record.settings:
            obsolete.append(folder.settings)
        for path in obsolete:
            path.unlink(missing_ok=True)
        for empty in (folder.servers.parent, folder.path):
            with suppress(OSError):
                empty.rmdir()


_LONG = 8
"""Characters from which a value is unlikely to be part of anything else in the file."""
_REFERENCES = re.compile(r"(?:(?:Bearer|Basic|token)\s+)?(?:\$?\{[^{}]*\}|\$\w+)+", re.IGNORECASE)
_DEFAULT = ":-"


def redacted_diff(path: Path, before: bytes | None, after: bytes | None) -> str:
    """The change as a unified diff without secrets."""
    old, new = (_redact(FileContent(path, data).text, path) for data in (before, after))
    name = str(path)
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), name, name, lineterm="")
    return "\n".join(lines)


def _redact(text: str, path: Path) -> str:
    if not text.strip():
        return text
    redactor = Redactor()
    for key, value, redacted in _secrets(parse_document(text, path).value, redactor):
        text = _replace_value(text, key, value, redacted)
    return redactor.message(text)  # comments may have keys of well-known forms too


def _secrets(value: Json, redactor: Redactor, key: str = "") -> Iterator[tuple[str, str, str]]:
    """Key, value and redacted value of every text that is or contains a secret."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _secrets(part, redactor, str(name))
    elif isinstance(value, list):
        for part in value:
            yield from _secrets(part, redactor, key)
    elif isinstance(value, str) and value:
        # A reference is not a secret, but the default inside one may be.
        if _REFERENCES.fullmatch(value.strip()) and _DEFAULT not in value:
            return
        redacted = REDACTED if is_secret(key) else str(redactor.text(value))
        if redacted != value:
            yield key, value, redacted


def _replace_value(text: str, key: str, value: str, redacted: str) -> str:
    literals = [json.dumps(value), json.dumps(value, ensure_ascii=False), f"'{value}'"]
    for literal in literals:
        new = literal[0] + json.dumps(redacted, ensure_ascii=False)[1:-1] + literal[-1]
        if len(value) < _LONG:  # a short value may be written elsewhere with another meaning
            beside = re.compile(rf"({re.escape(key)}[\"']?\s*[:=]\s*){re.escape(literal)}")
            text = beside.sub(lambda found, new=new: found[1] + new, text)
        else:
            text = text.replace(literal, new)
    if len(value) >= _LONG:
        return text.replace(value, redacted)  # unquoted, in several places, or in a comment
    bare = re.compile(
        rf"^(\s*{re.escape(key)}\s*:\s*){re.escape(value)}(?=\s*(?:#|$))", re.MULTILINE
    )
    return bare.sub(lambda found: found[1] + redacted, text)
