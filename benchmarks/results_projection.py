"""What a projection saves and costs, as JSON.

PYTHONPATH=src:. python benchmarks/results_projection.py
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from benchmarks.results_data import fifty_kilobytes
from benchmarks.timing import milliseconds
from examples.memory import RICH_EPISODE, build_board
from pegboard import Pegboard
from pegboard.core.json import compact
from pegboard.core.results.projection import measure_savings, project
from pegboard.core.results.selection import select
from pegboard.tokens import DEFAULT_TOKENIZER, count_tokens

SELECTIONS = {
    "id, description, outcome": ("id", "task_description", "outcome_type"),
    "learning": ("id", "patterns", "reflection"),
    "status": ("id", "status", "outcome_type", "duration_ms", "reward_score"),
    "steps without observations": ("id", "steps[].number", "steps[].tool", "steps[].success"),
}

QUERIES = {
    "query_memory": (
        {"query": "token refresh"},
        ("id", "task_description", "outcome_type", "domain", "reward_score"),
    ),
    "list_episodes": ({}, ("id", "task_description", "status", "outcome_type", "created_at")),
}


async def main() -> None:
    board = build_board()
    print(
        json.dumps(
            {
                "tokenizer": DEFAULT_TOKENIZER,
                "episode": await episode(board),
                "queries": await queries(board),
                "time": times(),
            },
            indent=2,
        )
    )


async def episode(board: Pegboard) -> dict[str, Any]:
    whole = (await board.call("get_episode", {"episode_id": RICH_EPISODE})).structured
    return {
        "fields": len(whole["episode"]),
        "tokens": count_tokens(whole),
        "selections": {name: saved(whole, fields) for name, fields in SELECTIONS.items()},
    }


async def queries(board: Pegboard) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, (arguments, fields) in QUERIES.items():
        whole = (await board.call(name, arguments)).structured
        found[name] = {"fields": list(fields)} | saved(whole, fields)
    return found


def saved(value: Any, fields: tuple[str, ...]) -> dict[str, Any]:
    report = measure_savings(value, fields, count_tokens)
    if report.missing:
        raise SystemExit(f"The example has no {', '.join(report.missing)}.")
    return {
        "before": report.before,
        "after": report.after,
        "saved_percent": round(100 * report.saved, 1),
    }


def times() -> dict[str, Any]:
    value = fifty_kilobytes()
    many = [f"items[].field_{i}" for i in range(10_000)]
    fields = ("number", "title", "user.login")
    return {
        "bytes": len(compact(value)),
        "three fields, ms": milliseconds(lambda: project(value, fields)),
        "wildcard, ms": milliseconds(lambda: project(value, ("items[].*.login", "items[].number"))),
        "JMESPath, ms": milliseconds(
            lambda: select(value, "items[*].{n: number, who: user.login}")
        ),
        "10,000 paths, ms": milliseconds(lambda: project(value, many), 5),
    }


if __name__ == "__main__":
    asyncio.run(main())
