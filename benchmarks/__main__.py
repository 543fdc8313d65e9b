"""Runs every benchmark here and writes what it found: `python -m benchmarks [NAME ...]`.

A benchmark is a module of this folder that prints one JSON document when it is run. Each goes to
`results/NAME.json`, and all of them, as tables, to `BENCHMARKS.md` beside this folder. One that
cannot run here, for want of a peer or of data, is named with the reason.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = HERE / "results"
PAGE = ROOT / "BENCHMARKS.md"
PATIENCE = 900.0
_NOT_ALONE = ("__main__", "name_tokens", "gateway_servers")
"""Programs that are no benchmarks, or that need a file of yours."""


def benchmarks() -> list[str]:
    """The names of all modules here that can be run."""
    return sorted(
        path.stem
        for path in HERE.glob("*.py")
        if path.stem not in _NOT_ALONE and 'if __name__ == "__main__":' in path.read_text("utf-8")
    )


def run(name: str) -> dict[str, Any]:
    """What one benchmark found, or why it found nothing."""
    paths = [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return {"did not run": (done.stderr.strip() or "no JSON came").splitlines()[-1]}
    return found


def page(found: dict[str, dict[str, Any]], conditions: dict[str, Any]) -> str:
    """All results as Markdown."""
    said = ", ".join(f"{key} {value}" for key, value in conditions.items())
    parts = ["# Benchmarks\n", f"Written by `make bench`: {said}.\n"]
    for name, figures in found.items():
        parts += [f"## {name}\n", "| figure | value |", "|---|---:|"]
        parts += [f"| {label} | {value} |" for label, value in rows(figures)]
        parts.append("")
    return "\n".join(parts)


def rows(figures: Any, label: str = "") -> Iterator[tuple[str, str]]:
    """Each figure with the names that lead to it."""
    if isinstance(figures, dict):
        for key, value in figures.items():
            yield from rows(value, f"{label} / {key}" if label else str(key))
    elif isinstance(figures, bool):
        yield label, "yes" if figures else "no"
    elif isinstance(figures, (int, float)):
        yield label, f"{figures:,}"
    else:
        text = ", ".join(map(str, figures)) if isinstance(figures, list) else str(figures)
        yield label, text.replace("|", "\\|") or "none"


def conditions() -> dict[str, Any]:
    """What the figures depend on beside the code."""
    return {
        "Python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def main() -> int:
    """Run what was asked for, or all; the page always shows every result there is."""
    known = benchmarks()
    asked = sys.argv[1:] or known
    if unknown := [name for name in asked if name not in known]:
        print(f"There is no {', '.join(unknown)}. There are: {', '.join(known)}.", file=sys.stderr)
        return 2
    before = conditions()
    RESULTS.mkdir(exist_ok=True)
    for name in asked:
        print(f"{name} ...", file=sys.stderr, flush=True)
        text = json.dumps(run(name), indent=2, ensure_ascii=False)
        (RESULTS / f"{name}.json").write_text(text + "\n", "utf-8")
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in RESULTS.glob("*.json")}
    PAGE.write_text(page(dict(sorted(found.items())), before), "utf-8")
    return 1 if any("did not run" in found[name] for name in asked) else 0


if __name__ == "__main__":
    sys.exit(main())
