"""Do the parts keep the targets that were set for them?

Each part has a benchmark of its own, a program that prints JSON; here they are run, and what has a
target is held against it. A missed target is shown, and no failure of the run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.runner import ROOT, Profile, say
from benchmarks.tables import table

PROGRAMS = ("govern_overhead", "govern_fanout", "validation", "results_projection",
            "results_layers", "results_tables")  # fmt: skip


def measure(profile: Profile) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in PROGRAMS:
        say(f"  {name}")
        found[name] = _run(name)
    return {"parts": found, "targets": targets(found)}


def _run(name: str) -> dict[str, Any]:
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    program = str(Path(__file__).with_name(f"{name}.py"))
    ended = subprocess.run(
        [sys.executable, program], env=env, capture_output=True, text=True, check=False
    )
    try:
        return json.loads(ended.stdout)
    except ValueError:
        return {"missing": (ended.stderr or "it printed nothing").strip().splitlines()[-1]}


def targets(parts: dict[str, Any]) -> list[dict[str, Any]]:
    """Every figure that has a target: what it is, the limit, what was found."""
    places: list[tuple[str, str, str, float, str]] = [
        ("govern_overhead", "layers/breaker", "breaker, CPU per call", 20, "µs"),
        ("govern_overhead", "layers/all", "all governing layers, CPU per call", 100, "µs"),
        ("govern_fanout", "16_calls_16_at_once", "16 calls of 100 ms at once", 150, "ms"),
        ("validation", "microseconds/check_2kb", "checking 2 KB of arguments", 50, "µs"),
        ("results_layers", "added by all result layers, ms/ordinary result",
         "all result layers, ordinary result", 1, "ms"),
    ]  # fmt: skip
    found: list[dict[str, Any]] = []
    for program, path, what, limit, unit in places:
        value: Any = parts.get(program)
        for key in path.split("/"):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, int | float):
            about = {"what": what, "at_most": limit, "found": value, "unit": unit}
            found.append({**about, "met": value <= limit})
    return found


def section(figures: dict[str, Any]) -> str:
    rows = [
        [one["what"], f"{one['at_most']} {one['unit']}", f"{one['found']} {one['unit']}",
         "yes" if one["met"] else "**missed**"]
        for one in figures["targets"]
    ]  # fmt: skip
    gone = [f"`{n}`: {p['missing']}" for n, p in figures["parts"].items() if "missing" in p]
    return table(["what", "at most", "found", "kept"], rows) + "".join(
        f"\n\nNot measured: {one}." for one in gone
    )


def plots(figures: dict[str, Any]) -> dict[str, str]:
    return {}
