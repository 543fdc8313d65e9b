"""What does each part of a call cost?

Each part has a program of its own that prints JSON; here they are run one after another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.runner import ROOT, Profile, say
from benchmarks.tables import missing, table

PROGRAMS = {
    "calls_pipeline": (),
    "govern_overhead": (),
    "validation": (),
    "results_projection": (),
    "results_layers": (),
    "results_tables": (),
    "first_search": (),
    "login_overhead": (),
}
SHOWN: dict[str, tuple[tuple[str, ...], ...]] = {
    "calls_pipeline": (
        ("pipeline, ms",),
        ("middleware, ms",),
        ("describe cached, us",),
        ("16 calls of 100 ms at once, ms",),
        ("in process",),
        ("with a client",),
        ("proxy list of 1,000 functions",),
        ("import", "ms"),
    ),
    "govern_overhead": (("layers",), ("memory_store",)),
    "validation": (("microseconds",),),
    "results_projection": (("time",),),
    "results_layers": (("added by all result layers, ms",),),
    "results_tables": (("time",),),
    "first_search": ((),),
    "login_overhead": (("CPU per call",), ("calls of 1 s",)),
}
"""What of each is in the table; the result file has all of it."""


def measure(profile: Profile) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, options in PROGRAMS.items():
        say(f"  {name}")
        found[name] = _run(name, *options)
    return {"parts": found}


def _run(name: str, *options: str) -> Any:
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", f"benchmarks.{name}", *options]
    try:
        ended = subprocess.run(
            command, env=env, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
        )
    except subprocess.TimeoutExpired:
        return {"missing": "it did not end within five minutes"}
    try:
        return json.loads(ended.stdout)
    except ValueError:
        return {"missing": (ended.stderr or "it printed nothing").strip().splitlines()[-1]}


def at(value: Any, *path: str) -> Any:
    """What stands at a path of keys and numbers; none where there is nothing."""
    for key in path:
        if isinstance(value, list):
            value = value[int(key)] if value else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def section(figures: dict[str, Any]) -> str:
    rows = [
        [name, what, value]
        for name, paths in SHOWN.items()
        for path in paths
        for what, value in _leaves(at(figures["parts"].get(name), *path), path)
    ]
    gone = {n: p for n, p in figures["parts"].items() if isinstance(p, dict) and "missing" in p}
    return (
        "Only Pegboard. `python -m benchmarks.NAME` prints each part with more detail. CPU time of the process, median of several"
        " rounds, in the unit that the name says; layers and validation in microseconds, the pipeline with and without a client"
        " in milliseconds.\n\n" + table(["part", "what", "found"], rows, words=2) + missing(gone)
    )


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Every number, and the words that lead to it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value, 1):
            yield from _leaves(inner, (*path, str(number)))
    elif isinstance(value, int | float):
        yield ": ".join(path), value


def plots(figures: dict[str, Any]) -> dict[str, str]:
    return {}
