"""How much CPU and time does a gateway add to a call: alone, in parallel, with many clients?"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from benchmarks.call_load import crowd, fan_out
from benchmarks.call_targets import ARGUMENTS, Target, between, config, environment, served, targets
from benchmarks.counters import counting, unavailable
from benchmarks.plots import bars, lines
from benchmarks.runner import Missing, Profile, WrongAnswer, median, percentile, say, together
from benchmarks.tables import missing, table
from benchmarks.wire import cpu_between, cpu_times, descendants, memory_mb, settle

LAZY = {"io.github.pegboard/lazy": True}
WARM = 20
SECONDS = 2.0
"""No contestant is called for longer than this in one round; who is slow makes fewer calls."""
LEAST = 20
TRANSPORTS, ERAS = ("stdio", "http"), ("legacy", "modern")


def measure(profile: Profile) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for transport in TRANSPORTS:
            for era in ERAS:
                say(f"  {transport}, {era}")
                some = [one for one in targets(profile.sizes) if one.modern or era == "legacy"]
                found[f"{transport}, {era}"] = anyio.run(
                    way, some, transport, era, folder, profile.calls, profile.rounds
                )
        say("  fan-out")
        fan = fan_out(folder, profile.rounds)
        say("  clients at once")
        return {
            "instructions": unavailable() or "counted",
            "calls": found,
            "fan_out": fan,
            "crowd": crowd(folder, profile.clients),
        }


@dataclass
class Live:
    """A contestant that runs, a client connected to it, and what was measured."""

    target: Target
    client: Any
    pid: int
    server: int = 0
    rounds: list[dict[str, float]] = field(default_factory=list[dict[str, float]])
    times: list[float] = field(default_factory=list[float])

    @property
    def pids(self) -> list[int]:
        return between(self.pid, self.server)


async def way(
    some: Sequence[Target], transport: str, era: str, folder: Path, calls: int, rounds: int
) -> dict[str, Any]:
    """Everyone started once; then rounds in which each in turn is called so many times."""
    gone: dict[str, Any] = {}
    async with AsyncExitStack() as stack:
        live: list[Live] = []
        for target in some:
            if live and target.process and live[-1].target.process == target.process:
                live.append(replace(live[-1], target=target, rounds=[], times=[]))
                continue
            try:
                live.append(await stack.enter_async_context(opened(target, transport, era, folder)))
            except Missing as exc:
                gone[target.name] = {"missing": str(exc)}
        for _ in range(rounds):
            for one in live:
                one.rounds.append(await _timed(one, calls))
        return {one.target.name: _figures(one) for one in live} | gone


def _figures(one: Live) -> dict[str, Any]:
    return {
        **together(one.rounds),
        "p99_ms": round(percentile(one.times, 0.99) * 1e3, 3),
        "calls": len(one.times),
        "memory_mb": round(memory_mb(one.pid), 1),
    }


@asynccontextmanager
async def opened(target: Target, transport: str, era: str, folder: Path) -> AsyncGenerator[Live]:
    """The target with a client of the official SDK; it has been called, and is at rest."""
    from mcp import Client, StdioServerParameters, stdio_client

    mode = "legacy" if era == "legacy" else "auto"
    async with AsyncExitStack() as stack:
        pid = None
        if transport == "stdio":
            command = target.command(folder, config(target, None, folder), None)
            env = environment(folder)
            given = StdioServerParameters(command=command[0], args=command[1:], env=env)
            quiet = stack.enter_context(Path(os.devnull).open("w"))  # noqa: ASYNC230, SIM115
            where: Any = stdio_client(given, errlog=quiet)
        else:
            where, pid = stack.enter_context(served(target, folder))
        before = set(descendants(os.getpid()))
        client = await stack.enter_async_context(Client(where, mode=mode, cache=None))
        started = [p for p in descendants(os.getpid()) if p not in before]
        live = Live(target, client, pid or started[0])
        with anyio.fail_after(500):
            await _known(client, target)
            await client.list_tools()
            name, arguments = target.wrap("search", ARGUMENTS)
            for _ in range(WARM):
                live.server = checked(target, await client.call_tool(name, arguments))
            if target.name == "direct":
                live.server = live.pid
            await anyio.to_thread.run_sync(settle, live.pid)
        yield live


async def _known(client: Any, target: Target) -> None:
    """Until a gateway with many tools has seen all of them; only ours says that it has."""
    while target.tools:
        listed = await client.list_tools(meta=LAZY)
        if len(listed.tools) >= target.tools + 2:
            return
        await anyio.sleep(0.2)


async def _timed(one: Live, calls: int) -> dict[str, float]:
    name, arguments = one.target.wrap("search", ARGUMENTS)
    times: list[float] = []
    counter, before = counting(one.pids), cpu_times(*one.pids)
    until = time.perf_counter() + SECONDS
    result: Any = None
    while len(times) < calls and (len(times) < LEAST or time.perf_counter() < until):
        began = time.perf_counter()
        result = await one.client.call_tool(name, arguments)
        times.append(time.perf_counter() - began)
    used = cpu_between(before, cpu_times(*one.pids))
    executed = counter.stop() if counter else None
    checked(one.target, result)
    if used <= 0:
        raise WrongAnswer(f"{one.target.name} answered without using the processor")
    one.times += times
    counted = {} if executed is None else {"minstructions": executed / len(times) / 1e6}
    return {
        "cpu_ms": used / len(times) * 1e3,
        "p50_ms": percentile(times, 0.5) * 1e3,
        **counted,
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
    head = ["way", "contestant", "CPU per call, ms", "of direct", "p50, ms", "of direct", "p99, ms",
            "million instructions", "calls", "memory, MB"]  # fmt: skip
    rows: list[list[Any]] = []
    gone = ""
    for which, one in figures["calls"].items():
        gone += missing(one) if which == "stdio, legacy" else ""
        for who, f in one.items():
            if "cpu_ms" in f:
                rows.append([which, who, *_row(f, one["direct"])])
    counted = figures["instructions"]
    note = "" if counted == "counted" else f" Instructions are not counted here: {counted}."
    return (
        "The same client calls the same server, directly and through each gateway; both use the official SDK. CPU is that of"
        " the server for direct calls, and that of the gateway without the server otherwise. All contestants run at the same"
        " time and are called in turn, after they have become idle. The peers have only this one server behind them, which is"
        " their best case: with several servers, FastMCP restarts every server for each request. Pegboard has at least 50 other"
        f" tools as well. mcp-compressor and lazy-mcp do not support the modern protocol era.{note}\n\n"
        f"{table(head, rows, words=2)}{gone}\n\n" + _load(figures)
    )


def _row(f: dict[str, Any], direct: dict[str, Any]) -> list[Any]:
    return [
        f["cpu_ms"],
        f"{median(f['cpu_ms']) / median(direct['cpu_ms']):.1f}x",
        f["p50_ms"],
        f"{median(f['p50_ms']) / median(direct['p50_ms']):.1f}x",
        f["p99_ms"],
        f.get("minstructions"),
        f["calls"],
        f["memory_mb"],
    ]


def _load(figures: dict[str, Any]) -> str:
    fan = table(
        ["16 calls that wait 100 ms each", "seconds"],
        [[who, f["seconds"]] for who, f in figures["fan_out"].items() if "seconds" in f],
    )
    crowd_rows = [
        [int(count), who, f["calls_per_s"], f["p50_ms"], f["p99_ms"]]
        if "p50_ms" in f
        else [int(count), f"{who}: not run, {f['missing']}", None, None, None]
        for count, one in figures["crowd"].items()
        for who, f in one.items()
    ]
    head = ["clients at once", "contestant", "calls per second", "p50, ms", "p99, ms"]
    return (
        f"{fan}{missing(figures['fan_out'])}\n\n"
        "Concurrent clients over HTTP in the modern era, one request for each call, all responses"
        f" checked; clients and servers share the machine.\n\n{table(head, crowd_rows, words=2)}"
    )


def plots(figures: dict[str, Any]) -> dict[str, str]:
    groups = {
        way: {who: median(f["cpu_ms"]) for who, f in one.items() if "cpu_ms" in f}
        for way, one in figures["calls"].items()
    }
    at_once = {
        who: [
            (int(count), one[who]["p50_ms"])
            for count, one in figures["crowd"].items()
            if "p50_ms" in one.get(who, {})
        ]
        for who in dict.fromkeys(w for one in figures["crowd"].values() for w in one)
    }
    return {
        "calls": bars("CPU of one call", groups, unit="milliseconds", log=True),
        "clients": lines("Half of the calls are quicker", at_once, across="clients", unit="ms"),
    }
