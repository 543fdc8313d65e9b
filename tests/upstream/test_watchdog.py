"""Servers of a process that was killed are ended, whatever happened to the watchdog before."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.gateway.support import ROOT
from tests.upstream.test_pool import is_running

PROGRAM = """
import os, signal, subprocess, sys
from pegboard.upstream.child_process import Watchdog

watchdog = Watchdog()
quiet = {"start_new_session": True, "stdout": subprocess.DEVNULL}
stubborn = "trap '' TERM; while :; do sleep 1; done"
def start():
    process = subprocess.Popen(["/bin/sh", "-c", stubborn], **quiet)
    watchdog.watch(process.pid)
    return process

kept, ended = start(), start()
ended.kill()
ended.wait()
watchdog.unwatch(ended.pid)
reused = subprocess.Popen(["sleep", "600"], **quiet)
if "lost" in sys.argv:
    watchdog._shell.kill()
    watchdog._shell.wait()
late = start()
print(kept.pid, late.pid, reused.pid, watchdog._shell.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def started(*args: str) -> list[int]:
    """The ids of two watched processes, one that is not, and the watchdog; their parent is dead."""
    program = subprocess.run(
        [sys.executable, "-c", PROGRAM, *args],
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(ROOT / "src")},
        check=False,
        timeout=20,
    )
    return [int(pid) for pid in program.stdout.split()]


def gone(pids: list[int], seconds: float = 8.0) -> bool:
    deadline = time.monotonic() + seconds
    while any(is_running(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_what_is_watched_is_killed_and_nothing_else() -> None:
    kept, late, unwatched, shell = started()
    try:
        assert gone([kept, late, shell])
        assert is_running(unwatched)
    finally:
        subprocess.run(["kill", str(unwatched)], check=True)


def test_a_watchdog_that_was_killed_is_replaced() -> None:
    kept, late, unwatched, _ = started("lost")
    try:
        assert gone([kept, late])
    finally:
        subprocess.run(["kill", str(unwatched)], check=True)


def test_there_is_no_watchdog_without_a_server() -> None:
    code = (
        "from pegboard.upstream.child_process import Watchdog; w = Watchdog(); w.watch(99999999); "
        "pid = w._shell.pid; w.unwatch(99999999); print(pid, w._shell)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "src")},
        check=True,
        timeout=20,
    )
    pid, shell = done.stdout.split()
    assert (shell, done.stderr) == ("None", "")
    assert not Path(f"/proc/{pid}").exists()
