"""Replicas and workers on one Redis under many modern clients: errors, p50, p99, throughput.

    python -m benchmarks.company_load --clients 500 --requests 4

Needs `redis-server`. Each client is a connection of its own that searches again and again; the
clients are processes apart, so that they do not stand in the gateways' way. Where there are not
enough cores for gateways and clients side by side, throughput says nothing and is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.real_redis import RedisServer
from tests.replicas.world import World

from benchmarks.runner import ROOT, Missing, percentile

CORES_FOR_TWO_WORKERS = 5
"""Two workers, two processes of clients, and Redis."""


@contextmanager
def world() -> Generator[World]:
    """A Redis of our own and a configuration for it; gateways that were started are stopped."""
    program = shutil.which("redis-server")
    if program is None:
        raise Missing("redis-server is not installed")
    with tempfile.TemporaryDirectory() as name:
        redis = RedisServer(program, Path(name), "--save", "")
        redis.start()
        made = World(Path(name), f"redis://127.0.0.1:{redis.port}/0")
        try:
            yield made
        finally:
            made.stop()
            redis.stop()


def load(urls: Sequence[str], clients: int, requests: int, processes: int = 1) -> dict[str, Any]:
    """What so many clients meet with."""
    environ = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    each = [str(clients // processes), str(requests), *urls]
    command = [sys.executable, "-m", "benchmarks.company_clients", *each]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, cwd=ROOT)
        for _ in range(processes)
    ]
    found = [json.loads(one.communicate()[0]) for one in running]
    durations = [second for one in found for second in one["durations"]]
    errors = [error for one in found for error in one["errors"]]
    p50, p99 = statistics.median(durations), percentile(durations, 0.99)
    return {
        "gateways": len(urls), "clients": clients, "requests": len(durations),
        "errors": len(errors), "first error": errors[:1],
        "p50 ms": round(p50 * 1e3, 1), "p99 ms": round(p99 * 1e3, 1),
        "p99 / p50": round(p99 / p50, 1),
        "requests/s": round(len(durations) / max(one["seconds"] for one in found)),
    }  # fmt: skip


def replicas(clients: int, requests: int) -> dict[str, Any]:
    """Many clients over two replicas."""
    with world() as made:
        urls = [made.start().url, made.start().url]
        load(urls, 20, 20)
        return load(urls, clients, requests)


def workers(clients: int, requests: int) -> dict[str, Any]:
    """One worker, and two behind one address: CPU, how the work is shared, and throughput."""
    found: dict[str, Any] = {}
    with world() as made:
        for count in (1, 2):
            front = made.start(options=["--workers", str(count)])
            load([front.url], 40, 20)
            pids = _serving(front.process.pid) or [front.process.pid]
            before = [_cpu(pid) for pid in pids]
            rate = load([front.url], clients, requests, 2)
            spent = [_cpu(pid) - began for pid, began in zip(pids, before, strict=True)]
            found[str(count)] = {
                "cpu ms/request": round(sum(spent) / rate["requests"] * 1e3, 2),
                "largest share": round(max(spent) / sum(spent), 2),
                "errors": rate["errors"],
                "requests/s": rate["requests/s"],
            }
            front.process.terminate()
            front.process.wait()
    cores = os.cpu_count() or 1
    if cores < CORES_FOR_TWO_WORKERS:
        for one in found.values():
            del one["requests/s"]
        found["missing"] = f"throughput needs {CORES_FOR_TWO_WORKERS} cores; here are {cores}"
    else:
        found["ratio"] = round(found["2"]["requests/s"] / found["1"]["requests/s"], 2)
    return found


def _serving(parent: int) -> list[int]:
    """The workers among the children of a process."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(p) for p in children if b"spawn_main" in Path(f"/proc/{p}/cmdline").read_bytes()]


def _cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--requests", type=int, default=4)
    options = parser.parse_args()
    found = {
        "two replicas": replicas(options.clients, options.requests),
        "workers": workers(options.clients, options.requests),
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
