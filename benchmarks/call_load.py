"""Many calls: at once through one connection, from many clients, and for a long time."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2

from benchmarks.call_targets import (
    ARGUMENTS,
    Target,
    config,
    environment,
    served,
    targets,
)
from benchmarks.contestants import pegboard_command, pegboard_env, wait_until_known, written
from benchmarks.gateway_servers import HERE as PLAIN_SERVER
from benchmarks.runner import Missing, WrongAnswer, interleave, percentile
from benchmarks.wire import Process, memory_mb, text_of

AT_ONCE = 16
VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def _some(*starts: str) -> list[Target]:
    return [one for one in targets((50,)) if one.name.startswith(starts)]


def fan_out(folder: Path) -> dict[str, Any]:
    """Seconds for 16 slow calls, asked for in one request where there is such a thing."""
    names = ("direct", "pegboard, by", "fastmcp proxy", "mcp-compressor", "lazy-mcp")
    contestants: dict[str, Callable[[], dict[str, float]]] = {
        f"{one.name.split(', 50')[0]}, 16 requests": lambda t=one: _requests(t, folder)
        for one in _some(*names)
    }
    contestants["pegboard, call_tools, 1 request"] = lambda: _one_request(folder)
    return interleave(contestants, 2)


def _started(target: Target, folder: Path) -> Process:
    process = Process(target.command(folder, config(target, None), None), environment(folder))
    if target.tools:
        wait_until_known(process, target.tools + 2)
    name, arguments = target.wrap("search", ARGUMENTS)
    process.tools()
    _good(process.call(name, arguments), target.name)
    return process


def _good(result: dict[str, Any], who: str) -> None:
    if "hit 9" not in text_of(result):
        raise WrongAnswer(f"{who} answered: {text_of(result)[:300]}")


def _requests(target: Target, folder: Path) -> dict[str, float]:
    with _started(target, folder) as process:
        name, arguments = target.wrap("wait", ARGUMENTS)
        began = time.perf_counter()
        params = {"name": name, "arguments": arguments}
        numbers = [process.post("tools/call", params) for _ in range(AT_ONCE)]
        for result in process.answers(numbers):
            _good(result, target.name)
        return {"seconds": time.perf_counter() - began}


def _one_request(folder: Path) -> dict[str, float]:
    (target,) = _some("pegboard, call_tool")
    with _started(target, folder) as process:
        calls = [{"name": "up_wait", "arguments": ARGUMENTS}] * AT_ONCE
        began = time.perf_counter()
        text = text_of(process.call("call_tools", {"calls": calls}))
        seconds = time.perf_counter() - began
        if text.count("hit 9") != AT_ONCE:
            raise WrongAnswer(f"call_tools answered: {text[:300]}")
        return {"seconds": seconds}


def crowd(folder: Path, clients: tuple[int, ...]) -> dict[str, Any]:
    """Calls per second and their times, with so many clients that each call again and again."""
    names = ("direct", "pegboard, by", "fastmcp proxy")
    found: dict[str, Any] = {str(count): {} for count in clients}
    for target in _some(*names):
        try:
            with served(target, folder) as (url, _):
                for count in clients:
                    each = max(2, min(50, 1_000 // count))
                    name = target.name.split(", 50")[0]
                    found[str(count)][name] = anyio.run(_crowd, target, url, count, each)
        except Missing as exc:
            for one in found.values():
                one[target.name] = {"missing": str(exc)}
    return found


async def _crowd(target: Target, url: str, clients: int, each: int) -> dict[str, float]:
    name, arguments = target.wrap("search", ARGUMENTS)
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }
    params = {"name": name, "arguments": arguments, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    times: list[float] = []

    async def client(session: httpx2.AsyncClient, calls: int) -> None:
        for _ in range(calls):
            began = time.perf_counter()
            answer = await session.post(url, content=body, headers=headers)
            times.append(time.perf_counter() - began)
            if "hit 9" not in answer.text:
                raise WrongAnswer(
                    f"{target.name} answered {answer.status_code}: {answer.text[:300]}"
                )

    limits = httpx2.Limits(max_connections=clients, max_keepalive_connections=clients)
    base = {"Content-Type": "application/json"}
    async with httpx2.AsyncClient(limits=limits, timeout=120, headers=base) as session:
        await client(session, 5)
        times.clear()
        began = time.perf_counter()
        async with anyio.create_task_group() as group:
            for _ in range(clients):
                group.start_soon(client, session, each)
        wall = time.perf_counter() - began
    return {
        "calls_per_s": round(len(times) / wall, 1),
        "p50_ms": round(percentile(times, 0.5) * 1e3, 2),
        "p99_ms": round(percentile(times, 0.99) * 1e3, 2),
    }


def soak(folder: Path, calls: int) -> dict[str, Any]:
    """Memory of a gateway early and late in a long series of calls, eight at a time."""
    up = {"command": sys.executable, "args": ["-S", PLAIN_SERVER, "up", "50"]}
    where = written(folder, "soak.json", {"mcpServers": {"up": up}})
    command = pegboard_command("--config", where, "--face", "proxy")
    with Process(command, pegboard_env(folder)) as process:
        wait_until_known(process, 50)
        began = time.perf_counter()
        _many(process, calls // 10)
        early = memory_mb(process.pid)
        _many(process, calls - calls // 10)
        return {
            "calls": calls,
            "seconds": round(time.perf_counter() - began, 1),
            "early_mb": round(early, 1),
            "late_mb": round(memory_mb(process.pid), 1),
        }


def _many(process: Process, calls: int) -> None:
    inner = {"name": "up_create_issue_0", "arguments": {"project": "x"}}
    params = {"name": "call_tool", "arguments": inner}
    for _ in range(0, calls, 8):
        numbers = [process.post("tools/call", params) for _ in range(8)]
        for result in process.answers(numbers):
            if "create_issue_0" not in text_of(result) or result.get("isError"):
                raise WrongAnswer(f"a call in the soak answered {result}")
