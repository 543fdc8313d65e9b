"""Expensive pure functions, run in a worker process where a deadline can stop them.

A thread cannot be stopped, and one that computes holds the interpreter lock, so whatever depends on
input that a stranger wrote (validation of large arguments, JMESPath, regular expressions over large
results) would block every other client. Here it blocks a process with a low priority:

    event loop ──> thread that waits ──pickle──> worker process
                                     <─pickle──
    deadline ──kill──────────────────────────────^

Workers start when they are first needed, are reused, and exit by themselves once they are idle or
their parent is gone. Functions and arguments must be picklable; only our own code runs there.
"""

from __future__ import annotations

import atexit
import io
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, ParamSpec, TypeVar

import anyio
from anyio import to_thread
from anyio.lowlevel import RunVar

from pegboard.errors import Busy, PegboardError

P = ParamSpec("P")
T = TypeVar("T")

DEADLINE = 5.0
"""Seconds that one function may run."""
START_TIMEOUT = 20.0
"""Seconds for a worker process to start, on a machine with much else to do."""
WAIT_TIMEOUT = 10.0
"""Seconds to wait for a free worker."""
IDLE_TIME = 60.0
"""Seconds after which a worker without work exits."""
MAX_WORKERS = max(2, min(4, os.cpu_count() or 2))
MAX_MEMORY = 2 << 30
"""Bytes of address space that a worker may have."""
_NICENESS = 5
_LENGTH = 8

_idle: list[_Worker] = []
_all: set[_Worker] = set()
_guard = threading.Lock()
_places: RunVar[anyio.CapacityLimiter] = RunVar("pegboard_offload_places")


class DeadlineExceeded(PegboardError):
    """The function did not finish in time and was stopped."""

    kind = "deadline"


async def offload(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a function of this package, computed in a worker process.

    Raises:
        DeadlineExceeded: It took longer than `DEADLINE`, or more memory than a worker may have.
        Busy: No worker became free in time.
        PegboardError: What the function raised.
    """
    try:
        limiter = _places.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(MAX_WORKERS)
        _places.set(limiter)
    with anyio.move_on_after(WAIT_TIMEOUT) as waiting:
        await limiter.acquire()
    if waiting.cancelled_caught:
        raise Busy("Too many expensive requests at once: try again in a moment.", retry_after=1.0)
    try:
        is_value, outcome = await _run_in_worker((function, args, kwargs))
    finally:
        limiter.release()
    if is_value:
        return outcome
    raise outcome


async def _run_in_worker(job: object) -> tuple[bool, Any]:
    worker = await to_thread.run_sync(_ready_worker)
    try:
        with anyio.fail_after(DEADLINE):
            # The thread cannot be stopped: it is abandoned, and ends when the worker is killed.
            answer = await to_thread.run_sync(worker.exchange, job, abandon_on_cancel=True)
    except TimeoutError as exc:
        raise DeadlineExceeded(f"It took longer than {DEADLINE:g} s and was stopped.") from exc
    except (OSError, EOFError, pickle.PickleError) as exc:
        raise DeadlineExceeded("The worker process ended before it had an answer.") from exc
    except (ValueError, RecursionError) as exc:
        raise DeadlineExceeded("The value is circular or nested too deep.") from exc
    else:
        with _guard:
            _idle.append(worker)
        return answer
    finally:
        # After any failure, even a cancellation, a worker in an unknown state is not used again.
        if worker not in _idle:
            worker.kill()


def _ready_worker() -> _Worker:
    """A worker that answers: an idle one, or a new one."""
    while True:
        with _guard:
            worker = _idle.pop() if _idle else None
        if worker is None:
            return _Worker()
        with suppress(OSError, EOFError):
            worker.exchange((_ready, (), {}))
            return worker
        worker.kill()  # it was idle for long and has exited


def _ready() -> None:
    """Does nothing: an answer shows that the worker is alive."""


class _Worker:
    """One worker process, used by one thread at a time."""

    def __init__(self) -> None:
        # Not `multiprocessing`: that would run the main module of an embedding program again.
        start = f"import sys; sys.path[:] = {sys.path!r}; import {__name__} as o; o.work()"
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", start],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as exc:  # no descriptors or no memory left, or no interpreter to run
            raise DeadlineExceeded(f"No worker process could be started: {exc}.") from exc
        with _guard:
            _all.add(self)
        timer = threading.Timer(START_TIMEOUT, self._process.kill)
        timer.start()
        try:
            self.exchange((_ready, (), {}))
        except (OSError, EOFError) as exc:
            self.kill()
            raise DeadlineExceeded("No worker process could be started.") from exc
        finally:
            timer.cancel()

    def exchange(self, job: object) -> tuple[bool, Any]:
        """Send a job and wait for its outcome. Raises `OSError`, `EOFError` if the process ends."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        _send(self._process.stdin, job)
        return _receive(self._process.stdout)

    def kill(self) -> None:
        """End the process, whatever it does; a thread that waits for it gets `EOFError`."""
        with _guard:
            _all.discard(self)
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what was being written has nowhere to go
                if stream is not None:
                    stream.close()


@atexit.register
def _end_all() -> None:
    for worker in tuple(_all):
        worker.kill()


def _send(stream: IO[bytes], value: object) -> None:
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL)
    pickler.fast = True  # JSON shares no parts, and the memo of all of them takes ten times as long
    pickler.dump(value)
    stream.write(buffer.tell().to_bytes(_LENGTH, "big"))
    stream.write(buffer.getbuffer())
    stream.flush()


def _receive(stream: IO[bytes]) -> Any:
    size = int.from_bytes(_read_exactly(stream, _LENGTH), "big")
    return pickle.loads(_read_exactly(stream, size))


def _read_exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


# In the worker process ---------------------------------------------------------------------------


def work() -> None:
    """Answer jobs until the parent is gone or has had none for a while."""
    if sys.platform != "win32":
        import resource
        import signal

        os.nice(_NICENESS)  # the event loop of the parent comes first
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while _wait_for_job():
        try:
            function, args, kwargs = _receive(source)
        except EOFError:
            return
        outcome: tuple[bool, object]
        try:
            outcome = True, function(*args, **kwargs)
        except PegboardError as exc:
            outcome = False, exc
        except MemoryError:
            outcome = False, DeadlineExceeded("It took too much memory and was stopped.")
        except RecursionError:
            outcome = False, DeadlineExceeded("The value is nested too deep.")
        _send(target, outcome)


def _wait_for_job() -> bool:
    """Wait for a job or the end of the parent; whether either came within the idle time."""
    if sys.platform == "win32":
        return True
    import select
    import signal

    signal.alarm(0)
    ready, _, _ = select.select([0], [], [], IDLE_TIME)
    signal.alarm(int(DEADLINE) + 3)  # if the parent died, nobody else would stop us
    return bool(ready)
