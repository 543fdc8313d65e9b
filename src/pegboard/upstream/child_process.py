"""A server as a child process: messages in both directions, and guaranteed termination.

The process leads its own group, so that processes that it starts end with it: first its stdin is
closed and it may exit by itself, then the group is terminated, then killed.

If the gateway itself is killed, the watchdog ends the groups. It is a shell that runs beside the
gateway for as long as servers do. Through a pipe it learns of each process group that starts and
ends. When the gateway is gone, for any reason, the pipe closes, and the shell terminates the
groups that are left, then kills them. Linux can signal a process whose parent died
(`PR_SET_PDEATHSIG`), but that reaches the process alone: a server behind `npx` or `uvx` is a child
of it. And it would have to be set between fork and exec, where a program with threads cannot safely
run code. Windows has no process groups; there a warning is logged once that servers may be left
behind.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from subprocess import PIPE
from threading import Lock

import anyio
import anyio.lowlevel
from anyio.abc import Process
from mcp.client.stdio import get_default_environment

from pegboard.upstream.channels import StdioChannel
from pegboard.upstream.server_log import BoundedLog, ProcessLog
from pegboard.upstream.spec import UpstreamSpec
from pegboard.wire.message_filters import build_oversize_replacement, replace_unreadable
from pegboard.wire.message_streams import PIPE_CLOSED_ERRORS, MessageReader, MessageWriter

EXIT_TIMEOUT = 2.0
"""Seconds a server has to exit by itself after its stdin is closed."""
TERMINATE_TIMEOUT = 2.0
"""Seconds its group has after SIGTERM, before SIGKILL."""
_CLOSE_TIMEOUT = 1.0
_POLL_INTERVAL = 0.01
_WATCHDOG_EXIT_TIMEOUT = 1.0
_WATCHDOG_SCRIPT = """
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
_log = logging.getLogger(__name__)


class ProcessStartError(Exception):
    """The process could not be started; the message says why."""


class ChildProcess:
    """A running server: its output outside the protocol, and how it ended."""

    def __init__(self, process: Process, log: BoundedLog) -> None:
        self.log = log
        self.first_stray_line: str | None = None
        """The first line on stdout that was not a protocol message."""
        self._process = process
        self._speaks_protocol = False
        self._stderr_closed = anyio.Event()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """`None` while it runs; negative when a signal ended it."""
        return self._process.returncode

    # What it prints.

    def on_message(self) -> None:
        """Note that it speaks the protocol."""
        self._speaks_protocol = True

    def on_stray_line(self, line: bytes) -> None:
        """Log a line on stdout that is not a protocol message, such as a greeting, and go on."""
        text = line[:200].decode(errors="replace").strip()
        if text:
            self.first_stray_line = self.first_stray_line or text
            self.log.note(f"on stdout: {text}")

    async def copy_stderr(self) -> None:
        """Copy what it prints on stderr to the log until it closes it."""
        stderr = self._process.stderr
        with suppress(*PIPE_CLOSED_ERRORS):
            while stderr is not None:
                self.log.write(await stderr.receive())
        self._stderr_closed.set()

    async def wait_for_last_output(self) -> None:
        """Wait a moment for its exit code and the end of its stderr: its stdout closes first."""
        await self._wait_for_exit(0.5)
        with anyio.move_on_after(0.2):
            await self._stderr_closed.wait()

    # Its end.

    async def stop(self) -> None:
        """End it and everything in its group. Bounded in time."""
        if self._process.stdin is not None:
            with suppress(*PIPE_CLOSED_ERRORS):
                await self._process.stdin.aclose()
        # A process that never spoke the protocol may not exit when its stdin is closed.
        await self._wait_for_exit(EXIT_TIMEOUT if self._speaks_protocol else 0)
        await self._end_group()
        with suppress(*PIPE_CLOSED_ERRORS), anyio.move_on_after(_CLOSE_TIMEOUT):
            await self._process.aclose()

    async def _end_group(self) -> None:
        if sys.platform == "win32":  # no process groups there
            with suppress(OSError):
                self._process.kill()
            return
        # The group outlives its leader: signal it even when the leader has exited.
        if _signal_group(self.pid, signal.SIGTERM):
            with anyio.move_on_after(TERMINATE_TIMEOUT):
                while _signal_group(self.pid, 0):  # noqa: ASYNC110 - no event for a group's end
                    await anyio.sleep(_POLL_INTERVAL)
                return
            _signal_group(self.pid, signal.SIGKILL)
            await self._wait_for_exit(TERMINATE_TIMEOUT)

    async def _wait_for_exit(self, seconds: float) -> None:
        """Wait for the exit code: `wait()` would wait for inherited pipes to close as well."""
        with anyio.move_on_after(seconds):
            while self._process.returncode is None:  # noqa: ASYNC110 - see above
                await anyio.sleep(_POLL_INTERVAL)


