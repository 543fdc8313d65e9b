"""Modern clients that cost little themselves: one connection each, bytes in and bytes out.

    python -m benchmarks.company_clients 500 4 http://127.0.0.1:8000 http://127.0.0.1:8001

Prints every duration in seconds, and what went wrong.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from urllib.parse import urlsplit

from tests.replicas.world import MODERN_META

QUERY = "list records of a report"
EXPECTED = b"work_report"


def request_to(host: str) -> bytes:
    """One search as it goes over the wire."""
    params = {"name": "search_tools", "arguments": {"query": QUERY}, "_meta": MODERN_META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    head = [
        "POST /mcp HTTP/1.1", f"Host: {host}", "Accept: application/json, text/event-stream",
        "Content-Type: application/json", "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call", "Mcp-Name: search_tools", f"Content-Length: {len(body)}", "", "",
    ]  # fmt: skip
    return "\r\n".join(head).encode() + body.encode()


async def answer(reader: asyncio.StreamReader) -> bytes:
    """The whole of one answer with a length."""
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise ValueError(head[:100].decode())
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return await reader.readexactly(int(value))
    raise ValueError("an answer without a length")


async def client(url: str, requests: int, durations: list[float], errors: list[str]) -> None:
    parts = urlsplit(url)
    asked = request_to(parts.netloc)
    try:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        for _ in range(requests):
            began = time.perf_counter()
            writer.write(asked)
            if EXPECTED not in await answer(reader):
                errors.append("a wrong answer")
            durations.append(time.perf_counter() - began)
        writer.close()
    except (OSError, ValueError, asyncio.IncompleteReadError) as exc:
        errors.append(repr(exc)[:200])


async def load(urls: list[str], clients: int, requests: int) -> dict[str, object]:
    """All clients at once; how long each request took, and the whole."""
    durations: list[float] = []
    errors: list[str] = []
    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number in range(clients):
            tasks.create_task(client(urls[number % len(urls)], requests, durations, errors))
    return {"seconds": time.perf_counter() - began, "durations": durations, "errors": errors}


if __name__ == "__main__":
    clients, requests, *urls = sys.argv[1:]
    print(json.dumps(asyncio.run(load(urls, int(clients), int(requests)))))
