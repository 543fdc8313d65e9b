"""Two replicas on one Redis under many modern clients at once: errors, p50, p99, throughput.

    python -m benchmarks.company_load --clients 500 --requests 4

Needs `redis-server`. Each client is a connection of its own that searches and calls.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import anyio
import httpx2
from tests.real_redis import RedisServer
from tests.replicas.world import MODERN_META, World


def question(name: str, arguments: dict[str, object]) -> tuple[dict[str, str], dict[str, object]]:
    headers = {
        "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call", "Mcp-Name": name,
    }  # fmt: skip
    params = {"name": name, "arguments": arguments, "_meta": MODERN_META}
    return headers, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


async def load(urls: list[str], clients: int, requests: int) -> dict[str, object]:
    durations: list[float] = []
    errors: list[str] = []
    headers, body = question("search_tools", {"query": "list records of a report"})

    async def client(url: str, pool: httpx2.AsyncClient) -> None:
        for _ in range(requests):
            began = time.perf_counter()
            try:
                answer = await pool.post(f"{url}/mcp", headers=headers, json=body)
                if answer.status_code != 200 or "work_report" not in answer.text:
                    errors.append(answer.text[:200])
            except httpx2.HTTPError as exc:
                errors.append(repr(exc))
            durations.append(time.perf_counter() - began)

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=clients)
    async with httpx2.AsyncClient(timeout=120, limits=limits) as pool:
        began = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for number in range(clients):
                tasks.start_soon(client, urls[number % len(urls)], pool)
        seconds = time.perf_counter() - began
    ordered = sorted(durations)
    p50, p99 = statistics.median(ordered), ordered[int(len(ordered) * 0.99)]
    return {
        "replicas": len(urls), "clients": clients, "requests": len(durations),
        "errors": len(errors), "first error": errors[:1],
        "p50 ms": round(p50 * 1e3, 1), "p99 ms": round(p99 * 1e3, 1),
        "p99 / p50": round(p99 / p50, 1), "requests/s": round(len(durations) / seconds),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--requests", type=int, default=4)
    options = parser.parse_args()
    program = shutil.which("redis-server")
    if program is None:
        raise SystemExit("redis-server is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        redis = RedisServer(program, folder, "--save", "")
        redis.start()
        world = World(folder, f"redis://127.0.0.1:{redis.port}/0")
        try:
            urls = [world.start().url, world.start().url]
            rows = [
                anyio.run(load, chosen, options.clients, options.requests)
                for chosen in (urls[:1], urls)
            ]
        finally:
            world.stop()
            redis.stop()
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
