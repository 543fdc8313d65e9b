"""What the layers around a result cost, and what a spill leaves of one, as JSON.

PYTHONPATH=src:. python benchmarks/results_layers.py
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from typing import Any

from benchmarks.results_data import fifty_kilobytes, listings
from benchmarks.timing import Act, in_turn
from pegboard.core.calls import CallResult, ResultShape, ToolCall
from pegboard.core.tools import Tool, constant_definition
from pegboard.dispatch.project import projection_layer
from pegboard.dispatch.result_cache import CachePolicy, cache_layer
from pegboard.dispatch.spill import spill_layer
from pegboard.dispatch.tables import table_layer
from pegboard.pipeline import compose
from pegboard.ports import Handler
from pegboard.store.memory import MemoryStore
from pegboard.tokens import DEFAULT_TOKENIZER, count_tokens

TOOL = Tool("list_issues", constant_definition({"type": "object"}), risk="read")
ORDINARY: dict[str, Any] = {"items": listings(5)["issues"]["items"], "total": 5}


async def main() -> None:
    small, large = CallResult.json(ORDINARY), CallResult.json(fifty_kilobytes())
    fields = ResultShape(include_fields=("number", "title"))
    timed = await overhead(
        {
            "ordinary result": (small, ResultShape()),
            "ordinary result, two fields": (small, fields),
            "50 KB, two fields": (large, fields),
            "50 KB, kept": (large, ResultShape()),
        }
    )
    print(
        json.dumps(
            {
                "tokenizer": DEFAULT_TOKENIZER,
                "added by all result layers, ms": timed,
                "kept results": await spilled(),
            },
            indent=2,
        )
    )


def layered(result: CallResult) -> Handler:
    async def run(call: ToolCall) -> CallResult:
        return result

    layers = [
        spill_layer(store=MemoryStore(), clock=time.time, random=os.urandom, count=count_tokens),
        table_layer(count=count_tokens),
        projection_layer(),
        cache_layer(clock=time.monotonic, policy=CachePolicy()),
    ]
    return compose(layers, run)


async def overhead(cases: dict[str, tuple[CallResult, ResultShape]]) -> dict[str, float]:
    """Milliseconds of CPU that the layers add; what runs inside takes none."""
    acts = {name: _act(*case) for name, case in cases.items()}
    return {name: round(us / 1e3, 3) for name, us in (await in_turn(acts, 30)).items()}


def _act(result: CallResult, shape: ResultShape) -> Act:
    handler, call = layered(result), ToolCall(TOOL, {"q": "open"}, shape=shape)
    return lambda: handler(call)


async def spilled() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in listings(500).items():
        whole = CallResult.text(value) if isinstance(value, str) else CallResult.json(value)
        result = await layered(whole)(ToolCall(TOOL, {}))
        found[name] = {
            "whole": count_tokens(value),
            "notice": count_tokens(result.content[0]["text"]),
        }
    return found


if __name__ == "__main__":
    asyncio.run(main())
