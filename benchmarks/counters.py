"""Instructions of running processes, where the machine counts them: a measure that load leaves alone."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

EVENT = "instructions:u"


@cache
def unavailable() -> str | None:
    """Why instructions cannot be counted here; none when they can."""
    perf = shutil.which("perf")
    if perf is None:
        return "`perf` is not installed"
    ended = subprocess.run(
        [perf, "stat", "-x", ",", "-e", EVENT, "true"], capture_output=True, text=True, check=False
    )
    if read(ended.stderr) is not None:
        return None
    return "this machine gives no hardware counters to `perf`"


def read(text: str, event: str = EVENT) -> float | None:
    """The count of the event in what `perf stat -x ,` wrote; none when it has none."""
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2].startswith(event.split(":")[0]):
            return float(fields[0]) if fields[0].replace(".", "", 1).isdigit() else None
    return None


class Instructions:
    """Counts what some processes execute from now until `stop`."""

    def __init__(self, pids: Sequence[int], event: str = EVENT) -> None:
        self._event = event
        self._folder = tempfile.TemporaryDirectory()
        self._file = Path(self._folder.name) / "counted"
        which = ",".join(map(str, pids))
        command = ["perf", "stat", "-x", ",", "-e", event, "-o", str(self._file), "-p", which]
        self._perf = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def stop(self) -> float | None:
        self._perf.send_signal(signal.SIGINT)
        self._perf.wait(10)
        text = self._file.read_text(encoding="utf-8") if self._file.exists() else ""
        self._folder.cleanup()
        return read(text, self._event)


def counting(pids: Sequence[int]) -> Instructions | None:
    """A counter of these processes, or none on a machine without."""
    return None if unavailable() else Instructions(pids)
