"""CPU per call of the governing layers, as JSON: `python benchmarks/govern_overhead.py`.

Each figure is the median of several rounds, in microseconds of process time, with the cost of the
bare handler taken off. The store is the one in memory.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Awaitable, Callable

import anyio

from pegboard.core.breaker import BreakerPolicy
from pegboard.core.calls import Call, Caller, CallResult
from pegboard.core.tools import Tool, constant
from pegboard.dispatch.breaker import breaker
from pegboard.dispatch.bulkhead import bulkhead
from pegboard.dispatch.observe import Watching, observe
from pegboard.dispatch.pipeline import compose
from pegboard.dispatch.retry import retry
from pegboard.dispatch.timeout import timeout
from pegboard.observe.in_flight import InFlight
from pegboard.observe.live import Live
from pegboard.observe.log import EventLog, log_to
from pegboard.observe.several import Several
from pegboard.ports import Handler, Layer
from pegboard.store.memory import MemoryStore
from pegboard.tokens import count_tokens

ROUNDS = 7
CALLS = 3_000
TARGETS = {"breaker": 20.0, "all": 100.0}

TOOL = Tool(
    name="search_issues",
    definition=constant({"type": "object"}),
    server="github",
    annotations={"readOnlyHint": True},
)
CALL = Call(TOOL, {"query": "crash on start", "limit": 10}, caller=Caller(face="proxy"))
RESULT = CallResult.json([{"id": n, "title": f"Issue {n}", "open": True} for n in range(20)])


async def answer(call: Call) -> CallResult:
    return RESULT


def layers() -> dict[str, list[Layer]]:
    """What is measured: each layer by itself, then all of them."""
    store = MemoryStore()
    shaky = MemoryStore()
    watched = Several(InFlight(), Live())
    logged = Several(InFlight(), Live(), EventLog())
    log_to(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 open until the process ends
    govern: list[Layer] = [breaker(store=store), bulkhead(), retry(), timeout()]
    return {
        "breaker": [breaker(store=store)],
        "breaker_after_a_failure": [_failed_once(shaky)],
        "timeout": [timeout()],
        "retry": [retry()],
        "bulkhead": [bulkhead()],
        "observe": [observe(Watching(observer=watched))],
        "observe_and_log": [observe(Watching(observer=logged))],
        "observe_and_count_tokens": [observe(Watching(observer=watched, count=count_tokens))],
        "all": [observe(Watching(observer=watched)), *govern],
        "all_with_log": [observe(Watching(observer=logged)), *govern],
    }


def _failed_once(store: MemoryStore) -> Layer:
    """A breaker that finds a failure at every call, and so has to write at every success."""

    def layer(handler: Handler) -> Handler:
        guarded = breaker(store=store, policy=BreakerPolicy())(handler)
        state = {"failures": 1, "failed_at": time.time()}

        async def with_a_failure(call: Call) -> CallResult:
            await store.update("breaker:tool:github.search_issues", lambda _: state)
            return await guarded(call)

        return with_a_failure

    return layer


async def cost(handler: Handler, calls: int = CALLS) -> float:
    """Microseconds of CPU per call."""
    for _ in range(100):
        await handler(CALL)
    began = time.process_time()
    for _ in range(calls):
        await handler(CALL)
    return (time.process_time() - began) / calls * 1e6


async def median(handler: Handler) -> float:
    return statistics.median([await cost(handler) for _ in range(ROUNDS)])


async def store_costs() -> dict[str, float]:
    """The memory store's own verbs, in microseconds."""
    store = MemoryStore()
    await store.update("there", lambda _: {"failures": 1, "failed_at": 1.5})

    async def timed(act: Callable[[], Awaitable[object]]) -> float:
        began = time.process_time()
        for _ in range(CALLS):
            await act()
        return (time.process_time() - began) / CALLS * 1e6

    return {
        "get_absent": await timed(lambda: store.get("absent")),
        "get": await timed(lambda: store.get("there")),
        "update": await timed(lambda: store.update("there", lambda v: v)),
    }


async def measure() -> dict[str, object]:
    bare = await median(answer)
    found = {name: await median(compose(group, answer)) - bare for name, group in layers().items()}
    rounded = {name: round(value, 2) for name, value in found.items()}
    return {
        "unit": "microseconds of CPU per call",
        "calls": CALLS * ROUNDS,
        "bare_handler": round(bare, 2),
        "layers": rounded,
        "memory_store": {k: round(v, 2) for k, v in (await store_costs()).items()},
        "targets": {k: {"at_most": v, "met": rounded[k] <= v} for k, v in TARGETS.items()},
    }


if __name__ == "__main__":
    print(json.dumps(anyio.run(measure), indent=2))
