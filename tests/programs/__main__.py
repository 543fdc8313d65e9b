"""`python -m tests.programs`: hostile programs under strict limits, and many clean exits.

Each program gets two seconds, 64 MiB and 300 calls. It fails where one takes over 1.5 times its
limits, where the host grows, or where a process that ran programs does not exit with 0.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from pathlib import Path

import anyio
from benchmarks.code_speed import workers
from tests.programs.exits import find_bad_exits
from tests.programs.hostile_programs import CRASHES, ESCAPES, HOSTILE
from tests.programs.test_hostile import make_board, resident_mb, text_of

from pegboard.core.options import CodeOptions

SECONDS, MEMORY_MB = 2.0, 64
MOST = 1.5
MOST_GROWTH_MB = 100
LIMITS = CodeOptions(
    compute_time=SECONDS,
    sleep_time=SECONDS,
    total_time=SECONDS,
    memory_bytes=MEMORY_MB << 20,
    max_calls=300,
    workers=1,
)


class PeakMemory:
    """The most memory that any worker had while this was open."""

    def __init__(self) -> None:
        self.megabytes = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.01):
            for pid in workers():
                try:
                    status = Path(f"/proc/{pid}/status").read_text()
                except OSError:
                    continue
                for line in status.splitlines():
                    if line.startswith("VmHWM"):
                        self.megabytes = max(self.megabytes, int(line.split()[1]) / 1024)


async def attack() -> list[str]:
    """Run every hostile program; what went wrong."""
    board, wrong = make_board(LIMITS), list[str]()
    await board.run_code("await echo(n=1)")  # what is loaded on first use is no matter of limits
    before = resident_mb()
    for name, program in {**HOSTILE, **CRASHES, **ESCAPES}.items():
        began = time.monotonic()
        with PeakMemory() as peak:
            result = await board.run_code(program)
        taken = time.monotonic() - began
        said = " ".join(text_of(result).split())[:70]
        print(f"{name:36} {taken:5.2f} s {peak.megabytes:6.0f} MiB  {said}", flush=True)  # noqa: T201
        if taken > MOST * SECONDS:
            wrong.append(f"{name}: {taken:.1f} s")
    if (growth := resident_mb() - before) > MOST_GROWTH_MB:
        wrong.append(f"the host grew by {growth:.0f} MB")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.programs")
    parser.add_argument("--exits", type=int, default=200)
    parser.add_argument("--exits-only", action="store_true", help="without hostile programs")
    options = parser.parse_args()
    wrong = [] if options.exits_only else anyio.run(attack)
    bad = find_bad_exits(options.exits)
    print(f"{options.exits} processes, {len(bad)} exits that were not clean")  # noqa: T201
    wrong += bad
    print("\n".join(wrong) or "All limits held.")  # noqa: T201
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
