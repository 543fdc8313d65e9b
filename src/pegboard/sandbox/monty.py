"""Programs in Monty, a Python interpreter in worker processes of its own.

    event loop                      thread                     worker process
    session.start(program)   -->    feed_start           -->   runs up to a call
       Paused(calls)         <--    the calls of one batch <--
    session.resume(answers)  -->    resume               -->   runs on

The synchronous API is used, from threads: with the asynchronous one, a thread of the library wakes
the event loop while the interpreter shuts down, which aborts about half of all short processes.

Calls of a program that awaits are collected until it waits for one: a `gather` of a hundred calls
is one step. A call that `stops` names is not collected: the program stops before it, and can be
saved there and continued in another process.

The interpreter gives programs no access to the system. The worker process also runs inside
bubblewrap, if that is installed, without network, files and privileges: a second line of defense,
in case the interpreter has a bug.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shlex
import shutil
import signal
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from pegboard.core.code.program_tools import without_dots
from pegboard.core.code.steps import (
    SLEEP,
    Answers,
    Completed,
    Later,
    LimitExceeded,
    Paused,
    ProgramCall,
    ProgramFailed,
    ProgramRejected,
    Raised,
    Returned,
    SandboxFailed,
    SandboxLimits,
    Step,
)
from pegboard.core.json import writable
from pegboard.core.options import CodeOptions
from pegboard.errors import Busy
from pegboard.sandbox import require_sandbox
from pegboard.sandbox.prelude import PRELUDE, STUB_PRELUDE, adapt, bind_members, member_alias

if TYPE_CHECKING:
    import pydantic_monty as monty


logger = logging.getLogger(__name__)

T = TypeVar("T")

_LIMIT = re.compile(
    r"(feed time|memory|sleep) limit exceeded|suspension limit \d+ exceeded|characters printed"
    r"|worker exceeded its memory limit"
)
_SLEEP, _ASYNC_SLEEP = "system.sleep", "system.async_sleep"
_PRELUDE_FILE = "<python-input-0>"
_SESSIONS_PER_WORKER = 200
"""Sessions after which a worker is replaced, which bounds the growth of its memory."""
_PRINT_FLOOD = 1_000_000
"""Bytes of printed text at which a program is stopped."""
_CRASH_GRACE = 5.0


class MontySandbox:
    """A pool of workers; none is started before the first program."""

    id = "monty"

    def __init__(self, options: CodeOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._pool: monty.Monty | None = None
        self._close: Callable[[], object] = lambda: None
        self._in_use = 0
        # Threads of our own, which live as long as the sandbox. Bubblewrap ends its worker when the
        # thread that started it ends, and common worker threads end when they have been idle.
        # Twice as many as sessions: ending a session needs a thread while its last step still uses
        # one.
        self._threads = ThreadPoolExecutor(
            2 * (options.workers + options.queue), thread_name_prefix="pegboard-sandbox"
        )

    @property
    def version(self) -> str:
        """Of the interpreter: a saved program can only be continued by the same one."""
        require_sandbox()
        from pydantic_monty import __version__

        return f"monty {__version__}"

    @asynccontextmanager
    async def open(
        self, limits: SandboxLimits, stubs: str | None = None
    ) -> AsyncGenerator[MontySession]:
        """A fresh session in a worker of its own, which waits for a free one.

        Raises:
            Busy: Too many programs are waiting already.
            SandboxFailed: The worker cannot be started.
        """
        require_sandbox()
        with self._lock:
            if self._in_use >= self._options.workers + self._options.queue:
                raise Busy("Too many programs are running already: try again shortly.")
            self._in_use += 1
        try:
            session = MontySession(self, limits, stubs)
            try:
                await session.enter()
                yield session
            finally:
                with anyio.CancelScope(shield=True):
                    await session.leave()
        finally:
            with self._lock:
                self._in_use -= 1

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run a blocking function; a caller that is canceled does not wait for it."""
        return await asyncio.wrap_future(self._threads.submit(work))

    def get_pool(self) -> monty.Monty:
        """The pool; starts it on first use, in the calling thread."""
        with self._lock:
            if self._pool is None:
                self._pool, close = _start_pool(self._options)
                # Not `__del__`: a finalizer also runs before the process ends.
                self._close = weakref.finalize(self, close)
            return self._pool

    def close(self) -> None:
        """End all workers; a later program starts new ones."""
        with self._lock:
            self._pool, close = None, self._close
            self._close = lambda: None
        close()


