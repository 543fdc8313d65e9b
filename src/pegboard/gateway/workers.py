"""Several worker processes behind one address; each worker is a replica of the gateway.

The parent reserves the port and nothing else: it starts the workers, restarts one that died, and
forwards signals. A worker whose parent is gone stops by itself.

On Linux each worker listens on a socket of its own (`SO_REUSEPORT`) once it is ready, and the
kernel distributes connections among them. On one shared socket, the worker that wakes up first
takes most of the work. Other systems only have the shared socket.
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
WORKER_SHUTDOWN_TIMEOUT = 40.0
"""Seconds that workers have to finish their calls; more than a gateway takes to drain."""
_BACKLOG = 2048
_HAS_REUSEPORT = sys.platform == "linux"

WorkerTarget: TypeAlias = Callable[[socket.socket], None]
"""Serves on a socket until the process is stopped; listens when it is ready. Picklable."""


class Workers:
    """Keeps a number of workers running until it is stopped."""

    def __init__(self, target: WorkerTarget, host: str, port: int, count: int) -> None:
        self._target = target
        self._count = count
        self._socket = bind_socket(host, port)
        if _HAS_REUSEPORT:
            # Bound again to the same port, only to reserve it for the workers. First without
            # `SO_REUSEPORT`: with it, binding could succeed although another program uses the port.
            port = self._socket.getsockname()[1]
            self._socket.close()
            self._socket = bind_socket(host, port, share_port=True)
        else:
            self._socket.listen(_BACKLOG)
        self._processes: list[SpawnProcess] = []
        self._stopping = False
        self._context = multiprocessing.get_context("spawn")

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""

        def stop(number: int, frame: FrameType | None) -> None:
            self._stopping = True

        def forward(number: int, frame: FrameType | None) -> None:
            for process in self._processes:
                if process.pid is not None and process.is_alive():
                    os.kill(process.pid, number)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, forward)
        with tempfile.TemporaryDirectory(prefix="pegboard-metrics-") as folder:
            # Where prometheus-client adds up the metrics of all workers.
            os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", folder)
            self._processes = [self._start() for _ in range(self._count)]
            print_line(f"{self._count} workers on port {self._socket.getsockname()[1]}.")
            while not self._stopping:
                # With a timeout: a signal only sets a flag, and does not end this wait everywhere.
                wait([p.sentinel for p in self._processes], timeout=0.5)
                for position, process in enumerate(self._processes):
                    if process.is_alive() or self._stopping:
                        continue
                    ended = f"worker {process.pid} ended ({process.exitcode})"
                    print_line(f"{ended}; another is started.")
                    time.sleep(RESTART_PAUSE)
                    self._processes[position] = self._start()
            for process in self._processes:
                if process.is_alive():
                    process.terminate()
            deadline = time.monotonic() + WORKER_SHUTDOWN_TIMEOUT
            for process in self._processes:
                process.join(max(0.0, deadline - time.monotonic()))
                if process.is_alive():
                    process.kill()
            self._socket.close()

    def _start(self) -> SpawnProcess:
        address = self._socket.getsockname()[:2] if _HAS_REUSEPORT else self._socket
        process = self._context.Process(target=_run_worker, args=(self._target, address))
        process.start()
        return process


def _run_worker(target: WorkerTarget, address: socket.socket | tuple[str, int]) -> None:
    """The main function of a worker process."""
    is_shared = isinstance(address, socket.socket)
    sock = address if is_shared else bind_socket(*address, share_port=True)
    # Ctrl-C reaches all processes of the terminal; the parent stops its workers by SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if (parent := multiprocessing.parent_process()) is not None:
        sentinel = parent.sentinel

        def stop_with_parent() -> None:
            wait([sentinel])
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=stop_with_parent, daemon=True).start()
    target(sock)
