"""What a call costs on its way through Pegboard, as JSON: `python -m benchmarks.calls_pipeline`.

CPU is that of the whole process, client and server together, so that nothing hides; contestants
take turns round by round, and the median counts. Targets stand beside what was found.
"""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import anyio
from mcp import Client
from mcp.server import MCPServer

from benchmarks.results_data import fifty_kilobytes
from benchmarks.validation import SCHEMA, arguments
from pegboard import Call as Asked
from pegboard import Caller, Pegboard
from pegboard.core.calls import Call, CallResult
from pegboard.core.projection import project
from pegboard.core.validation import Validator
from pegboard.dispatch.breaker import breaker as breaker_layer
from pegboard.server.answers import Answers, Request
from pegboard.server.serve import build_server
from pegboard.store.memory import MemoryStore

ROUNDS = 9
CALLS = 300
READ = {"readOnlyHint": True}
ARGUMENT = {"project": "apollo", "limit": 5}
TARGETS = {
    "pipeline, ms CPU": 0.25,
    "middleware beyond the bare server, ms CPU": 0.3,
    "describe cached, µs": 50.0,
    "check 2 KB of arguments, µs": 50.0,
    "project 50 KB, ms": 1.0,
    "breaker, µs": 20.0,
    "16 calls of 100 ms at once, ms": 150.0,
    "import pegboard, ms CPU": 50.0,
}


async def list_issues(project: str, limit: int = 10) -> list[dict[str, Any]]:
    """List the open issues of a project."""
    return [{"id": n, "project": project, "title": f"Issue {n}"} for n in range(limit)]


def board_of(**options: Any) -> Pegboard:
    board = Pegboard("bench", **options)
    board.tool(annotations=READ)(list_issues)
    return board


Act = Callable[[], Awaitable[object]]


async def cpu(act: Act, times: int = CALLS) -> float:
    """Milliseconds of CPU per act."""
    gc.collect()
    began = time.process_time()
    for _ in range(times):
        await act()
    return (time.process_time() - began) / times * 1e3


async def in_turn(contestants: dict[str, Act]) -> dict[str, float]:
    """The median of each, measured round by round in turn."""
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for act in contestants.values():
        await cpu(act, 50)
    for _ in range(ROUNDS):
        for name, act in contestants.items():
            found[name].append(await cpu(act))
    return {name: statistics.median(values) for name, values in found.items()}


async def pipeline() -> dict[str, float]:
    """In process: the function alone, and the same through every layer."""
    board = board_of()
    call = Call(board.find("list_issues"), ARGUMENT, caller=Caller(face="proxy"), via="call_tool")
    fields = replace(call, shape=replace(call.shape, include_fields=("id",)))
    return await in_turn(
        {
            "function alone": lambda: board.run_call(call),
            "through every layer": lambda: board.dispatch(call),
            "through every layer, one field": lambda: board.dispatch(fields),
        }
    )


async def middleware() -> dict[str, float]:
    """Over a client in the same process: a bare server of the SDK, and boards."""
    bare = MCPServer("bare", log_level="WARNING")  # its log of every call would be measured too
    bare.tool()(list_issues)
    eager = build_server(board_of(face="eager"), environ={})
    proxy = build_server(board_of(face="proxy"), environ={})
    through = {"name": "list_issues", "arguments": ARGUMENT}
    async with Client(bare) as one, Client(eager) as two, Client(proxy) as three:
        for client in (one, two, three):
            await client.list_tools()
        return await in_turn(
            {
                "bare server": lambda: one.call_tool("list_issues", ARGUMENT),
                "eager, direct": lambda: two.call_tool("list_issues", ARGUMENT),
                "proxy, call_tool": lambda: three.call_tool("call_tool", through),
            }
        )


