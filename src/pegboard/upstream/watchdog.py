"""Ends the servers of a gateway that was killed and could not end them itself.

A shell waits beside the gateway for as long as servers run. It is told each process group that
starts and ends, through a pipe. When the gateway is gone, however it went, the pipe closes, and the
shell terminates the groups that are left, then kills them.

Linux can signal a process whose parent died (`PR_SET_PDEATHSIG`), but that reaches the process
alone: a server behind `npx` or `uvx` is a child of it. And it would have to be set between fork and
exec, where a program with threads cannot safely run code.

Windows has no process groups; there a warning says once that servers may be left behind.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from contextlib import suppress
from threading import Lock

_SCRIPT = """
live=
while read -r sign group; do
    case $sign in
    +) live="$live $group" ;;
    -) rest=; for one in $live; do [ "$one" = "$group" ] || rest="$rest $one"; done; live=$rest ;;
    esac
done
[ -n "$live" ] || exit 0
for one in $live; do kill -TERM "-$one"; done
sleep 2
for one in $live; do kill -KILL "-$one"; done
"""
_END_TIME = 1.0
_log = logging.getLogger(__name__)


class Watchdog:
    """The shell, while there is something to watch; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._groups: set[int] = set()
        self._shell: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._is_missing = False

    def watch(self, group: int) -> None:
        """Have a process group ended when this process is killed."""
        with self._lock:
            if self._owner != os.getpid():  # a fork has nothing to do with its parent's servers
                self._owner, self._shell, self._groups = os.getpid(), None, set()
            self._groups.add(group)
            if not self._say("+", group):
                self._start()

    def unwatch(self, group: int) -> None:
        """Forget a process group that has ended: its number may be given to another."""
        with self._lock:
            self._groups.discard(group)
            is_told = self._say("-", group)
            if not self._groups:
                self._end()
            elif not is_told:
                self._start()

    def _say(self, sign: str, group: int) -> bool:
        if self._shell is None or self._shell.stdin is None:
            return False
        try:
            self._shell.stdin.write(f"{sign} {group}\n".encode())
            return True
        except OSError:  # somebody ended it
            self._end()
            return False

    def _start(self) -> None:
        if self._is_missing:
            return
        try:
            if sys.platform == "win32":
                raise OSError("Windows has no process groups")
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": "/usr/bin:/bin"},
                start_new_session=True,
            )
        except OSError as exc:
            self._is_missing = True
            _log.warning("Servers may be left running if this process is killed: %s.", exc)
            return
        for group in self._groups:
            self._say("+", group)

    def _end(self) -> None:
        shell, self._shell = self._shell, None
        if shell is None or shell.stdin is None:
            return
        with suppress(OSError):
            shell.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            shell.wait(_END_TIME)


_watchdog = Watchdog()
watch = _watchdog.watch
unwatch = _watchdog.unwatch
