"""A client's file as it is, byte for byte; and writing one so that it is whole or untouched."""

from __future__ import annotations

import codecs
import hashlib
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pegboard.config.documents import located_error
from pegboard.private_files import FILE_MODE, lock_file, replace_file


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds; `data` is `None` when there is no file."""

    path: Path
    data: bytes | None

    @property
    def text(self) -> str:
        """The text without the byte order mark that editors on Windows put first."""
        return (self.data or b"").removeprefix(codecs.BOM_UTF8).decode("utf-8")

    def encoded(self, text: str) -> bytes:
        """Another text as this file would hold it."""
        has_mark = (self.data or b"").startswith(codecs.BOM_UTF8)
        return (codecs.BOM_UTF8 if has_mark else b"") + text.encode("utf-8")


def digest(data: bytes | None) -> str | None:
    """What tells whether a file is as it was; `None` for no file."""
    return None if data is None else hashlib.sha256(data).hexdigest()


def read(path: Path) -> Content:
    """What the file holds, if it may be changed.

    Raises:
        ConfigError: It is a link, read-only, or not UTF-8 text; says what to do.
    """
    if path.is_symlink():
        target = Path(os.path.realpath(path))
        raise located_error(
            path, f"this is a link to {target}: to change that file, name it with --file."
        )
    try:
        mode = path.stat().st_mode
        data = path.read_bytes()
    except FileNotFoundError:
        return Content(path, None)
    except OSError as exc:
        raise located_error(path, f"it cannot be read: {exc.strerror or exc}.") from exc
    if not stat.S_ISREG(mode):
        raise located_error(path, "this is not a file.")
    if not mode & stat.S_IWUSR or not os.access(path, os.W_OK):
        raise located_error(path, "it is read-only: make it writable first.")
    content = Content(path, data)
    try:
        content.text  # noqa: B018
    except UnicodeDecodeError as exc:
        raise located_error(
            path, f"this is not UTF-8 text ({exc.reason} at byte {exc.start})."
        ) from exc
    return content


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Be the only process that changes the files of clients; the system unlocks if we die."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with lock_file(folder / ".lock"):
        yield


def replace_expected(content: Content, data: bytes) -> None:
    """Put data in place of a client's file, unless it is no longer as it was read.

    The client does not know of our lock, so the file is compared last of all, when nothing is left
    to do but the renaming.

    Raises:
        ConfigError: Somebody changed it meanwhile, or it cannot be written; then it is as it was.
    """
    write(content.path, data, check=lambda: refuse_changed(content))


def refuse_changed(content: Content) -> None:
    """Return when a file is still as it was read.

    Raises:
        ConfigError: Somebody changed it meanwhile.
    """
    if read(content.path).data != content.data:
        raise located_error(content.path, "somebody changed it meanwhile: run the command again.")


def write(
    path: Path,
    data: bytes,
    *,
    mode: int = FILE_MODE,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Put data in place of a file at once; the file keeps its mode, a new one gets `mode`.

    `check` is called right before, and may raise.

    Raises:
        ConfigError: It cannot be written; then the file is as it was.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with replace_file(path, mode=_mode_of(path, mode), check=check) as file:
            file.write(data)
    except OSError as exc:
        raise located_error(path, f"it cannot be written: {exc.strerror or exc}.") from exc


def _mode_of(path: Path, mode: int) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return mode