async def together() -> float:
    """Milliseconds until 16 calls that wait 100 ms each are answered; the median of five."""
    board = board_of()

    @board.tool(annotations=READ)
    async def wait(number: int) -> int:
        """Wait a little."""
        await anyio.sleep(0.1)
        return number

    calls = [Asked("wait", {"number": n}) for n in range(16)]
    await board.call_many(calls[:1])
    took: list[float] = []
    for _ in range(5):
        began = time.perf_counter()
        outcomes = await board.call_many(calls, max_concurrency=16)
        took.append((time.perf_counter() - began) * 1e3)
        answers = [o.result.structured for o in outcomes if o.result]
        assert answers == [{"result": n} for n in range(16)]
    return statistics.median(took)


async def listing() -> dict[str, Any]:
    """The proxy list of a thousand functions: how long, and how many schemas it made."""
    board = Pegboard("large", face="proxy")
    for number in range(1_000):
        board.tool(f"tool_{number}", category=f"group_{number % 20}")(list_issues)
    answers, request = Answers(board), Request("tools/list", {}, Caller())

    async def ask() -> None:
        await answers.answer(request)

    began = time.perf_counter()
    await ask()
    first = (time.perf_counter() - began) * 1e3
    return {
        "first, ms": round(first, 2),
        "again, ms CPU": round(await cpu(ask, 50), 3),
        "schemas made": board.schema_cache.stats().misses,
    }


def quick(act: Callable[[], object], times: int = 300) -> float:
    """Microseconds of the median run."""
    found: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        found.append((time.perf_counter() - began) * 1e6)
    return statistics.median(found)


async def breaker() -> float:
    """Microseconds of CPU that the breaker adds to a call."""

    async def answer(call: Call) -> CallResult:
        return CallResult.text("")

    board = board_of()
    call = Call(replace(board.find("list_issues"), server="there"), ARGUMENT)
    guarded = breaker_layer(store=MemoryStore())(answer)
    found = await in_turn({"bare": lambda: answer(call), "guarded": lambda: guarded(call)})
    return (found["guarded"] - found["bare"]) * 1e3


def importing() -> dict[str, Any]:
    """Milliseconds of CPU of `import pegboard` in a fresh process, and what it brought along."""
    code = (
        "import time, sys; b = time.process_time(); import pegboard; t = time.process_time() - b\n"
        "heavy = ['mcp', 'numpy', 'starlette', 'redis', 'pydantic', 'anyio', 'jsonschema_rs']\n"
        "print(t * 1e3, len(sys.modules), *(m for m in heavy if m in sys.modules))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(7)
    ]
    words = [run.stdout.split() for run in runs]
    return {
        "ms": round(min(float(w[0]) for w in words), 1),
        "modules": int(words[0][1]),
        "heavy modules": words[0][2:],
    }


async def measure() -> dict[str, Any]:
    """Every figure, and which target it meets."""
    board = board_of()
    layered, wired = await pipeline(), await middleware()
    large, given, validator = fifty_kilobytes(), arguments(2_000), Validator(SCHEMA)
    imported = importing()
    found = {
        "pipeline, ms CPU": layered["through every layer"] - layered["function alone"],
        "middleware beyond the bare server, ms CPU": wired["eager, direct"] - wired["bare server"],
        "describe cached, µs": quick(lambda: board.describe("list_issues")[0].input_schema),
        "check 2 KB of arguments, µs": quick(lambda: validator.check(given, "x")),
        "project 50 KB, ms": quick(lambda: project(large, ("number", "title", "user.login"))) / 1e3,
        "breaker, µs": await breaker(),
        "16 calls of 100 ms at once, ms": await together(),
        "import pegboard, ms CPU": imported["ms"],
    }
    return {
        "figures": {name: round(value, 3) for name, value in found.items()},
        "targets": {n: {"at_most": most, "met": found[n] <= most} for n, most in TARGETS.items()},
        "in process, ms CPU per call": {k: round(v, 3) for k, v in layered.items()},
        "with a client, ms CPU per call": {k: round(v, 3) for k, v in wired.items()},
        "proxy list of 1,000 functions": await listing(),
        "import": imported,
    }


def main() -> None:
    print(json.dumps(anyio.run(measure), indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
