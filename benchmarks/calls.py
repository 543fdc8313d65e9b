"""What does a gateway add to a call: in CPU and time, alone, in a crowd, and in the long run?"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from benchmarks.call_load import crowd, fan_out, soak
from benchmarks.call_targets import (
    ARGUMENTS,
    Target,
    config,
    cpu_between,
    environment,
    served,
    targets,
)
from benchmarks.plots import bars
from benchmarks.runner import Profile, WrongAnswer, interleave, median, percentile, say
from benchmarks.tables import missing, table
from benchmarks.wire import descendants

LAZY = {"io.github.pegboard/lazy": True}


def measure(profile: Profile) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for transport in ("stdio", "http"):
            for era in ("legacy", "modern"):
                say(f"  {transport}, {era}")
                contestants = {
                    one.name: lambda t=one, tr=transport, e=era: anyio.run(
                        once, t, tr, e, folder, profile.calls
                    )
                    for one in targets(profile.sizes)
                    if one.modern or era == "legacy"
                }
                found[f"{transport}, {era}"] = interleave(contestants, min(2, profile.rounds))
        say("  fan-out, clients, soak")
        return {
            "calls": found,
            "fan_out": fan_out(folder),
            "crowd": crowd(folder, profile.clients),
            "soak": soak(folder, profile.soak),
        }


async def once(
    target: Target, transport: str, era: str, folder: Path, calls: int
) -> dict[str, float]:
    """CPU and times of so many calls, each in turn."""
    if transport == "stdio":
        from mcp import StdioServerParameters

        command = target.command(folder, config(target, None), None)
        env = environment(folder)
        where = StdioServerParameters(command=command[0], args=command[1:], env=env)
        return await _through(target, where, None, era, calls)
    with served(target, folder) as (url, pid):
        return await _through(target, url, pid, era, calls)


async def _through(
    target: Target, where: Any, pid: int | None, era: str, calls: int
) -> dict[str, float]:
    from mcp import Client

    before = set(descendants(os.getpid()))
    mode = "legacy" if era == "legacy" else "auto"
    with anyio.fail_after(180):
        async with Client(where, mode=mode, cache=None) as client:
            if pid is None:
                started = [p for p in descendants(os.getpid()) if p not in before]
                pid = started[0]
            await _known(client, target)
            await client.list_tools()
            return await _timed(client, target, pid, calls)


async def _known(client: Any, target: Target) -> None:
    """Until a gateway with many tools has seen all of them; only ours says that it has."""
    while target.tools:
        listed = await client.list_tools(meta=LAZY)
        if len(listed.tools) >= target.tools + 2:
            return
        await anyio.sleep(0.2)


async def _timed(client: Any, target: Target, pid: int, calls: int) -> dict[str, float]:
    name, arguments = target.wrap("search", ARGUMENTS)
    server = 0
    for _ in range(20):
        server = checked(target, await client.call_tool(name, arguments))
    if target.name == "direct":
        server = pid
    cpu, times = cpu_between(pid, server), []
    for _ in range(calls):
        began = time.perf_counter()
        result = await client.call_tool(name, arguments)
        times.append(time.perf_counter() - began)
    used = cpu_between(pid, server) - cpu
    checked(target, result)
    return {
        "cpu_ms": used / calls * 1e3,
        "p50_ms": percentile(times, 0.5) * 1e3,
        "p99_ms": percentile(times, 0.99) * 1e3,
    }


def checked(target: Target, result: Any) -> int:
    """The process id that the server itself gave; proof that it was reached."""
    text = "".join(getattr(block, "text", "") for block in result.content)
    try:
        value = json.loads(text)
        if "content" in value:
            value = json.loads(value["content"][0]["text"])
        if value["query"] != ARGUMENTS["query"] or len(value["hits"]) != 10:
            raise KeyError
        return value["pid"]
    except (ValueError, KeyError, TypeError) as exc:
        raise WrongAnswer(f"{target.name} answered: {text[:300]}") from exc


def section(figures: dict[str, Any]) -> str:
    head = ["way", "contestant", "CPU per call, ms", "of direct", "p50, ms", "p99, ms"]
    rows: list[list[Any]] = []
    gone = ""
    for way, one in figures["calls"].items():
        base = median(one["direct"]["cpu_ms"])
        gone += missing(one) if way == "stdio, legacy" else ""
        for who, f in one.items():
            if "cpu_ms" in f:
                ratio = f"{median(f['cpu_ms']) / base:.1f}x"
                rows.append([way, who, f["cpu_ms"], ratio, f["p50_ms"], f["p99_ms"]])
    return (
        "The same client (the official SDK's) calls the same server of the official SDK, directly"
        " and through each gateway. CPU is that of the server when it is called directly, and of"
        " the gateway without the server when one stands between. Peers stand in front of that one"
        " server only, which is their best case: with several, FastMCP starts every server anew for"
        " each request. Pegboard has 50 or more other tools beside.\n\n"
        f"{table(head, rows)}{gone}\n\n" + _load(figures)
    )


def _load(figures: dict[str, Any]) -> str:
    fan = table(
        ["16 calls that wait 100 ms each", "seconds"],
        [[who, f["seconds"]] for who, f in figures["fan_out"].items() if "seconds" in f],
    )
    crowd_rows = [
        [int(count), who, f["calls_per_s"], f["p50_ms"], f["p99_ms"]]
        for count, one in figures["crowd"].items()
        for who, f in one.items()
        if "p50_ms" in f
    ]
    head = ["clients at once", "contestant", "calls per second", "p50, ms", "p99, ms"]
    long = figures["soak"]
    return (
        f"{fan}\n\nClients at once over HTTP in the modern era, each call a request of its own, all"
        f" answers checked; client and servers share the machine.\n\n{table(head, crowd_rows)}\n\n"
        f"Soak: {long['calls']:,} calls through one gateway on stdio in {long['seconds']:.0f} s;"
        f" memory {long['early_mb']} MB after a tenth of them and {long['late_mb']} MB at the end."
    )


def plots(figures: dict[str, Any]) -> dict[str, str]:
    groups = {
        way: {who: median(f["cpu_ms"]) for who, f in one.items() if "cpu_ms" in f}
        for way, one in figures["calls"].items()
    }
    return {"calls": bars("CPU of one call", groups, unit="milliseconds", log=True)}
