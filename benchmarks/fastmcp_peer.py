"""FastMCP as a contestant; run by the Python of the peers' environment, never by ours.

fastmcp_peer.py proxy CONFIG [bm25|regex|none] [PORT]    a proxy of an mcpServers file
fastmcp_peer.py native CATALOG [bm25|regex] [markdown]  a server that has the tools itself
fastmcp_peer.py scale CATALOG COUNT QUERIES ranking|whole   cost of search with so many tools
fastmcp_peer.py limit CONFIG BYTES                        a proxy that cuts long results
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.server import create_proxy
from fastmcp.server.middleware.response_limiting import ResponseLimitingMiddleware
from fastmcp.server.transforms.search import BM25SearchTransform, RegexSearchTransform
from fastmcp.server.transforms.search.base import serialize_tools_for_output_markdown
from fastmcp.tools.base import Tool, ToolResult


class Echo(Tool):
    """Answers with what arrived, as the catalog server does."""

    called: str = ""

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult(content=json.dumps({"called": self.called, "arguments": arguments}))


def transform(kind: str, markdown: bool = False) -> Any:
    chosen = {"bm25": BM25SearchTransform, "regex": RegexSearchTransform}[kind]
    if markdown:
        return chosen(search_result_serializer=serialize_tools_for_output_markdown)
    return chosen()


def tools_of(path: str) -> list[Tool]:
    records = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    return [
        Echo(
            name=f"{r.get('server') or 'server'}_{r['name']}",
            description=r.get("description") or "",
            parameters=r.get("inputSchema") or {"type": "object"},
            called=f"{r.get('server') or ''}/{r['name']}",
        )
        for r in records
    ]


def native(path: str, kind: str, markdown: bool = False) -> FastMCP:
    server = FastMCP("catalog")
    for tool in tools_of(path):
        server.add_tool(tool)
    server.add_transform(transform(kind, markdown))
    return server


async def scale(path: str, count: int, queries: list[str], kind: str) -> None:
    """Cost of its search with so many tools: its ranking alone, or asked through a client."""
    base = tools_of(path)[:5_000]
    tools = [
        tool.model_copy(update={"name": f"{tool.name}_{number // len(base)}"})
        for number in range(count)
        for tool in [base[number % len(base)]]
    ]
    before = time.perf_counter()
    if kind == "ranking":
        chosen = transform("bm25")
        await timed(lambda query: chosen._search(tools, query), queries, before)
        return
    server = FastMCP("catalog")
    for tool in tools:
        server.add_tool(tool)
    server.add_transform(transform("bm25"))
    async with Client(server) as client:
        await timed(
            lambda query: client.call_tool("search_tools", {"query": query}), queries, before
        )


async def timed(search: Callable[[str], Any], queries: list[str], before: float) -> None:
    if not await search("create an issue"):
        raise SystemExit("nothing was found")
    ready = time.perf_counter() - before
    times: list[float] = []
    for query in queries:
        began = time.perf_counter()
        await search(query)
        times.append(time.perf_counter() - began)
    figures = {"ready_s": ready, "search_ms": statistics.median(times) * 1e3}
    print(json.dumps({**figures, "memory_mb": _memory_mb()}))


def _json(path: str) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"))


def _memory_mb() -> float:
    resident = Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]
    return int(resident) / 1024


def proxy(config: str, kind: str = "bm25", port: str | None = None) -> None:
    server = create_proxy(_json(config))
    if kind != "none":
        server.add_transform(transform(kind))
    if port is None:
        server.run(show_banner=False)
    else:
        server.run("http", host="127.0.0.1", port=int(port), show_banner=False, log_level="ERROR")


def limit(config: str, size: int) -> None:
    server = create_proxy(_json(config))
    server.add_middleware(ResponseLimitingMiddleware(max_size=size))
    server.run(show_banner=False)


def main(role: str, *given: str) -> None:
    if role == "proxy":
        proxy(*given)
    elif role == "native":
        native(given[0], given[1], "markdown" in given[2:]).run(show_banner=False)
    elif role == "limit":
        limit(given[0], int(given[1]))
    else:
        asyncio.run(scale(given[0], int(given[1]), _json(given[2]), given[3]))


if __name__ == "__main__":
    main(*sys.argv[1:])
