"""What Pegboard cannot do, or has not been tested to do, on an operating system.

Linux is tested with every change. On other systems the code takes other ways where it has to, and
says so here instead of silently doing less.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable

_WINDOWS = (
    "Servers that start other programs may keep running when Pegboard is killed: there are no "
    "process groups.",
    "A gateway is stopped at once, without waiting for calls in progress, and there is no SIGHUP: "
    "a changed configuration file is still read again.",
    "The files of Pegboard have the permissions of their folder: only the user's own folders are "
    "private.",
    "The answers to a client's first requests are not sent ahead of the imports: each start takes "
    "as long as the first.",
)
_MACOS = ("Worker processes share one socket instead of having one each.",)


def find_platform_limits(
    system: str, find_program: Callable[[str], str | None] = shutil.which
) -> list[str]:
    """The limits on a system, as `sys.platform` names it."""
    if system == "linux":
        if find_program("bwrap") is None:
            return [
                "bubblewrap (bwrap) is not installed: programs of the code mode run in a worker "
                'process that is not confined further. `confine = "required"` refuses that.'
            ]
        return []
    name = {"win32": "Windows", "darwin": "macOS"}.get(system, system)
    untested = f"Pegboard is tested on Linux. On {name} it is expected to work, but not tested."
    more = {"win32": _WINDOWS, "darwin": _MACOS}.get(system, ())
    confined = "There is no bubblewrap: programs of the code mode are not confined further."
    return [untested, *more, confined]
