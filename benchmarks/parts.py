"""Do the parts keep the targets that were set for them?

Each part has a benchmark of its own, a program that prints JSON; here they are run, and what has a
target is held against it. A missed target is shown, and no failure of the run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from benchmarks.runner import ROOT, Profile, say
from benchmarks.tables import table

PROGRAMS = (
    "calls_pipeline",
    "govern_overhead",
    "validation",
    "results_projection",
    "results_layers",
    "results_tables",
    "company_checks",
)


def measure(profile: Profile) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in PROGRAMS:
        say(f"  {name}")
        found[name] = _run(name)
    return {"parts": found, "targets": targets(found)}


def _run(name: str) -> dict[str, Any]:
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    ended = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        return json.loads(ended.stdout)
    except ValueError:
        return {"missing": (ended.stderr or "it printed nothing").strip().splitlines()[-1]}


def targets(parts: dict[str, Any]) -> list[dict[str, Any]]:
    """Every figure that has a target: what it is, the limit, what was found."""
    pipeline = parts.get("calls_pipeline", {})
    found = [
        _target(what, pipeline["figures"][what], one["at_most"])
        for what, one in pipeline.get("targets", {}).items()
    ]
    places = [
        ("govern_overhead", "layers/all", "all governing layers, µs CPU", 100),
        ("results_layers", "added by all result layers, ms/ordinary result",
         "all result layers, ordinary result, ms", 1),
    ]  # fmt: skip
    for program, path, what, limit in places:
        value: Any = parts.get(program)
        for key in path.split("/"):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, int | float):
            found.append(_target(what, value, limit))
    return found


def _target(what: str, value: float, limit: float) -> dict[str, Any]:
    return {"what": what, "at_most": limit, "found": value, "met": value <= limit}


def section(figures: dict[str, Any]) -> str:
    rows = [
        [one["what"], one["at_most"], one["found"], "yes" if one["met"] else "**missed**"]
        for one in figures["targets"]
    ]
    gone = [f"`{n}`: {p['missing']}" for n, p in figures["parts"].items() if "missing" in p]
    return table(["what", "at most", "found", "kept"], rows) + "".join(
        f"\n\nNot measured: {one}." for one in gone
    )


def plots(figures: dict[str, Any]) -> dict[str, str]:
    return {}
