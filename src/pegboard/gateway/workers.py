"""Several processes behind one address: each is a replica, and the system shares out connections.

The parent holds the port and nothing else: it starts the workers, starts one again that died, and
passes on what it is told by signals. A worker whose parent is gone stops by itself.

On Linux each worker listens on a socket of its own once it is ready, and the system deals out
connections to those that listen. Of one socket that all share, whoever wakes first takes most: two
workers under 64 clients had 71 % and 29 % of the work. Elsewhere there is only that.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import TypeAlias

from pegboard.observe.logs import print_line
from pegboard.sockets import bind_socket

RESTART_PAUSE = 1.0
"""Seconds before a worker that died is started again."""
SHUTDOWN_TIMEOUT = 40.0
"""Seconds that workers are given to finish their calls."""
_BACKLOG = 2048
_HAS_REUSEPORT = sys.platform == "linux"

WorkerTarget: TypeAlias = Callable[[socket.socket], None]
"""Serves on a socket until the process is told to stop; listens when it is ready. Picklable."""


class Workers:
    """Keeps so many workers running until told to stop."""

    def __init__(self, work: WorkerTarget, host: str, port: int, count: int) -> None:
        self._work = work
        self._count = count
        self._socket = _reserve(host, port) if _HAS_REUSEPORT else listen_on(host, port)
        self._processes: list[SpawnProcess] = []
        self._stopping = False
        self._context = multiprocessing.get_context("spawn")

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, self._pass_on)
        with tempfile.TemporaryDirectory(prefix="pegboard-metrics-") as folder:
            os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", folder)
            self._processes = [self._started() for _ in range(self._count)]
            print_line(f"{self._count} workers on port {self._socket.getsockname()[1]}.")
            self._attend()
            self._end()

    def _attend(self) -> None:
        while not self._stopping:
            wait([p.sentinel for p in self._processes], timeout=0.5)
            for position, process in enumerate(self._processes):
                if process.is_alive() or self._stopping:
                    continue
                print_line(f"worker {process.pid} ended ({process.exitcode}); another is started.")
                time.sleep(RESTART_PAUSE)
                self._processes[position] = self._started()

    def _started(self) -> SpawnProcess:
        where = self._socket.getsockname()[:2] if _HAS_REUSEPORT else self._socket
        process = self._context.Process(target=_run_worker, args=(self._work, where))
        process.start()
        return process

    def _end(self) -> None:
        for process in self._processes:
            if process.is_alive():
                process.terminate()
        deadline = time.monotonic() + SHUTDOWN_TIMEOUT
        for process in self._processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
        self._socket.close()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        for process in self._processes:
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, number)


def listen_on(host: str, port: int) -> socket.socket:
    """A socket that listens on an address.

    Raises:
        ConfigError: It is taken, or none of this machine's.
    """
    sock = bind_socket(host, port)
    sock.listen(_BACKLOG)
    return sock


def _reserve(host: str, port: int) -> socket.socket:
    """A socket that keeps an address for the workers and takes no connections itself."""
    free = bind_socket(host, port)  # fails where somebody else has it
    port = free.getsockname()[1]
    free.close()
    return bind_socket(host, port, share_port=True)


def _run_worker(work: WorkerTarget, where: socket.socket | tuple[str, int]) -> None:
    """A worker's life; signals of the terminal are the parent's to pass on."""
    is_shared = isinstance(where, socket.socket)
    sock = where if is_shared else bind_socket(*where, share_port=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_stop_with_parent, args=(parent.sentinel,), daemon=True).start()
    work(sock)


def _stop_with_parent(sentinel: int) -> None:
    wait([sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
