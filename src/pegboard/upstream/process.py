"""A server as a child process: its messages in, ours out, and a certain end.

The process leads its own group, so that what it starts ends with it: first its stdin is closed
and it may leave by itself, then the group is terminated, then killed. If the gateway itself is
killed, `watchdog` ends the group. The SDK's dispatcher drives
the streams directly, without a task or a queue between: one relayed call costs one write and one
read.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from subprocess import PIPE

import anyio
import anyio.lowlevel
from anyio.abc import Process
from mcp.client.stdio import get_default_environment

from pegboard.upstream.exchanges import LineExchange
from pegboard.upstream.messages import MessageReader, MessageWriter
from pegboard.upstream.size_limit import error_instead
from pegboard.upstream.spec import UpstreamSpec
from pegboard.upstream.stderr import BoundedLog, ProcessLog
from pegboard.upstream.watchdog import unwatch, watch

LEAVE_TIME = 2.0
"""Seconds a server has to end by itself after its stdin is closed."""
TERMINATE_TIME = 2.0
"""Seconds its group has after SIGTERM, before SIGKILL."""
_CLOSE_TIME = 1.0
_POLL = 0.01
_GONE = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


class CannotStart(Exception):
    """The process could not be made; the message says why."""


class ChildProcess:
    """A running server: both ends of its conversation, what it printed, and how it ended."""

    def __init__(self, process: Process, log: BoundedLog) -> None:
        self.log = log
        self.spoke = False
        self.strays = 0
        self.first_stray: str | None = None
        self._process = process
        self._silent = anyio.Event()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """`None` while it runs; negative when a signal ended it."""
        return self._process.returncode

    def spoken(self) -> None:
        """Note that it speaks the protocol."""
        self.spoke = True

    def stray(self, line: bytes) -> None:
        """Note a line on stdout that is not protocol: a greeting there must not break a server."""
        text = line[:200].decode(errors="replace").strip()
        if not text:
            return
        self.strays += 1
        self.first_stray = self.first_stray or text
        self.log.note(f"on stdout: {text}")

    async def copy_stderr(self) -> None:
        """Copy what it prints on stderr to the log until it closes it."""
        stderr = self._process.stderr
        with suppress(*_GONE):
            while stderr is not None:
                self.log.write(await stderr.receive())
        self._silent.set()

    async def last_words(self) -> None:
        """Wait a moment for its exit code and the end of its stderr: its stdout closes first."""
        await self._ended_within(0.5)
        with anyio.move_on_after(0.2):
            await self._silent.wait()

    async def stop(self) -> None:
        """End it and everything in its group. Bounded in time."""
        if self._process.stdin is not None:
            with suppress(*_GONE):
                await self._process.stdin.aclose()
        # One that never spoke the protocol does not listen to it either.
        await self._ended_within(LEAVE_TIME if self.spoke else 0)
        await self._end_group()
        with suppress(*_GONE), anyio.move_on_after(_CLOSE_TIME):
            await self._process.aclose()

    async def _end_group(self) -> None:
        if sys.platform == "win32":  # no process groups there
            with suppress(OSError):
                self._process.kill()
            return
        # The group outlives its leader: signal it even when the leader has left.
        if _signal_group(self.pid, signal.SIGTERM):
            with anyio.move_on_after(TERMINATE_TIME):
                while _signal_group(self.pid, 0):  # noqa: ASYNC110 - no event for a group's end
                    await anyio.sleep(_POLL)
                return
            _signal_group(self.pid, signal.SIGKILL)
            await self._ended_within(TERMINATE_TIME)

    async def _ended_within(self, seconds: float) -> None:
        """Wait for the exit code: `wait()` would wait for inherited pipes to close as well."""
        with anyio.move_on_after(seconds):
            while self._process.returncode is None:  # noqa: ASYNC110 - see above
                await anyio.sleep(_POLL)


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS answers so for zombies
        return number == 0
    return True


@asynccontextmanager
async def run_process(
    spec: UpstreamSpec, log: BoundedLog
) -> AsyncGenerator[tuple[MessageReader, MessageWriter, LineExchange, ChildProcess]]:
    """Start a server and stop it again, whatever happens in between.

    Raises:
        CannotStart: it cannot be started.
    """
    # Cancelled between the fork and its result, a start would leave a process that nobody ends.
    process: Process | None = None
    with anyio.CancelScope(shield=True):
        process = await _start(spec)
    if process is None:
        raise CannotStart("cannot be started")
    child = ChildProcess(process, ProcessLog(log))
    watch(child.pid)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(child.copy_stderr)
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()
            if process.stdout is None or process.stdin is None:
                raise CannotStart("has no stdin or stdout")
            writer = MessageWriter(process.stdin)
            exchange = LineExchange(writer)
            limit = spec.max_message_bytes
            reader = MessageReader(
                process.stdout, child, exchange, limit=limit, replacement=error_instead(limit)
            )
            yield reader, writer, exchange, child
        finally:
            # A cancelled caller must not leave a process behind; every wait inside is bounded.
            with anyio.CancelScope(shield=True):
                await child.stop()
            unwatch(child.pid)
            tasks.cancel_scope.cancel()
            child.log.close()


async def _start(spec: UpstreamSpec) -> Process:
    env = {**get_default_environment(), **spec.env}
    command = _executable(spec, env)
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
        raise CannotStart(f"cannot be started: {command}: {exc}") from exc


def _executable(spec: UpstreamSpec, env: Mapping[str, str]) -> str:
    """The command's full path: found on the server's own PATH, `.cmd` and all on Windows."""
    command = spec.command or ""
    found = shutil.which(command, path=env.get("PATH"))
    if found is None:
        raise CannotStart(
            f"cannot be started: there is no command {command!r} on its PATH; install it, or mend "
            f"`command` of this server"
        )
    return found
