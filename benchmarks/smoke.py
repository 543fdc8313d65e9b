"""The benchmarks in small, ourselves alone, held to ratios: `python -m benchmarks.smoke`.

A ratio compares two things measured side by side on one machine, so it holds on a slow and busy one
too. The limits are wide: they catch what became several times worse, not what became a little so.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from benchmarks import agent, calls, results, start, tokens
from benchmarks.call_load import soak
from benchmarks.call_targets import targets
from benchmarks.contestants import Ledger, Pegboard, listing_of
from benchmarks.data import catalogue
from benchmarks.gateway_servers import configuration
from benchmarks.tables import table
from benchmarks.walks import tasks_of, walk


@dataclass(frozen=True, slots=True)
class Ratio:
    """One thing against another, and what it may be at most."""

    what: str
    value: float
    at_most: float

    @property
    def kept(self) -> bool:
        return self.value <= self.at_most


def measure() -> list[Ratio]:
    """Every ratio; each is of figures from the same few seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [*_tokens(folder), *_start(folder), *_calls(folder), *_results()]


def _tokens(folder: Path) -> list[Ratio]:
    tools = catalogue("tracker", folder)
    tasks = tasks_of(tools, 6)
    everything = tokens.of_contestant(Pegboard("eager"), tools, folder, tasks[:1])
    with Pegboard("proxy").start(tools, folder) as process:
        text = listing_of(process)
        walks = [walk(Pegboard("proxy"), Ledger(process, tools, text), task) for task in tasks]
        long = tokens.session(Pegboard("proxy"), Ledger(process, tools, text), tasks, 3)
    found = agent.summary(walks, tokens.count_tokens(text))
    whole = everything["list"]
    session = everything["sessions"]["3"]["plain"]
    return [
        Ratio("tokens of the list, of everything", tokens.count_tokens(text) / whole, 0.05),
        Ratio("tokens of a task, of listing everything", found["tokens"] / whole, 0.15),
        Ratio("tokens of a session, of one with everything", long["plain"] / session, 0.3),
        Ratio("tasks that failed", 1 - found["success"] / 100, 0.2),
    ]


def _start(folder: Path) -> list[Ratio]:
    config = configuration(3, start.TOOLS)
    entries = start.entries(3)
    first = start.once("pegboard, first start", entries["pegboard, first start"], folder, config)
    again = start.once("pegboard, again", entries["pegboard, again"], folder, config)
    held = again["memory_with_servers_mb"] / again["memory_mb"]
    return [
        Ratio("second start, of the first", again["found_s"] / first["found_s"], 2.0),
        Ratio("servers started before a call, of all", again["processes"] / 3, 0.0),
        Ratio("memory with servers, of the gateway's own", held, 1.0),
    ]


def _calls(folder: Path) -> list[Ratio]:
    direct, by_name, by_call, *_ = targets((50,), peers=False)

    def cpu(target: Any) -> float:
        found = anyio.run(calls.once, target, "stdio", "modern", folder, 150)
        return found["cpu_ms"]

    base = cpu(direct)
    long = soak(folder, 600)
    return [
        Ratio("CPU of a call by name, of a direct one", cpu(by_name) / base, 5.0),
        Ratio("CPU of a call by `call_tool`, of a direct one", cpu(by_call) / base, 5.0),
        Ratio("memory after 600 calls, of that after 60", long["late_mb"] / long["early_mb"], 1.2),
    ]


def _results() -> list[Ratio]:
    found = results.ours_alone()
    whole = sum(one["as sent"]["tokens"] for one in found.values())
    kept = sum(one["pegboard"]["tokens"] for one in found.values())
    table_whole = sum(one["pegboard, whole"]["tokens"] for one in found.values())
    return [
        Ratio("tokens of large results, of those as sent", kept / whole, 0.15),
        Ratio("tokens with nothing left out, of those as sent", table_whole / whole, 0.8),
    ]


def main() -> int:
    found = measure()
    rows = [[r.what, f"{r.value:.3f}", r.at_most, "yes" if r.kept else "NO"] for r in found]
    print(table(["ratio", "found", "at most", "kept"], rows))
    return 0 if all(ratio.kept for ratio in found) else 1


if __name__ == "__main__":
    sys.exit(main())
