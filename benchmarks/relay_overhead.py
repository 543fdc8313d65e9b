"""CPU and time per relayed `tools/call`, against the same call made directly. Prints JSON.

    python benchmarks/relay_overhead.py [--calls 500] [--rounds 3] [--only stdio|http]

For each transport and era the same server is called by the same client, first directly and then
through a gateway: a low-level SDK server whose middleware hands every call to the relay. Reported
is the CPU that the process in question used per call (user and system, from `/proc`): the server
when it is called directly, the gateway when it stands between. `ratio` is the one over the other.
The median of several rounds counts.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio

HERE = os.path.abspath(__file__)
TICKS = os.sysconf("SC_CLK_TCK")
SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "limit": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
ARGUMENTS = {"query": "a short question", "limit": 10, "tags": ["one", "two"]}


# The two processes that are measured.


def make_server() -> Any:
    import mcp_types as t
    from mcp.server.lowlevel.server import Server

    schema = SCHEMA

    async def list_tools(ctx: Any, params: Any) -> t.ListToolsResult:
        return t.ListToolsResult(tools=[t.Tool(name="search", input_schema=schema)])

    async def call_tool(ctx: Any, params: Any) -> t.CallToolResult:
        text = json.dumps({"pid": os.getpid(), "hits": [f"hit {n}" for n in range(10)]})
        return t.CallToolResult(content=[t.TextContent(type="text", text=text)])

    return Server(
        "direct",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda name: schema,
    )


def make_gateway(spec: Any) -> Any:
    from mcp.server.lowlevel.server import Server

    from pegboard.core.calls import Call, Caller
    from pegboard.core.tools import Tool, constant
    from pegboard.upstream.eras import era_of
    from pegboard.upstream.pool import Pool
    from pegboard.upstream.relay import Relay
    from pegboard.upstream.source import UpstreamSource

    schema = SCHEMA
    tool = Tool("search", constant(schema), server=spec.name)

    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncGenerator[Any]:
        async with Pool([spec]) as pool:
            yield UpstreamSource(spec, Relay(pool), [tool])

    async def list_tools(ctx: Any, params: Any) -> Any:
        import mcp_types as t

        return t.ListToolsResult(tools=[t.Tool(name="search", input_schema=schema)])

    async def relay(ctx: Any, call_next: Any) -> Any:
        if ctx.method != "tools/call":
            return await call_next(ctx)
        era = era_of(ctx.protocol_version)
        session = str(id(ctx.session._connection)) if era == "legacy" else None
        params = {k: v for k, v in ctx.params.items() if k not in ("name", "arguments")}
        result = await ctx.lifespan_context.call(
            Call(
                tool,
                ctx.params.get("arguments") or {},
                caller=Caller(era=era, session=session),
                params=params,
                request=ctx,
            )
        )
        return {"_meta": {"gateway": os.getpid()}, **result.wire}

    server: Any = Server(
        "gateway",
        version="1",
        lifespan=lifespan,
        on_list_tools=list_tools,
        get_tool_input_schema=lambda name: schema,
    )
    server.middleware.append(relay)
    return server


def run(server: Any, port: int | None) -> None:
    if port is not None:
        import uvicorn

        app = server.streamable_http_app()
        uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")
        return
    if server.name == "gateway":
        from pegboard.server.stdio import stdio_streams as streams
    else:
        from mcp.server.stdio import stdio_server as streams

    async def main() -> None:
        async with streams() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(main)


# Measuring.


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used, children not counted."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def http_process(*args: str, program: str = HERE) -> AsyncGenerator[str]:
    """A server of ours on a free port, by its URL."""
    port = free_port()
    command = [sys.executable, program, *args, "--port", str(port)]
    async with await anyio.open_process(command, stdout=None, stderr=None) as process:
        try:
            with anyio.fail_after(30):
                while True:
                    try:
                        async with await anyio.connect_tcp("127.0.0.1", port):
                            break
                    except OSError:
                        await anyio.sleep(0.05)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


@asynccontextmanager
async def target(transport: str, through: bool) -> AsyncGenerator[Any]:
    """What a client connects to: the server itself, or a gateway in front of it."""
    from mcp import StdioServerParameters

    env = dict(os.environ)
    if transport == "stdio":
        role = "gateway" if through else "server"
        yield StdioServerParameters(command=sys.executable, args=[HERE, role], env=env)
        return
    async with http_process("server") as url:
        if not through:
            yield url
            return
        async with http_process("gateway", "--upstream", url) as front:
            yield front


async def measure(transport: str, era: str, through: bool, calls: int) -> dict[str, float]:
    from mcp import Client

    mode = "legacy" if era == "legacy" else "auto"
    async with (
        target(transport, through) as where,
        Client(where, mode=mode, cache=None) as client,
    ):
        await client.list_tools()
        first = await client.call_tool("search", ARGUMENTS)
        pid = (
            (first.meta or {}).get("gateway")
            if through
            else json.loads(first.content[0].text)["pid"]
        )  # type: ignore[union-attr]
        for _ in range(50):
            await client.call_tool("search", ARGUMENTS)
        began, times = cpu_of(int(pid)), []
        for _ in range(calls):
            before = time.perf_counter()
            await client.call_tool("search", ARGUMENTS)
            times.append(time.perf_counter() - before)
        used = cpu_of(int(pid)) - began
    return {"cpu_ms": used / calls * 1e3, "p50_ms": statistics.median(times) * 1e3}


async def compare(transport: str, era: str, calls: int, rounds: int) -> dict[str, Any]:
    found: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    for _ in range(rounds):
        for through in (False, True):
            found[through].append(await measure(transport, era, through, calls))

    def middle(through: bool, key: str) -> float:
        return round(statistics.median(one[key] for one in found[through]), 3)

    direct, relayed = middle(False, "cpu_ms"), middle(True, "cpu_ms")
    return {
        "transport": transport,
        "era": era,
        "direct": {key: middle(False, key) for key in ("cpu_ms", "p50_ms")},
        "relayed": {key: middle(True, key) for key in ("cpu_ms", "p50_ms")},
        "ratio": round(relayed / direct, 2),
    }


async def main(arguments: argparse.Namespace) -> None:
    results = [
        await compare(transport, era, arguments.calls, arguments.rounds)
        for transport in ("stdio", "http")
        for era in ("legacy", "modern")
        if arguments.only in (None, transport)
    ]
    print(json.dumps({"calls": arguments.calls, "rounds": arguments.rounds, "results": results}))


def upstream(url: str | None) -> Any:
    from pegboard.upstream.spec import UpstreamSpec

    if url:
        return UpstreamSpec("up", transport="http", url=url)
    return UpstreamSpec("up", command=sys.executable, args=(HERE, "server"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", nargs="?", choices=["server", "gateway"])
    parser.add_argument("--port", type=int)
    parser.add_argument("--upstream")
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["stdio", "http"])
    given = parser.parse_args()
    if given.role == "server":
        run(make_server(), given.port)
    elif given.role == "gateway":
        run(make_gateway(upstream(given.upstream)), given.port)
    else:
        anyio.run(main, given)
