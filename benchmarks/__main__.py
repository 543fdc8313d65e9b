"""`python -m benchmarks [--profile full|quick] [--only tokens,calls] [--report]`.

What does not depend on time runs first, in two lanes side by side; what does, alone after it.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.contestants import versions
from benchmarks.runner import (
    PROFILES,
    QUESTIONS,
    RESULTS,
    ROOT,
    Profile,
    WrongAnswer,
    machine,
    say,
    write,
)
from benchmarks.wire import Ended

LANES = (("tokens", "agent"), ("retrieval", "results", "soak", "trial"))
"""Questions whose answers a busy machine does not change."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--profile", choices=list(PROFILES), default="full")
    parser.add_argument("--only", default=",".join(QUESTIONS), help="questions, with commas")
    parser.add_argument("--report", action="store_true", help="only write the report again")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results are kept")
    parser.add_argument("--lane", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    logging.getLogger("mcp").setLevel(logging.ERROR)  # names of other people's tools
    began, failed = time.perf_counter(), False
    if not given.report:
        chosen = [name for name in QUESTIONS if name in given.only.split(",")]
        failed = not run_all(chosen, PROFILES[given.profile], given.results)
        if not given.lane:
            say(f"{time.perf_counter() - began:.0f} s in all")
    if given.results == RESULTS and not given.lane:
        report.write_all()
    return 1 if failed else 0


def run_all(chosen: list[str], profile: Profile, folder: Path) -> bool:
    """Every question chosen; whether everyone did the work in all of them."""
    lanes = [[name for name in lane if name in chosen] for lane in LANES]
    if all(lanes):
        good = side_by_side(lanes, profile, folder)
    else:
        each = [run(name, profile, folder) for lane in lanes for name in lane]
        good = all(each)
    alone = [name for name in chosen if not any(name in lane for lane in LANES)]
    rest = [run(name, profile, folder) for name in alone]
    return good and all(rest)


def side_by_side(lanes: list[list[str]], profile: Profile, folder: Path) -> bool:
    command = [sys.executable, "-m", "benchmarks", "--profile", profile.name]
    started = [
        subprocess.Popen(
            [*command, "--lane", "--results", str(folder), "--only", ",".join(lane)], cwd=ROOT
        )
        for lane in lanes
    ]
    ended = [process.wait() for process in started]
    return not any(ended)


def run(name: str, profile: Profile, folder: Path) -> bool:
    """Measure one question and keep what was found; whether everyone did the work."""
    question: Any = import_module(f"benchmarks.{name}")
    say(f"{name} ({profile.name})")
    began, load = time.perf_counter(), os.getloadavg()[0]
    try:
        figures = question.measure(profile)
    except (WrongAnswer, Ended) as exc:
        say(f"FAILED: {name}: {exc}")
        return False
    except Exception:  # the outermost loop: one question that breaks must not hide the others
        traceback.print_exc()
        say(f"FAILED: {name}")
        return False
    about = {
        "question": question.__doc__.splitlines()[0],
        "profile": profile.name,
        "seconds": round(time.perf_counter() - began, 1),
        "machine": machine(load),
        "versions": versions(),
    }
    write(name, {**about, **figures}, folder)
    say(f"{name}: {about['seconds']} s")
    return True


if __name__ == "__main__":
    sys.exit(main())
