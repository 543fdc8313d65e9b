"""Many calls at once: through one connection, and from many clients."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
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
from benchmarks.contestants import wait_until_known
from benchmarks.runner import Missing, WrongAnswer, gathered, percentile, spread
from benchmarks.wire import Process, settle, text_of

AT_ONCE = 16
MOST = 25.0
"""Seconds that all clients together may need for one call each; beyond, it is not run."""
SECONDS = 4.0
"""So long every client calls; who is in a call then ends it."""
VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def _some(*starts: str) -> list[Target]:
    return [one for one in targets((50,)) if one.name.startswith(starts)]


def fan_out(folder: Path, rounds: int) -> dict[str, Any]:
    """Seconds for 16 slow calls, asked for in one request where there is such a thing."""
    names = ("direct", "pegboard, by", "fastmcp proxy", "mcp-compressor", "lazy-mcp")
    ways: dict[str, tuple[Target, Callable[[Process, Target], float]]] = {
        f"{one.name.split(', 50')[0]}, 16 requests": (one, _requests) for one in _some(*names)
    }
    (by_call,) = _some("pegboard, call_tool")
    ways["pegboard, call_tools, 1 request"] = (by_call, _one_request)

    def seconds(target: Target, ask: Callable[[Process, Target], float]) -> dict[str, Any]:
        with _started(target, folder) as process:
            return {"seconds": spread([ask(process, target) for _ in range(rounds)])}

    return gathered({name: partial(seconds, *way) for name, way in ways.items()})


def _started(target: Target, folder: Path) -> Process:
    command = target.command(folder, config(target, None, folder), None)
    process = Process(command, environment(folder))
    if target.tools:
        wait_until_known(process, target.tools + 2)
    name, arguments = target.wrap("search", ARGUMENTS)
    process.tools()
    _good(process.call(name, arguments), target.name)
    settle(process.pid)
    return process


def _good(result: dict[str, Any], who: str) -> None:
    if "hit 9" not in text_of(result):
        raise WrongAnswer(f"{who} answered: {text_of(result)[:300]}")


def _requests(process: Process, target: Target) -> float:
    name, arguments = target.wrap("wait", ARGUMENTS)
    params = {"name": name, "arguments": arguments}
    began = time.perf_counter()
    numbers = [process.post("tools/call", params) for _ in range(AT_ONCE)]
    for result in process.answers(numbers):
        _good(result, target.name)
    return time.perf_counter() - began


def _one_request(process: Process, target: Target) -> float:
    calls = [{"name": "up_wait", "arguments": ARGUMENTS}] * AT_ONCE
    began = time.perf_counter()
    text = text_of(process.call("call_tools", {"calls": calls}))
    seconds = time.perf_counter() - began
    if text.count("hit 9") != AT_ONCE:
        raise WrongAnswer(f"call_tools answered: {text[:300]}")
    return seconds


def crowd(folder: Path, clients: tuple[int, ...]) -> dict[str, Any]:
    """Calls per second and their times, with so many clients that each call again and again."""
    names = ("direct", "pegboard, by", "fastmcp proxy")
    found: dict[str, Any] = {str(count): {} for count in clients}
    for target in _some(*names):
        try:
            with served(target, folder) as (url, pid):
                settle(pid)
                rate = float("inf")
                for count in clients:
                    name = target.name.split(", 50")[0]
                    if count / rate > MOST:
                        said = f"at {rate:.1f} calls per second {count} clients wait too long"
                        found[str(count)][name] = {"missing": said}
                        continue
                    one = found[str(count)][name] = anyio.run(_crowd, target, url, count)
                    rate = one["calls_per_s"]
        except Missing as exc:
            for one in found.values():
                one[target.name] = {"missing": str(exc)}
    return found


async def _crowd(target: Target, url: str, clients: int) -> dict[str, float]:
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

    async def client(session: httpx2.AsyncClient, seconds: float) -> None:
        until = time.perf_counter() + seconds
        while (began := time.perf_counter()) < until:
            answer = await session.post(url, content=body, headers=headers)
            times.append(time.perf_counter() - began)
            if "hit 9" not in answer.text:
                raise WrongAnswer(
                    f"{target.name} answered {answer.status_code}: {answer.text[:300]}"
                )

    limits = httpx2.Limits(max_connections=clients, max_keepalive_connections=clients)
    base = {"Content-Type": "application/json"}
    async with httpx2.AsyncClient(limits=limits, timeout=120, headers=base) as session:
        await client(session, 0.3)
        times.clear()
        began = time.perf_counter()
        async with anyio.create_task_group() as group:
            for _ in range(clients):
                group.start_soon(client, session, SECONDS)
        wall = time.perf_counter() - began
    return {
        "calls_per_s": round(len(times) / wall, 1),
        "p50_ms": round(percentile(times, 0.5) * 1e3, 2),
        "p99_ms": round(percentile(times, 0.99) * 1e3, 2),
    }
