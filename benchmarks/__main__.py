"""`python -m benchmarks [--profile full|quick] [--only tokens,calls] [--report]`."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.contestants import versions
from benchmarks.runner import PROFILES, RESULTS, Profile, WrongAnswer, machine, say, write
from benchmarks.wire import Ended

QUESTIONS = ("tokens", "retrieval", "start", "calls", "results", "agent", "parts",
             "company_gateway")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--profile", choices=list(PROFILES), default="full")
    parser.add_argument("--only", default=",".join(QUESTIONS), help="questions, with commas")
    parser.add_argument("--report", action="store_true", help="only write the report again")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results are kept")
    given = parser.parse_args()
    failed: list[str] = []
    if not given.report:
        chosen = [name for name in QUESTIONS if name in given.only.split(",")]
        failed = [n for n in chosen if not run(n, PROFILES[given.profile], given.results)]
    if given.results == RESULTS:
        report.write_all()
    for name in failed:
        say(f"FAILED: {name}")
    return 1 if failed else 0


def run(name: str, profile: Profile, folder: Path) -> bool:
    """Measure one question and keep what was found; whether everyone did the work."""
    question: Any = import_module(f"benchmarks.{name}")
    say(f"{name} ({profile.name})")
    began = time.perf_counter()
    try:
        figures = question.measure(profile)
    except (WrongAnswer, Ended) as exc:
        say(f"  {exc}")
        return False
    except Exception:  # the outermost loop: one question that breaks must not hide the others
        traceback.print_exc()
        return False
    about = {
        "question": question.__doc__.splitlines()[0],
        "profile": profile.name,
        "seconds": round(time.perf_counter() - began, 1),
        "machine": machine(),
        "versions": versions(),
    }
    write(name, {**about, **figures}, folder)
    say(f"  {about['seconds']} s")
    return True


if __name__ == "__main__":
    sys.exit(main())
