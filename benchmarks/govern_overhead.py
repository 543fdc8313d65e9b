"""CPU per call of the governing layers, as JSON: `python benchmarks/govern_overhead.py`.

The cost of the bare handler is taken off. The store is the one in memory.
"""

from __future__ import annotations

import json
import os
import time

import anyio

from benchmarks.timing import in_turn
from pegboard.core.calls import Caller, CallResult, ToolCall
from pegboard.core.circuit_breaker import BreakerPolicy
from pegboard.core.tools import Tool, constant_definition
from pegboard.dispatch.breaker import breaker
from pegboard.dispatch.bulkhead import bulkhead
from pegboard.dispatch.call_events import ObserveOptions, observe
from pegboard.dispatch.retry import retry
from pegboard.dispatch.timeout import timeout
from pegboard.observe.logs import EventLog, log_json
from pegboard.observe.statistics import CombinedObserver, InFlight, LiveStatistics
from pegboard.pipeline import compose
from pegboard.ports import Handler, Layer
from pegboard.store.memory import MemoryStore
from pegboard.tokens import count_tokens

CALLS = 1_000

TOOL = Tool(
    name="search_issues",
    definition=constant_definition({"type": "object"}),
    server="github",
    annotations={"readOnlyHint": True},
)
CALL = ToolCall(TOOL, {"query": "crash on start", "limit": 10}, caller=Caller(mode="proxy"))
RESULT = CallResult.json([{"id": n, "title": f"Issue {n}", "open": True} for n in range(20)])


async def answer(call: ToolCall) -> CallResult:
    return RESULT


def layers() -> dict[str, list[Layer]]:
    """What is measured: each layer by itself, then all of them."""
    store = MemoryStore()
    shaky = MemoryStore()
    watched = CombinedObserver(InFlight(), LiveStatistics())
    logged = CombinedObserver(InFlight(), LiveStatistics(), EventLog())
    log_json(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 open until the process ends
    govern: list[Layer] = [breaker(store=store), bulkhead(), retry(), timeout()]
    return {
        "breaker": [breaker(store=store)],
        "breaker_after_a_failure": [_failed_once(shaky)],
        "timeout": [timeout()],
        "retry": [retry()],
        "bulkhead": [bulkhead()],
        "observe": [observe(ObserveOptions(observer=watched))],
        "observe_and_log": [observe(ObserveOptions(observer=logged))],
        "observe_and_count_tokens": [observe(ObserveOptions(observer=watched, count=count_tokens))],
        "all": [observe(ObserveOptions(observer=watched)), *govern],
        "all_with_log": [observe(ObserveOptions(observer=logged)), *govern],
    }


def _failed_once(store: MemoryStore) -> Layer:
    """A breaker that finds a failure at every call, and so has to write at every success."""

    def layer(handler: Handler) -> Handler:
        guarded = breaker(store=store, policy=BreakerPolicy())(handler)
        state = {"failures": 1, "failed_at": time.time()}

        async def with_a_failure(call: ToolCall) -> CallResult:
            await store.update("breaker:tool:github.search_issues", lambda _: state)
            return await guarded(call)

        return with_a_failure

    return layer


async def store_costs() -> dict[str, float]:
    """The memory store's own verbs, in microseconds."""
    store = MemoryStore()
    await store.update("there", lambda _: {"failures": 1, "failed_at": 1.5})
    return await in_turn(
        {
            "get_absent": lambda: store.get("absent"),
            "get": lambda: store.get("there"),
            "update": lambda: store.update("there", lambda v: v),
        },
        CALLS,
    )


async def measure() -> dict[str, object]:
    handlers = {"bare": answer} | {n: compose(group, answer) for n, group in layers().items()}
    found = await in_turn({n: lambda h=h: h(CALL) for n, h in handlers.items()}, CALLS)
    bare = found.pop("bare")
    return {
        "unit": "microseconds of CPU per call",
        "bare_handler": bare,
        "layers": {name: round(value - bare, 2) for name, value in found.items()},
        "memory_store": await store_costs(),
    }


if __name__ == "__main__":
    print(json.dumps(anyio.run(measure), indent=2))