def _signal_group(group: int, number: int) -> bool:
    """Signal a process group; whether it exists. Signal 0 only checks."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS reports zombies this way
        return number == 0
    return True


@asynccontextmanager
async def run_process(
    spec: UpstreamSpec, log: BoundedLog
) -> AsyncGenerator[tuple[MessageReader, MessageWriter, StdioChannel, ChildProcess]]:
    """Start a server and stop it again, whatever happens in between.

    Raises:
        ProcessStartError: It cannot be started.
    """
    # Cancelled between the fork and its result, a start would leave a process that nobody ends.
    process: Process | None = None
    with anyio.CancelScope(shield=True):
        process = await _start_process(spec)
    if process is None:
        raise ProcessStartError("cannot be started")
    child = ChildProcess(process, ProcessLog(log))
    watch_group(child.pid)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(child.copy_stderr)
        try:
            # The start was shielded: if it was canceled meanwhile, this is where that shows.
            await anyio.lowlevel.checkpoint_if_cancelled()
            if process.stdout is None or process.stdin is None:
                raise ProcessStartError("has no stdin or stdout")
            writer = MessageWriter(process.stdin)
            channel = StdioChannel(writer)
            limit = spec.max_message_bytes
            reader = MessageReader(
                process.stdout,
                child,
                channel,
                limit=limit,
                replacement=build_oversize_replacement(limit),
                unreadable=replace_unreadable,
            )
            yield reader, writer, channel, child
        finally:
            # A canceled caller must not leave a process behind; every wait inside is bounded.
            with anyio.CancelScope(shield=True):
                await child.stop()
            unwatch_group(child.pid)
            tasks.cancel_scope.cancel()
            child.log.close()


async def _start_process(spec: UpstreamSpec) -> Process:
    env = {**get_default_environment(), **spec.env}
    # Found on the server's own PATH, not on ours; on Windows this finds `.cmd` files too.
    command = shutil.which(spec.command or "", path=env.get("PATH"))
    if command is None:
        raise ProcessStartError(
            f"cannot be started: there is no command {spec.command!r} on its PATH; install it, or "
            f"correct `command` of this server"
        )
    try:
        return await anyio.open_process(
            [command, *spec.args],
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=env,
            cwd=spec.cwd,
            start_new_session=sys.platform != "win32",
        )
    except (OSError, ValueError) as exc:
        raise ProcessStartError(f"cannot be started: {command}: {exc}") from exc


class Watchdog:
    """The shell, while there are groups to watch; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._groups: set[int] = set()
        self._shell: subprocess.Popen[bytes] | None = None
        self._owner_pid = 0
        self._is_missing = False

    def watch(self, group: int) -> None:
        """Have a process group ended when this process is killed."""
        with self._lock:
            if self._owner_pid != os.getpid():  # a fork must not end its parent's servers
                self._owner_pid, self._shell, self._groups = os.getpid(), None, set()
            self._groups.add(group)
            if not self._send("+", group):
                self._start()

    def unwatch(self, group: int) -> None:
        """Forget a process group that has ended: its number may be given to another."""
        with self._lock:
            self._groups.discard(group)
            was_sent = self._send("-", group)
            if not self._groups:
                self._end()
            elif not was_sent:
                self._start()

    def _send(self, sign: str, group: int) -> bool:
        if self._shell is None or self._shell.stdin is None:
            return False
        try:
            self._shell.stdin.write(f"{sign} {group}\n".encode())
            return True
        except OSError:  # somebody killed it
            self._end()
            return False

    def _start(self) -> None:
        if self._is_missing:
            return
        try:
            if sys.platform == "win32":
                raise OSError("Windows has no process groups")
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _WATCHDOG_SCRIPT],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": "/usr/bin:/bin"},
                # Ctrl-C in a terminal goes to the whole session; this one has to outlive it.
                start_new_session=True,
            )
        except OSError as exc:
            self._is_missing = True
            _log.warning("Servers may be left running if this process is killed: %s.", exc)
            return
        for group in self._groups:
            self._send("+", group)

    def _end(self) -> None:
        shell, self._shell = self._shell, None
        if shell is None or shell.stdin is None:
            return
        with suppress(OSError):
            shell.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            shell.wait(_WATCHDOG_EXIT_TIMEOUT)


_watchdog = Watchdog()
watch_group = _watchdog.watch
unwatch_group = _watchdog.unwatch
