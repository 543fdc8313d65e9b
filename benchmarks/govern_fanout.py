"""How long parallel calls take together, as JSON: `python benchmarks/govern_fanout.py`.

Sixteen calls that each wait 100 ms, through the governing layers, against making them in turn; and
a thousand calls that do not wait, for the cost of the fan-out itself.
"""

from __future__ import annotations

import json
import statistics
import time

import anyio

from pegboard.core.calls import Call, CallResult
from pegboard.core.tools import Tool, constant
from pegboard.dispatch.breaker import breaker
from pegboard.dispatch.bulkhead import bulkhead
from pegboard.dispatch.fanout import call_many
from pegboard.dispatch.pipeline import compose
from pegboard.dispatch.retry import retry
from pegboard.dispatch.timeout import timeout
from pegboard.ports import Handler
from pegboard.store.memory import MemoryStore

ROUNDS = 5
WAIT = 0.1
TARGET_MS = 150.0

TOOL = Tool(name="wait", definition=constant({"type": "object"}), server="slow")


async def waits(call: Call) -> CallResult:
    await anyio.sleep(WAIT)
    return CallResult.text("done")


async def answers(call: Call) -> CallResult:
    return CallResult.text("done")


def governed(handler: Handler) -> Handler:
    store = MemoryStore()
    return compose([breaker(store=store), bulkhead(), retry(), timeout()], handler)


async def wall_ms(handler: Handler, calls: int, at_once: int) -> float:
    """Milliseconds until every outcome is there; the median of several rounds."""
    took: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        outcomes = await call_many(handler, [Call(TOOL, {})] * calls, max_concurrency=at_once)
        took.append((time.perf_counter() - began) * 1000)
        assert all(o.ok for o in outcomes)
    return round(statistics.median(took), 1)


async def measure() -> dict[str, object]:
    handler = governed(waits)
    together = await wall_ms(handler, 16, at_once=16)
    return {
        "unit": "milliseconds of wall time",
        "wait_of_each_call": WAIT * 1000,
        "16_calls_16_at_once": together,
        "16_calls_8_at_once": await wall_ms(handler, 16, at_once=8),
        "16_calls_in_turn": await wall_ms(handler, 16, at_once=1),
        "1000_calls_that_do_not_wait": await wall_ms(governed(answers), 1000, at_once=8),
        "target": {"16_calls_16_at_once": TARGET_MS, "met": together <= TARGET_MS},
    }


if __name__ == "__main__":
    print(json.dumps(anyio.run(measure), indent=2))
