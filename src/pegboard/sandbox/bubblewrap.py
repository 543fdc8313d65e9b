"""Confines the worker process with bubblewrap: no network, no files, no privileges.

The interpreter gives programs no access to the system. This is the second wall, for the day that
the interpreter has a bug.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")


def find_bubblewrap() -> str | None:
    """The path of `bwrap`, if it is installed."""
    return shutil.which("bwrap")


def write_wrapper(folder: Path, worker: str, bwrap: str) -> Path:
    """An executable that starts the worker confined; the pool takes it for the worker itself."""
    command = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    command += ["--clearenv", "--ro-bind", worker, "/worker"]
    for library in _LIBRARIES:
        command += ["--ro-bind-try", library, library]
    command += ["--proc", "/proc", "--dev", "/dev", "/worker"]
    path = folder / "confined-worker"
    path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    path.chmod(0o700)
    return path
