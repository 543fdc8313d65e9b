"""What does a task of many calls cost as one program, and what does running programs cost?"""

from __future__ import annotations

from typing import Any

import anyio

from benchmarks.code_slips import measure_slips
from benchmarks.code_speed import measure_speed
from benchmarks.code_tokens import CODE, measure_tokens
from benchmarks.plots import bars
from benchmarks.runner import Profile
from benchmarks.tables import missing, table

COLUMNS = ("context", "input", "output", "turns", "finished")


def measure(profile: Profile) -> dict[str, Any]:
    return anyio.run(_measure, profile)


async def _measure(profile: Profile) -> dict[str, Any]:
    tokens = await measure_tokens()
    return {
        "tokens": tokens["ways"],
        "values": tokens["values"],
        "slips": await measure_slips(),
        "speed": await measure_speed(profile.rounds),
    }


def section(figures: dict[str, Any]) -> str:
    ways = {who: one for who, one in figures["tokens"].items() if "input" in one}
    rows = [[who, *(one[key] for key in COLUMNS)] for who, one in ways.items()]
    parts = [
        "Eight tasks on the tracker example with 160 issues. All results are real; the model is scripted and makes no mistakes."
        " *Context*: everything that a model reads and writes, counted once. *Input*: what it reads over all turns; each turn repeats"
        " everything before it. The client asks a person for consent to deletions. All contestants run the same programs, except"
        " for how they name tools; `fastmcp CodeMode` runs with its default limits.",
        table(["way", "context", "input", "output", "turns", "tasks finished"], rows)
        + missing(figures["tokens"]),
        "Input by task:",
        table(["task", *ways], _by_task(ways)),
        "Typos: every tool name, parameter, enum value, result key and `await` in the eight programs is misspelled, one at a time.",
        table(
            ["known about results", "typos", "found before any call", "%", "found after a write", "not noticed"],
            [
                [known, f["all"], f["before"], f["share"], f["wrote_first"], f["silent"]]
                for known, f in figures["slips"].items()
            ],
        ),
        "The cost of running programs, without their calls:",
        table(["what", "found"], [[text, figures["speed"][key]] for key, text in SPEED.items()]),
    ]  # fmt: skip
    return "\n\n".join(parts)


SPEED = {
    "check_ms": "checking a program, warm, ms",
    "no_calls_ms": "a program without calls, warm, ms",
    "overhead_per_call_ms": "a call in a program, over the same call by itself, ms",
    "reads_of_ideal": "100 reads of 50 ms, 16 at a time, of the ideal",
    "worker_idle_mb": "memory of an idle worker, MiB",
    "workers_before_first_use": "workers before the first program",
    "resume_ms": "from consent to the deletion, after a restart, ms",
    "writes_repeated": "writes repeated by a second try",
}


def _by_task(ways: dict[str, Any]) -> list[list[Any]]:
    return [[task, *(one["tasks"][task]["input"] for one in ways.values())]
            for task in ways[CODE]["tasks"]]  # fmt: skip


def plots(figures: dict[str, Any]) -> dict[str, str]:
    ways = {who: one["input"] for who, one in figures["tokens"].items() if "input" in one}
    return {
        "code_mode": bars("Tokens that a model reads in eight tasks", {"all": ways}, unit="tokens")
    }
