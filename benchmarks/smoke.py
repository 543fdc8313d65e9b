"""The benchmarks in small, ourselves alone, held to ratios: `python -m benchmarks.smoke`.

A ratio compares two things measured side by side on one machine, so it holds on a slow and busy one
too. The limits are wide: they catch what became several times worse, not what became a little so.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import anyio

from benchmarks import agent, calls, results, soak, start, tokens
from benchmarks.call_targets import targets
from benchmarks.contestants import Pegboard
from benchmarks.data import load_catalog, made
from benchmarks.runner import median
from benchmarks.tables import table
from benchmarks.walks import play, tasks_of
from pegboard import count_tokens


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
    tools = load_catalog("tracker", folder)
    tasks = tasks_of(tools, 6)
    everything = tokens.of_contestant(play(Pegboard("eager"), tools, folder, tasks[:1]))
    played = play(Pegboard("proxy"), tools, folder, tasks)
    task = agent.summary(played)
    whole, session = everything["list"], everything["sessions"]["3"]["plain"]
    return [
        Ratio("tokens of the list, of everything", played.listing / whole, 0.05),
        Ratio("tokens of a task, of listing everything", task["tokens"] / whole, 0.15),
        Ratio("tokens of a session, of one with everything",
              played.sessions["3"]["plain"] / session, 0.3),
        Ratio("tasks that failed", 1 - task["success"] / 100, 0.2),
    ]  # fmt: skip


def _start(folder: Path) -> list[Ratio]:
    config, entries = made(3, start.TOOLS, folder).configuration(), start.entries(3)
    first = start.once(start.FIRST, entries[start.FIRST], folder, config, brief=True)
    again = start.once(start.AGAIN, entries[start.AGAIN], folder, config, brief=True)
    held = again["memory_with_servers_mb"] / again["memory_mb"]
    return [
        Ratio("CPU of the second start, of loading the SDK", again["cpu_s"] / start.bare()["cpu_s"],
              4.0),
        Ratio("CPU of the second start, of the first", again["cpu_s"] / first["cpu_s"], 1.5),
        Ratio("servers started before a call, of all", again["processes"] / 3, 0.0),
        Ratio("memory with servers, of the gateway's own", held, 1.0),
    ]  # fmt: skip


def _calls(folder: Path) -> list[Ratio]:
    """Everyone has come to rest first, so no vector is made while calls are measured."""
    some = targets((50,), peers=False)
    found = anyio.run(calls.way, some, "stdio", "modern", folder, 80, 3)
    base, by_name, by_call = (median(found[one.name]["cpu_ms"]) for one in some)
    long = soak.through(made(1, 50, folder), folder, 800)
    return [
        Ratio("CPU of a call by name, of a direct one", by_name / base, 4.0),
        Ratio("CPU of a call by `call_tool`, of a direct one", by_call / base, 4.0),
        Ratio("memory after 800 calls, of that after 80", soak.growth(long), 1.1),
    ]


def _results() -> list[Ratio]:
    names = ("pegboard", "pegboard, whole")
    found = results.compared({who: results.ways()[who] for who in names})["results"]
    sent = sum(count_tokens(results.text_of(sample)) for sample in found)
    kept, whole = (sum(one[who]["tokens"] for one in found.values()) for who in names)
    return [
        Ratio("tokens of results, of those as sent", kept / sent, 0.15),
        Ratio("tokens with nothing left out, of those as sent", whole / sent, 0.8),
    ]


def main() -> int:
    found = measure()
    rows = [[r.what, f"{r.value:.3f}", r.at_most, "yes" if r.kept else "NO"] for r in found]
    print(table(["ratio", "measured", "at most", "met"], rows))
    return 0 if all(ratio.kept for ratio in found) else 1


if __name__ == "__main__":
    sys.exit(main())
