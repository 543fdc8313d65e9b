"""What every question shares: profiles, rounds that interleave contestants, medians, result files.

A question is a module with `measure(profile) -> figures`, `section(figures) -> markdown` and
`plots(figures) -> {name: svg}`. Contestants take turns within a round, so that what disturbs the
machine disturbs all of them; the median of the rounds counts and the spread is shown beside it.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QUESTIONS = ("tokens", "retrieval", "scale", "start", "calls", "soak", "results", "agent", "parts",
             "company_gateway", "code_mode", "trial")  # fmt: skip
RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parents[1]


class Missing(Exception):
    """A peer or a data set that is not on this machine: said in the report, and no failure."""


class WrongAnswer(Exception):
    """A contestant did not do the work: nothing that it measured counts, and the run fails."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How much work a run does."""

    name: str
    rounds: int
    queries: int
    """At most so many queries of each retrieval set."""
    tasks: int
    """Tasks of each catalog that are walked, for their tokens and for their success."""
    catalogs: tuple[str, ...]
    sets: tuple[str, ...]
    played: tuple[str, ...]
    """The sets whose tasks the simulated agent solves."""
    scale: tuple[int, ...]
    servers: tuple[int, ...]
    calls: int
    """Calls of each contestant in a round."""
    sizes: tuple[int, ...]
    clients: tuple[int, ...]
    soak: int


SETS = ("mcpproxy_golden", "azure_mcp", "dust_mcp", "everyday", "agents", "toollinkos_main",
        "metatool_single", "bfcl_v3", "sealtools_dev")  # fmt: skip
FULL = Profile(
    name="full",
    rounds=3,
    queries=300,
    tasks=20,
    catalogs=("first_20", "first_30", "memory", "mcpproxy_golden", "tracker", "azure_mcp",
                "projects_470", "dust_mcp", "toucan_5190"),
    sets=SETS,
    played=SETS[:4],
    scale=(50, 500, 5_000, 20_000, 100_000),
    servers=(1, 7, 70),
    calls=300,
    sizes=(50, 5_000),
    clients=(1, 10, 100, 500),
    soak=100_000,
)  # fmt: skip
QUICK = Profile(
    name="quick",
    rounds=1,
    queries=60,
    tasks=6,
    catalogs=("first_20", "mcpproxy_golden", "tracker", "dust_mcp"),
    sets=SETS[:5],
    played=("mcpproxy_golden", "everyday"),
    scale=(50, 5_000),
    servers=(1, 7),
    calls=50,
    sizes=(50,),
    clients=(1, 20),
    soak=2_000,
)
PROFILES = {profile.name: profile for profile in (FULL, QUICK)}


def spread(values: Sequence[float], digits: int = 3) -> dict[str, float]:
    """The median, and the lowest and highest beside it."""
    return {
        "median": round(statistics.median(values), digits),
        "low": round(min(values), digits),
        "high": round(max(values), digits),
        "rounds": len(values),
    }


def percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def interleave(
    contestants: Mapping[str, Callable[[], Mapping[str, float]]], rounds: int
) -> dict[str, Any]:
    """Every contestant once per round, in turn; the spread of each figure, or why there is none."""
    found: dict[str, list[Mapping[str, float]]] = {name: [] for name in contestants}
    missing: dict[str, str] = {}
    for _ in range(rounds):
        for name, measure in contestants.items():
            if name in missing:
                continue
            try:
                found[name].append(measure())
            except Missing as exc:
                missing[name] = str(exc)
    return {name: together(ones) for name, ones in found.items() if ones} | {
        name: {"missing": reason} for name, reason in missing.items()
    }


def gathered(acts: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """What each act gives, one after another; where a part is not on this machine, that it is."""
    found: dict[str, Any] = {}
    for name, act in acts.items():
        try:
            found[name] = act()
        except Missing as exc:
            found[name] = {"missing": str(exc)}
    return found


def together(rounds: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {key: spread([one[key] for one in rounds]) for key in rounds[0]}


def median(figure: Any) -> float:
    """The median of a spread, or the plain number."""
    return figure["median"] if isinstance(figure, dict) else figure


def machine(load_before: float) -> dict[str, Any]:
    """Where and when: so that a reader can judge how far the figures carry.

    What a question starts weighs on the load after it, and what the last one started on that before
    it; others weigh on both, so the smaller one tells of them.
    """
    model = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if "model name" in line),
        platform.processor(),
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "load_average": round(min(load_before, os.getloadavg()[0]), 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def busy(figures: Mapping[str, Any]) -> bool:
    """Whether others used the machine so much that times of this run say nothing."""
    about = figures.get("machine", {"load_average": 0, "cores": 1})
    return about["load_average"] > 3 * about["cores"]


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def write(name: str, figures: Mapping[str, Any], folder: Path = RESULTS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(figures, indent=1, sort_keys=False, ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def read(name: str, folder: Path = RESULTS) -> dict[str, Any] | None:
    path = folder / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
