"""What a call costs on its way through Pegboard, as JSON: `python -m benchmarks.calls_pipeline`.

CPU is that of the whole process, client and server together, so that nothing hides.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import anyio
from mcp import Client
from mcp.server import MCPServer

from benchmarks.timing import in_turn, microseconds
from pegboard import Call, Caller, Pegboard
from pegboard.core.calls import ToolCall
from pegboard.server.serving import build_server
from pegboard.server.tool_methods import ToolMethods, ToolRequest

READ = {"readOnlyHint": True}
ARGUMENT = {"project": "apollo", "limit": 5}


async def list_issues(project: str, limit: int = 10) -> list[dict[str, Any]]:
    """List the open issues of a project."""
    return [{"id": n, "project": project, "title": f"Issue {n}"} for n in range(limit)]


def board_of(**options: Any) -> Pegboard:
    board = Pegboard("bench", **options)
    board.tool(annotations=READ)(list_issues)
    return board


async def pipeline() -> dict[str, float]:
    """In process: the function alone, and the same through every layer."""
    board = board_of()
    call = ToolCall(
        board.find("list_issues"), ARGUMENT, caller=Caller(mode="proxy"), via="call_tool"
    )
    fields = replace(call, shape=replace(call.shape, include_fields=("id",)))
    found = await in_turn(
        {
            "function alone": lambda: board.run_call(call),
            "through every layer": lambda: board.dispatch(call),
            "through every layer, one field": lambda: board.dispatch(fields),
        }
    )
    return in_ms(found)


async def middleware() -> dict[str, float]:
    """Over a client in the same process: a bare server of the SDK, and boards."""
    bare = MCPServer("bare", log_level="WARNING")  # its log of every call would be measured too
    bare.tool()(list_issues)
    eager = build_server(board_of(mode="eager"), environ={})
    proxy = build_server(board_of(mode="proxy"), environ={})
    through = {"name": "list_issues", "arguments": ARGUMENT}
    async with Client(bare) as one, Client(eager) as two, Client(proxy) as three:
        for client in (one, two, three):
            await client.list_tools()
        found = await in_turn(
            {
                "bare server": lambda: one.call_tool("list_issues", ARGUMENT),
                "eager, direct": lambda: two.call_tool("list_issues", ARGUMENT),
                "proxy, call_tool": lambda: three.call_tool("call_tool", through),
            }
        )
    return in_ms(found)


def in_ms(found: dict[str, float]) -> dict[str, float]:
    return {name: round(value / 1e3, 4) for name, value in found.items()}


async def together() -> float:
    """Milliseconds until 16 calls that wait 100 ms each are answered; the median of five."""
    board = board_of()

    @board.tool(annotations=READ)
    async def wait(number: int) -> int:
        """Wait a little."""
        await anyio.sleep(0.1)
        return number

    calls = [Call("wait", {"number": n}) for n in range(16)]
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
    board = Pegboard("large", mode="proxy")
    for number in range(1_000):
        board.tool(f"tool_{number}", category=f"group_{number % 20}")(list_issues)
    answers, request = ToolMethods(board), ToolRequest("tools/list", {}, Caller())

    async def ask() -> None:
        await answers.answer(request)

    began = time.perf_counter()
    await ask()
    first = (time.perf_counter() - began) * 1e3
    return {
        "first, ms": round(first, 2),
        "again, ms CPU": in_ms(await in_turn({"again": ask}, 50))["again"],
        "schemas made": board.schema_cache.stats().misses,
    }


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
    """Every figure: milliseconds of CPU per call unless it says otherwise."""
    board = board_of()
    layered, wired = await pipeline(), await middleware()
    return {
        "pipeline, ms": round(layered["through every layer"] - layered["function alone"], 4),
        "middleware, ms": round(wired["eager, direct"] - wired["bare server"], 4),
        "describe cached, us": microseconds(lambda: board.describe("list_issues")[0].input_schema),
        "16 calls of 100 ms at once, ms": round(await together(), 1),
        "in process": layered,
        "with a client": wired,
        "proxy list of 1,000 functions": await listing(),
        "import": importing(),
    }


def main() -> None:
    print(json.dumps(anyio.run(measure), indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
