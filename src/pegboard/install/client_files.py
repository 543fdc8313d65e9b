"""Files that an installation reads and writes: the client's own, and our folder beside it.

A client's file is handled byte for byte, and is either replaced as a whole or left untouched. For
every client's file there is one folder of ours, so that the installation can be undone:

    pegboard.toml    the configuration that the client's entry serves; users may add to it
    <servers>        the servers that were moved, as they were written, readable by the owner alone
    before           the client's file as it was
    installed.json   digests of what was written, to detect changes that were made since
"""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pegboard.config.documents import located_error
from pegboard.core.json import JsonObject
from pegboard.errors import ConfigError
from pegboard.install.clients import Client, Machine
from pegboard.private_files import FILE_MODE, lock_file, replace_file

VERSION = 1
"""The format of `installed.json`."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """The bytes of a file; `data` is `None` when the file does not exist."""

    path: Path
    data: bytes | None

    @property
    def text(self) -> str:
        """The text without the byte order mark that editors on Windows put first."""
        return (self.data or b"").removeprefix(codecs.BOM_UTF8).decode("utf-8")

    def encode(self, text: str) -> bytes:
        """Another text in this file's encoding: with a byte order mark if the file has one."""
        has_mark = (self.data or b"").startswith(codecs.BOM_UTF8)
        return (codecs.BOM_UTF8 if has_mark else b"") + text.encode("utf-8")


def digest_bytes(data: bytes | None) -> str | None:
    """The SHA-256 of a file's content; `None` when the file does not exist."""
    return None if data is None else hashlib.sha256(data).hexdigest()


# --- the client's file ----------------------------------------------------------------------------


def read_client_file(path: Path) -> FileContent:
    """Read a client's file that is about to be changed.

    Raises:
        ConfigError: It is a symbolic link, read-only, or not UTF-8 text; the message says what to
            do.
    """
    # Replacing a link would leave its target, often a file in a dotfiles repository, unchanged.
    if path.is_symlink():
        target = Path(os.path.realpath(path))
        raise located_error(
            path, f"this is a symbolic link to {target}: to change that file, pass it with --file."
        )
    try:
        mode = path.stat().st_mode
        data = path.read_bytes()
    except FileNotFoundError:
        return FileContent(path, None)
    except OSError as exc:
        raise located_error(path, f"it cannot be read: {exc.strerror or exc}.") from exc
    if not stat.S_ISREG(mode):
        raise located_error(path, "this is not a regular file.")
    # Both: root may write everything, but a read-only file says that it should not be changed.
    if not mode & stat.S_IWUSR or not os.access(path, os.W_OK):
        raise located_error(path, "it is read-only: make it writable first.")
    content = FileContent(path, data)
    try:
        content.text  # noqa: B018
    except UnicodeDecodeError as exc:
        raise located_error(
            path, f"this is not UTF-8 text ({exc.reason} at byte {exc.start})."
        ) from exc
    return content


def replace_unchanged(content: FileContent, data: bytes) -> None:
    """Replace a client's file, unless it has changed since it was read.

    The client does not take our lock, so the file is compared at the last moment, when only the
    rename is left to do.

    Raises:
        ConfigError: It has changed or cannot be written; it is left as it is.
    """
    write_file(content.path, data, check=lambda: require_unchanged(content))


def require_unchanged(content: FileContent) -> None:
    """Check that a file is still as it was read.

    Raises:
        ConfigError: It has changed since.
    """
    is_link = content.path.is_symlink()
    # Reading is the last step: a client that writes after it, before the rename, loses its change.
    try:
        data = content.path.read_bytes()
    except FileNotFoundError:
        data = None
    except OSError as exc:
        raise located_error(content.path, f"it cannot be read: {exc.strerror or exc}.") from exc
    if is_link or data != content.data:
        raise located_error(content.path, "it was changed in the meantime: run the command again.")


@contextmanager
def exclusive_lock(folder: Path) -> Generator[None]:
    """Keep other Pegboard processes from changing clients' files at the same time."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with lock_file(folder / ".lock"):
        yield


def write_file(path: Path, data: bytes, *, check: Callable[[], None] = lambda: None) -> None:
    """Replace a file atomically; it keeps its mode, and a new one is private.

    `check` is called just before the rename, and may raise.

    Raises:
        ConfigError: It cannot be written; it is left as it is.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else FILE_MODE
        with replace_file(path, mode=mode, check=check) as file:
            file.write(data)
    except OSError as exc:
        raise located_error(path, f"it cannot be written: {exc.strerror or exc}.") from exc


# --- our folder -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InstallRecord:
    """What was done to a client's file: the digests of what was written, and how to undo it."""

    client: str
    file: str
    mode: str
    before: str | None
    after: str | None
    kept: str | None
    settings: str | None
    entry: JsonObject = field(repr=False)
    made: tuple[str, ...] = ()
    """Folders that were created for the client's file."""
    version: int = VERSION

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True)
class InstallFolder:
    """The folder that belongs to one installation."""

    path: Path
    servers: Path
    """The servers that were moved out of the client's file."""

    @property
    def record(self) -> Path:
        return self.path / "installed.json"

    @property
    def backup(self) -> Path:
        return self.path / "before"

    @property
    def settings(self) -> Path:
        """The configuration that the client's entry serves."""
        return self.path / "pegboard.toml"


def install_folder(client: Client, machine: Machine, path: Path) -> InstallFolder:
    """The folder for the client's file at `path`."""
    # A file in an unusual place, such as a project's, gets a folder of its own.
    is_usual = path in machine.client_files(client)
    suffix = "" if is_usual else f"-{(digest_bytes(str(path.absolute()).encode()) or '')[:8]}"
    folder = machine.install_root / f"{client.key}{suffix}"
    return InstallFolder(folder, folder / (client.saved_as or path.name))


def read_install_record(folder: InstallFolder) -> InstallRecord | None:
    """What an earlier installation did; `None` if there was none.

    Raises:
        ConfigError: It cannot be read, or another version of Pegboard wrote it.
    """
    try:
        value: dict[str, Any] = json.loads(folder.record.read_text("utf-8"))
        # A record that is misread could restore the wrong content.
        if value.get("version") != VERSION:
            raise located_error(
                folder.record, "another version of Pegboard wrote this: use that one."
            )
        value["made"] = tuple(value["made"])
        return InstallRecord(**value)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as exc:
        raise located_error(
            folder.record, f"this is damaged; the client's original file is in {folder.backup}."
        ) from exc


def list_install_records(machine: Machine) -> list[InstallRecord]:
    """The records of all installations on this machine; unreadable ones are left out."""
    records: list[InstallRecord] = []
    for path in sorted(machine.install_root.glob("*/installed.json")):
        # The record alone is read, so the name of the file of servers does not matter here.
        with suppress(ConfigError):
            if record := read_install_record(InstallFolder(path.parent, path.parent)):
                records.append(record)
    return records