class MontySession:
    """One program in one worker."""

    def __init__(self, sandbox: MontySandbox, limits: SandboxLimits, stubs: str | None) -> None:
        self._sandbox = sandbox
        self._limits = limits
        self._stubs = stubs
        self._session: monty.MontySession | None = None
        self._snapshot: monty.SyncSnapshot | None = None
        self._worker: int | None = None
        self._turn = threading.Lock()
        self._closing = threading.Event()
        self._names: dict[str, str] = {}
        self._stops: Callable[[str], bool] = lambda name: False
        self._is_async = True
        self._printed: list[str] = []
        self._print_left = limits.print_bytes
        self._flood_left = _PRINT_FLOOD
        self.prints_dropped = 0

    @property
    def printed(self) -> str:
        """What the program has printed, up to its limit."""
        return "".join(self._printed)

    async def enter(self) -> None:
        await self._in_thread(self._enter)

    def _enter(self) -> None:
        import pydantic_monty as monty

        limits = self._limits
        session = self._sandbox.get_pool().checkout(
            script_name="program.py",
            limits={
                "max_feed_duration_secs": limits.compute_time,
                "max_memory": limits.memory_bytes,
                "max_recursion_depth": limits.recursion,
                # Each call suspends once or twice, and so do sleeps and looked-up names.
                "max_suspensions": 10 * limits.max_calls + 1_000,
                "max_total_sleep_secs": limits.sleep_time,
            },
            os_policy={
                "random_start": {"seed": limits.seed},
                "datetime": "system"
                if limits.now is None
                else datetime.fromtimestamp(limits.now, UTC),
            },
            type_check=self._stubs is not None,
            type_check_stubs=None if self._stubs is None else STUB_PRELUDE + self._stubs,
            type_check_format="concise",
        )
        try:
            session.__enter__()
        except (monty.MontyError, TimeoutError, OSError) as exc:
            raise SandboxFailed(f"No worker could be started: {exc}") from exc
        self._session, self._worker = session, session.worker_pid

    async def leave(self) -> None:
        """End the session; a program that still computes is ended with its worker."""
        self._closing.set()
        # The lock is held while a step runs: the program computes, and only this ends it.
        if self._turn.locked() and self._worker is not None:
            with suppress(ProcessLookupError):
                os.kill(self._worker, signal.SIGKILL)

        def leave() -> None:
            with self._turn:
                if self._session is not None:
                    with suppress(Exception):  # its worker may be gone; the pool has noticed
                        self._session.__exit__(None, None, None)

        await self._sandbox.in_thread(leave)

    async def start(
        self, program: str, names: Iterable[str], *, stops: Callable[[str], bool], is_async: bool
    ) -> Step:
        """Check a program, if the session has stubs, and run it up to its first pause.

        Args:
            program: The source.
            names: The tools that it may call.
            stops: Whether to stop in front of a call to this tool.
            is_async: Whether it awaits its calls; otherwise it stops at each.

        Raises:
            ProgramRejected: The checker found something, which may be harmless: `start_unchecked`.
            ProgramFailed, LimitExceeded, SandboxFailed: It ended.
        """
        self._set_names(names)
        self._stops, self._is_async = stops, is_async
        return await self._in_thread(self._start, adapt(program), False)

    async def start_unchecked(self, program: str) -> Step:
        """The same for a program that `start` has just rejected."""
        return await self._in_thread(self._start, adapt(program), True)

    def _start(self, program: str, skip_check: bool) -> Step:
        session = self._session
        assert session is not None
        if not skip_check:
            members = without_dots(self._names.values())
            prelude = f"{PRELUDE}{bind_members(members)}"
            snapshot = session.feed_start(prelude, print_callback=self._print, skip_type_check=True)
            self._run(snapshot)
        return self._run(
            session.feed_start(program, print_callback=self._print, skip_type_check=skip_check)
        )

    async def resume(self, answers: Answers) -> Step:
        """Continue with the answers to calls; see `Paused`."""
        import pydantic_monty as monty

        def resume() -> Step:
            snapshot = self._snapshot
            if isinstance(snapshot, monty.FunctionSnapshot):
                return self._run(snapshot.resume(_to_result(answers[snapshot.call_id])))
            assert isinstance(snapshot, monty.FutureSnapshot)
            waiting = set(snapshot.pending_call_ids)
            results = {i: _to_result(answer) for i, answer in answers.items() if i in waiting}
            return self._run(snapshot.resume(results))

        return await self._in_thread(resume)

    def dump(self) -> bytes:
        """The paused program, to be continued by `load` anywhere."""
        from pydantic_monty import MontyComplete

        assert self._snapshot is not None
        assert not isinstance(self._snapshot, MontyComplete)
        return self._snapshot.dump()

    async def load(
        self, blob: bytes, names: Iterable[str], *, stops: Callable[[str], bool], is_async: bool
    ) -> Step:
        """Load a saved program; the bytes must be our own, because they are not checked."""
        self._set_names(names)
        self._stops, self._is_async = stops, is_async

        def load() -> Step:
            assert self._session is not None
            loaded = self._session.load_snapshot(blob, print_callback=self._print)
            return self._run(loaded, is_loaded=True)

        return await self._in_thread(load)

    def _set_names(self, names: Iterable[str]) -> None:
        """Names as programs look them up, to the names of tools."""
        for name in names:
            owner, dot, member = name.partition(".")
            self._names[member_alias(owner, member) if dot else name] = name

    def _run(self, snapshot: monty.SyncSnapshot, *, is_loaded: bool = False) -> Step:
        """Run on until the program waits, stops or ends; in a thread."""
        import pydantic_monty as monty

        calls: list[ProgramCall] = []
        while True:
            self._snapshot = snapshot
            if isinstance(snapshot, monty.MontyComplete):
                return Completed(snapshot.output, tuple(calls))
            if isinstance(snapshot, monty.NameLookupSnapshot):
                # A tool that is used as a value, such as in a list of functions.
                name = self._names.get(snapshot.variable_name)
                snapshot = (
                    snapshot.resume() if name is None else snapshot.resume(value=_function(name))
                )
            elif isinstance(snapshot, monty.FutureSnapshot):
                return Paused(tuple(calls), tuple(snapshot.pending_call_ids))
            elif snapshot.function_name == _SLEEP and snapshot.is_os_function:
                self._closing.wait(float(snapshot.args[0]))  # the worker limits how long
                snapshot = snapshot.resume({"return_value": None})
            elif snapshot.is_os_function and snapshot.function_name != _ASYNC_SLEEP:
                snapshot = snapshot.resume_auto()  # refuses everything that would reach the system
            else:
                call = self._read_call(snapshot)
                is_sync = not self._is_async and call.name != SLEEP
                # A loaded program is paused at the call that it was saved before.
                if is_loaded or is_sync or self._stops(call.name):
                    return Paused(tuple(calls), stopped_at=call)
                calls.append(call)
                # It gets a future, and continues until it awaits one that is not done yet.
                snapshot = snapshot.resume({"future": ...})
            is_loaded = False

    def _read_call(self, snapshot: monty.FunctionSnapshot) -> ProgramCall:
        name = str(snapshot.function_name)
        if snapshot.is_os_function:
            return ProgramCall(snapshot.call_id, SLEEP, {"seconds": float(snapshot.args[0])})
        return ProgramCall(
            snapshot.call_id,
            self._names.get(name, name),
            snapshot.kwargs,
            positional=snapshot.args,
        )

    def _print(self, stream: str, text: str) -> None:
        self._flood_left -= len(text)
        if self._flood_left < 0:
            raise MemoryError(f"more than {_PRINT_FLOOD} characters printed")
        kept = text.encode()[: self._print_left].decode(errors="ignore")
        self._print_left -= len(kept.encode())
        self._printed.append(kept)
        self.prints_dropped += len(text) - len(kept)

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run a step in a thread; a canceled one is ended by `leave`, with its worker."""

        def run() -> T:
            with self._turn, _translate_errors():
                if self._closing.is_set():
                    raise SandboxFailed("The session has ended.")
                return work(*arguments)

        return await self._sandbox.in_thread(run)


def _start_pool(options: CodeOptions) -> tuple[monty.Monty, Callable[[], object]]:
    """A running pool, and what ends it."""
    bwrap = find_bubblewrap() if options.confine != "off" else None
    if bwrap is None and options.confine == "required":
        raise SandboxFailed("`code.confine` is required, but bubblewrap (bwrap) is not installed.")
    if bwrap is not None:
        try:
            return _open_pool(options, bwrap)
        except (SandboxFailed, OSError) as exc:
            # Some containers have bubblewrap but do not permit what it needs.
            if options.confine == "required":
                raise SandboxFailed(f"Workers cannot be confined: {exc}") from exc
            logger.warning("Workers run without bubblewrap, which does not work here: %s", exc)
    return _open_pool(options, None)


def _open_pool(options: CodeOptions, bwrap: str | None) -> tuple[monty.Monty, Callable[[], object]]:
    import pydantic_monty as monty

    with ExitStack() as stack:
        wrapper: Path | None = None
        if bwrap is not None:
            # The executable of the worker, as the package itself would find it.
            beside = Path(sys.executable).with_name("monty")
            found = str(beside) if beside.exists() else shutil.which("monty")
            if found is None:
                raise SandboxFailed("The executable `monty` of pydantic-monty-runtime is missing.")
            worker = str(Path(found).resolve())
            folder = stack.enter_context(TemporaryDirectory(prefix="pegboard-sandbox-"))
            wrapper = write_wrapper(Path(folder), worker, bwrap)
        pool = monty.Monty(
            binary_path=wrapper,
            min_processes=1,
            max_processes=options.workers,
            checkout_timeout=options.total_time,
            # The worker enforces these limits itself; this is for one that does not answer at all.
            request_timeout=options.compute_time + options.sleep_time + _CRASH_GRACE,
            max_checkouts_per_worker=_SESSIONS_PER_WORKER,
        )
        try:
            stack.enter_context(pool)
            # Workers start on demand, so only a first run shows whether bubblewrap works.
            with pool.checkout() as session:
                session.feed_run("None")
        except monty.MontyError as exc:
            raise SandboxFailed(str(exc)) from exc
        return pool, stack.pop_all().close


@contextmanager
def _translate_errors() -> Generator[None]:
    import pydantic_monty as monty

    try:
        yield
    except monty.MontyTypingError as exc:
        raise ProgramRejected(exc.display()) from exc
    except monty.MontyCrashedError as exc:
        if exc.timed_out:
            raise LimitExceeded("its worker did not answer in time") from exc
        raise SandboxFailed("The worker of this program died.") from exc
    except (monty.MontyRuntimeError, monty.MontySyntaxError) as exc:
        error, _, message = exc.display("type-msg").partition(": ")
        if error != "SyntaxError" and (limit := _LIMIT.search(message)):
            raise LimitExceeded(limit[0]) from exc
        own = [frame.line for frame in exc.traceback() if frame.filename != _PRELUDE_FILE]
        raise ProgramFailed(error, message, own[-1] if own else None) from exc
    except monty.MontyError as exc:
        raise SandboxFailed(str(exc)) from exc


def _to_result(answer: Returned | Raised | Later) -> Any:
    match answer:
        case Returned(value):
            return writable({"return_value": value})
        case Raised(kind, message):
            return writable({"exc_type": kind, "message": message})
        case Later():
            return {"future": ...}


def _function(name: str) -> Callable[..., None]:
    """A function for the sandbox to hold; it is never called here, calls come as snapshots."""

    def tool(**arguments: Any) -> None: ...

    tool.__name__ = tool.__qualname__ = name
    return tool


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
