"""FastMCP as a contestant; run by the Python of the peers' environment, never by ours.

fastmcp_peer.py proxy CONFIG [bm25|regex|none] [PORT]    a proxy of an mcpServers file
fastmcp_peer.py native CATALOGUE [bm25|regex] [markdown]  a server that has the tools itself
fastmcp_peer.py rank CATALOGUE QUERIES [bm25|regex]       names found, one JSON line per query
fastmcp_peer.py scale CATALOGUE COUNT                     cost of search with so many tools
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from fastmcp import FastMCP
from fastmcp.server import create_proxy
from fastmcp.server.transforms.search import BM25SearchTransform, RegexSearchTransform
from fastmcp.server.transforms.search.base import serialize_tools_for_output_markdown
from fastmcp.tools.base import Tool, ToolResult

QUERIES = (
    "find a file by its name",
    "send a message to the team",
    "who is free today",
    "archive an old invoice",
    "translate a page into French",
    "weather in the mountains tomorrow",
)


class Echo(Tool):
    """Answers with what arrived, as the catalogue server does."""

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
    server = FastMCP("catalogue")
    for tool in tools_of(path):
        server.add_tool(tool)
    server.add_transform(transform(kind, markdown))
    return server


def pattern(query: str) -> str:
    """What a model would write for the regex search: the words, any of them."""
    return "|".join(word for word in re.findall(r"\w+", query.lower()) if len(word) > 3) or query


def words(kind: str, query: str) -> str:
    return pattern(query) if kind == "regex" else query


async def rank(path: str, queries: str, kind: str) -> None:
    tools, chosen = tools_of(path), transform(kind)
    chosen._max_results = 10
    for query in _json(queries):
        found = await chosen._search(tools, words(kind, query))
        print(json.dumps([getattr(tool, "called", tool.name) for tool in found]))


async def scale(path: str, count: int) -> None:
    from fastmcp import Client

    server = FastMCP("catalogue")
    base, before = tools_of(path), time.perf_counter()
    for number in range(count):
        tool = base[number % len(base)]
        name = f"{tool.name}_{number // len(base)}"
        server.add_tool(tool.model_copy(update={"name": name}))
    server.add_transform(transform("bm25"))
    async with Client(server) as client:
        await client.call_tool("search_tools", {"query": "create an issue"})
        ready = time.perf_counter() - before
        times: list[float] = []
        for query in QUERIES:
            began = time.perf_counter()
            await client.call_tool("search_tools", {"query": query})
            times.append(time.perf_counter() - began)
    figures = {"ready_s": ready, "search_ms": statistics.median(times) * 1e3}
    print(json.dumps({**figures, "memory_mb": _memory_mb()}))


def _json(path: str) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"))


def _memory_mb() -> float:
    resident = Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]
    return int(resident) / 1024


def proxy(config: str, kind: str = "bm25", port: str | None = None) -> None:
    server = create_proxy(json.loads(Path(config).read_text(encoding="utf-8")))
    if kind != "none":
        server.add_transform(transform(kind))
    if port is None:
        server.run(show_banner=False)
    else:
        server.run("http", host="127.0.0.1", port=int(port), show_banner=False, log_level="ERROR")


def main(role: str, *given: str) -> None:
    if role == "proxy":
        proxy(*given)
    elif role == "native":
        native(given[0], given[1], "markdown" in given[2:]).run(show_banner=False)
    elif role == "rank":
        asyncio.run(rank(*given))
    else:
        asyncio.run(scale(given[0], int(given[1])))


if __name__ == "__main__":
    main(*sys.argv[1:])
