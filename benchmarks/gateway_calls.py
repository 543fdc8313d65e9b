"""CPU and time of one `tools/call` through `pegboard serve`, against the same call made directly.

    python benchmarks/gateway_calls.py [--calls 400] [--rounds 3] [--tools 50,5000]
                                       [--only stdio|http] [--soak N]

The same client calls the same server, first itself and then through the gateway, by the tool's name
and by `call_tool`. Reported is the CPU of one process per call (user and system, from `/proc`): of
the server when it is called directly, of the gateway when it stands between; `ratio` is the one
over the other. The median of several rounds counts. `--tools` says how many tools other servers add
to the gateway's catalogue. `--soak` makes so many further calls and reports the gateway's memory.
Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from gateway_servers import configuration  # noqa: E402
from relay_overhead import ARGUMENTS, cpu_of, free_port, http_process  # noqa: E402

OVERHEAD = str(HERE / "relay_overhead.py")
PER_SERVER = 500


def children() -> set[int]:
    tasks = Path("/proc/self/task").iterdir()
    return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}


def memory_of(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(s for s in status.splitlines() if s.startswith("VmRSS")).split()[1]) / 1024


class Bench:
    """One folder with the configuration and the kept catalogues of a gateway."""

    def __init__(self, folder: Path, tools: int) -> None:
        self.folder = folder
        self.tools = tools

    def write(self, up: dict[str, Any]) -> Path:
        path = self.folder / "mcp.json"
        filler: dict[str, Any] = {}
        if self.tools:
            servers = max(1, self.tools // PER_SERVER)
            filler = configuration(servers, self.tools // servers)["mcpServers"]
        path.write_text(json.dumps({"mcpServers": {"up": up, **filler}}))
        return path

    def command(self, config: Path, *more: str) -> list[str]:
        return ["-m", "pegboard", "serve", "--config", str(config), "--face", "proxy", *more]

    @property
    def env(self) -> dict[str, str]:
        # Pinned, because the client lists again after each call of a tool that is not listed.
        pins = {"ALWAYS_AVAILABLE_TOOLS": "up_search"}
        return {**os.environ, "PEGBOARD_HOME": str(self.folder / "home"), **pins}


@asynccontextmanager
async def target(transport: str, bench: Bench | None) -> AsyncGenerator[Any]:
    """What a client connects to: the server itself, or a gateway in front of it."""
    from mcp import StdioServerParameters

    if transport == "stdio":
        args = [OVERHEAD, "server"]
        env = dict(os.environ)
        if bench is not None:
            up = {"command": sys.executable, "args": args, "env": {}}
            args, env = bench.command(bench.write(up)), bench.env
        yield StdioServerParameters(command=sys.executable, args=args, env=env)
        return
    async with http_process("server", program=OVERHEAD) as url:
        if bench is None:
            yield url
            return
        config = bench.write({"url": url})
        address = f"127.0.0.1:{free_port()}"
        async with gateway_process(bench, config, address):
            yield f"http://{address}/mcp"


@asynccontextmanager
async def gateway_process(bench: Bench, config: Path, address: str) -> AsyncGenerator[None]:
    command = [sys.executable, *bench.command(config, "--http", address)]
    host, _, port = address.partition(":")
    async with await anyio.open_process(command, stdout=None, stderr=None, env=bench.env) as it:
        try:
            with anyio.fail_after(60):
                while True:
                    try:
                        async with await anyio.connect_tcp(host, int(port)):
                            break
                    except OSError:
                        await anyio.sleep(0.05)
            yield
        finally:
            it.terminate()


async def measure(
    transport: str, era: str, bench: Bench | None, calls: int, soak: int = 0
) -> dict[str, dict[str, float]]:
    from mcp import Client

    before = children()
    mode = "legacy" if era == "legacy" else "auto"
    async with target(transport, bench) as where, Client(where, mode=mode, cache=None) as client:
        started = sorted(children() - before)
        pid = started[-1]
        ways: dict[str, tuple[str, dict[str, Any]]] = {"direct": ("search", ARGUMENTS)}
        if bench is not None:
            await known(client, bench.tools)
            inner = {"name": "up_search", "arguments": ARGUMENTS}
            ways = {"by name": ("up_search", ARGUMENTS), "by call_tool": ("call_tool", inner)}
        await client.list_tools()
        found: dict[str, dict[str, float]] = {}
        for way, (name, arguments) in ways.items():
            found[way] = await timed(client, pid, name, arguments, calls)
        if soak and bench is not None:
            found["soak"] = await soaked(client, pid, soak)
    return found


async def known(client: Any, tools: int) -> None:
    """Wait until the gateway knows all tools, on its first start."""
    with anyio.fail_after(120):
        while True:
            meta = {"io.github.pegboard/lazy": True}
            listed = await client.list_tools(meta=meta)
            if len(listed.tools) >= tools + 1:
                return
            await anyio.sleep(0.2)


async def timed(
    client: Any, pid: int, name: str, arguments: dict[str, Any], calls: int
) -> dict[str, float]:
    for _ in range(50):
        result = await client.call_tool(name, arguments)
        assert not result.is_error, result
    began, times = cpu_of(pid), []
    for _ in range(calls):
        before = time.perf_counter()
        await client.call_tool(name, arguments)
        times.append(time.perf_counter() - before)
    used = cpu_of(pid) - began
    return {"cpu_ms": used / calls * 1e3, "p50_ms": statistics.median(times) * 1e3}


async def soaked(client: Any, pid: int, count: int) -> dict[str, float]:
    """Memory after a tenth of the calls and after all of them."""
    for _ in range(count // 10):
        await client.call_tool("up_search", ARGUMENTS)
    early = memory_of(pid)
    for _ in range(count - count // 10):
        await client.call_tool("up_search", ARGUMENTS)
    return {"calls": count, "early_mb": round(early, 1), "late_mb": round(memory_of(pid), 1)}


async def compare(transport: str, era: str, given: argparse.Namespace) -> dict[str, Any]:
    direct = [await measure(transport, era, None, given.calls) for _ in range(given.rounds)]
    base = middle(direct, "direct")
    results: dict[str, Any] = {"transport": transport, "era": era, "direct": base}
    for tools in (int(part) for part in given.tools.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(Path(folder), tools)
            found = [
                await measure(transport, era, bench, given.calls, given.soak)
                for _ in range(given.rounds)
            ]
        for way in ("by name", "by call_tool"):
            one = middle(found, way)
            ratio = round(one["cpu_ms"] / base["cpu_ms"], 2)
            results[f"{way}, {tools} tools"] = {**one, "ratio": ratio}
        if given.soak:
            results[f"soak, {tools} tools"] = [one["soak"] for one in found]
    return results


def middle(found: list[dict[str, dict[str, float]]], way: str) -> dict[str, float]:
    keys = ("cpu_ms", "p50_ms")
    return {key: round(statistics.median(one[way][key] for one in found), 3) for key in keys}


async def main(given: argparse.Namespace) -> None:
    results = [
        await compare(transport, era, given)
        for transport in ("stdio", "http")
        for era in ("legacy", "modern")
        if given.only in (None, transport)
    ]
    print(json.dumps({"calls": given.calls, "rounds": given.rounds, "results": results}, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tools", default="50,5000")
    parser.add_argument("--only", choices=["stdio", "http"])
    parser.add_argument("--soak", type=int, default=0)
    anyio.run(main, parser.parse_args())
