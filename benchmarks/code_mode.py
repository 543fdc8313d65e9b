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
        "Eight tasks on the tracker example with 160 issues. Every result is real; the choices are those of a reader who makes no"
        " mistake. *Context*: everything that a model reads and writes, once. *Input*: what it reads over all turns, each of which"
        " begins with all before it. A person's consent to deletions is requested through the client. Programs are the same for"
        " everyone, except for how they name tools; `fastmcp CodeMode` runs with its default limits.",
        table(["way", "context", "input", "output", "turns", "tasks finished"], rows)
        + missing(figures["tokens"]),
        "Input by task:",
        table(["task", *ways], _by_task(ways)),
        "Slips: every tool name, parameter, listed value, key of a result and `await` of the eight programs is misspelled in turn.",
        table(
            ["known of results", "slips", "found before any call", "%", "had written first", "not noticed"],
            [
                [known, f["all"], f["before"], f["share"], f["wrote_first"], f["silent"]]
                for known, f in figures["slips"].items()
            ],
        ),
        "Programs beside their calls:",
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
