"""Files of ours: where they are, who can read them, and how they are written.

Logs, catalogs, the audit log and journals are for their owner alone, so they are created with the
modes below. A file that other processes may read at any moment is replaced as a whole: the new
content goes into a temporary file beside it, which then takes its name.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

FILE_MODE = 0o600
FOLDER_MODE = 0o700
TEMPORARY_SUFFIX = ".tmp"
_OTHERS = 0o077


def home_folder(environ: Mapping[str, str]) -> Path:
    """Where Pegboard stores what it can make again: `PEGBOARD_HOME`, or the user's cache."""
    if home := environ.get("PEGBOARD_HOME"):
        return Path(home).expanduser()
    from platformdirs import user_cache_path  # here, because it is slow to import

    return user_cache_path("pegboard", appauthor=False)


def make_private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing; close one that others can read.

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
        # `mkdir(parents=True)` would give the folders above the default mode.
        parent.mkdir(mode=FOLDER_MODE, exist_ok=True)


def open_private(path: Path, flags: int = os.O_WRONLY | os.O_TRUNC) -> int:
    """Open a file for writing, made if it is missing; returns the handle.

    Raises:
        OSError: It cannot be opened.
    """
    handle = os.open(path, flags | os.O_CREAT, FILE_MODE)
    _restrict(path, FILE_MODE)
    return handle


@contextmanager
def replace_file(
    path: Path,
    *,
    mode: int = FILE_MODE,
    is_durable: bool = True,
    check: Callable[[], None] = lambda: None,
) -> Generator[IO[bytes]]:
    """Write a file that takes the place of `path` once the block ends without an error.

    Readers see the old file or the new one, never a part. After an error the old one is untouched.

    Args:
        path: The file; its folder must exist.
        mode: The mode of the new file.
        is_durable: Whether it must survive a power cut; false saves two waits for the disk.
        check: Called right before the new file takes the name; what it raises leaves the old one.

    Raises:
        OSError: It cannot be written.
    """
    import tempfile  # here, because it is slow to import, and early answers need the home folder

    handle, name = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name}-", suffix=TEMPORARY_SUFFIX
    )
    temporary = Path(name)
    try:
        with open(handle, "wb") as file:
            yield file
            if is_durable:
                # Otherwise the name could survive a power cut and the content not.
                file.flush()
                os.fsync(file.fileno())
        if mode != FILE_MODE:
            temporary.chmod(mode)
        check()
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if is_durable and os.name == "posix":
        # The renaming itself is an entry of the folder, which has to reach the disk too.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def lock_file(path: Path) -> Generator[None]:
    """Hold an exclusive lock on this file, which is created if it is missing.

    The operating system frees the lock of a process that dies in the block.

    Raises:
        OSError: It cannot be opened.
    """
    with open(path, "a+b") as file:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)  # Windows locks bytes from here on, and all have to lock the same one
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
            try:
                yield
            finally:
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)  # closing the file frees it
            yield


@contextmanager
def try_lock_file(path: Path) -> Generator[bool]:
    """Like `lock_file`, without waiting: yields whether this process got the lock.

    Raises:
        OSError: It cannot be opened, or its file system has no locks.
    """
    with open(open_private(path, os.O_RDWR), "r+b") as file:
        try:
            if sys.platform == "win32":
                import msvcrt

                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # Windows reports the second
            yield False
        else:
            yield True  # closing the file frees the lock


@contextmanager
def suppress_missing_locks() -> Generator[None]:
    """Continue without a lock if the file system does not support locks, as on network drives."""
    try:
        yield
    except OSError as exc:
        if exc.errno not in _NO_LOCKS:
            raise


_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


def is_open_to_others(path: Path) -> bool:
    """Whether other users have rights on a file.

    Raises:
        OSError: There is no such file.
    """
    return os.name == "posix" and bool(path.stat().st_mode & _OTHERS)


def restrict_file(path: Path) -> None:
    """Make an existing file private, if it is ours."""
    _restrict(path, FILE_MODE)


def _restrict(path: Path, mode: int) -> None:
    """Take the rights of others away, where there are any and the file is ours."""
    if os.name != "posix":
        return
    status = path.stat()
    # Somebody else's file, such as a shared log that root made, is left alone.
    if status.st_mode & _OTHERS and status.st_uid == os.geteuid():
        path.chmod(mode)
