"""Files and folders of ours that only their owner can read: logs, catalogs, audit, journals."""

from __future__ import annotations

import os
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_OTHERS = 0o077


def make_private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing; close one that others can look into.

    Only for folders that are ours alone: the folder above may be anybody's, and stays as it is.

    Raises:
        OSError: It cannot be made.
    """
    make_private_parents(folder)
    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    _restrict(folder, FOLDER_MODE)


def make_private_parents(path: Path) -> None:
    """Make the folders above a path that are missing; existing ones stay as they are."""
    missing = [parent for parent in path.parents if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir(mode=FOLDER_MODE, exist_ok=True)


def open_private(path: Path, flags: int = os.O_WRONLY | os.O_TRUNC) -> int:
    """Open a file for writing, made if it is missing; the handle.

    Raises:
        OSError: It cannot be opened.
    """
    handle = os.open(path, flags | os.O_CREAT, FILE_MODE)
    _restrict(path, FILE_MODE)
    return handle


def _restrict(path: Path, mode: int) -> None:
    """Take the rights of others away, where there are any and the file is ours."""
    if os.name != "posix":
        return
    about = path.stat()
    if about.st_mode & _OTHERS and about.st_uid == os.geteuid():
        path.chmod(mode)
