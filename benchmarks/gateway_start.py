"""How soon a gateway in front of many servers answers, and what it holds. Prints JSON.

    python benchmarks/gateway_start.py [--servers 70] [--tools 8] [--rounds 5]

Measured from starting `pegboard serve` on stdio to the answer of `tools/list`: with an empty cache
folder (first start), and again (second start), beside `python -c "import mcp"` on the same machine
in the same run, and the CPU that each used by then, which other load on the machine changes less.
`children` counts child processes after the list and a search were answered; then
one tool is called.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from gateway_servers import configuration

PROTOCOL = "2025-11-25"


class Gateway:
    """`pegboard serve` and the smallest client that can speak to it, so that no client is timed."""

    def __init__(self, config: Path, home: Path, *options: str) -> None:
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pegboard", "serve", "--config", str(config), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PEGBOARD_HOME": str(home)},
        )
        self.number = 0
        client = {"name": "benchmark", "version": "1"}
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
        self.request("initialize", hello)
        self.greeted = time.perf_counter() - self.began
        self.send({"method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        assert self.process.stdout
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params or {}})
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit("the gateway ended")
            message = json.loads(line)
            if message.get("id") == self.number and "method" not in message:
                return message["result"]

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], float]:
        began = time.perf_counter()
        result = self.request("tools/call", {"name": name, "arguments": arguments})
        return result, time.perf_counter() - began

    def cpu(self) -> float:
        """Seconds of CPU that it has used, its servers not counted."""
        text = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2]
        return sum(map(int, text.split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def children(self) -> int:
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(len((task / "children").read_text().split()) for task in tasks)

    def memory(self) -> float:
        """Resident megabytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(30)


def start(config: Path, home: Path) -> dict[str, Any]:
    gateway = Gateway(config, home)
    try:
        listed = gateway.request("tools/list")
        seconds, cpu = time.perf_counter() - gateway.began, gateway.cpu()
        _, first_search = gateway.call("search_tools", {"query": "archive an old invoice"})
        searches = [gateway.call("search_tools", {"query": q})[1] for q in QUERIES]
        children = gateway.children()
        name = "server3_create_issue_0"
        called, call_seconds = gateway.call("call_tool", {"name": name, "arguments": CALL})
        return {
            "greeted_s": round(gateway.greeted, 3),
            "listed_s": round(seconds, 3),
            "listed_cpu_s": round(cpu, 3),
            "listed_tools": len(listed["tools"]),
            "first_search_ms": round(first_search * 1e3, 1),
            "search_ms": round(statistics.median(searches) * 1e3, 1),
            "children": children,
            "first_call_ms": round(call_seconds * 1e3, 1),
            "call_failed": bool(called.get("isError")),
            "children_after_call": gateway.children(),
            "memory_mb": round(gateway.memory(), 1),
        }
    finally:
        gateway.close()


QUERIES = ("close a ticket", "who opened the branch", "export invoices", "restore a build")
CALL = {"project": "x"}


def import_mcp(rounds: int) -> tuple[float, float]:
    """Seconds, and seconds of CPU, that importing the SDK takes."""
    times: list[tuple[float, float]] = []
    for _ in range(rounds):
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", "import mcp"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        times.append((time.perf_counter() - began, cpu))
    return statistics.median(t for t, _ in times), statistics.median(c for _, c in times)


def main(servers: int, tools: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        config, home = Path(folder) / "mcp.json", Path(folder) / "home"
        config.write_text(json.dumps(configuration(servers, tools)))
        bare, bare_cpu = import_mcp(rounds)
        first = start(config, home)
        wait_for_catalogues(config, home, servers)
        again = [start(config, home) for _ in range(rounds)]
    second = {
        key: again[0][key] if isinstance(again[0][key], bool) else round(middle, 3)
        for key in again[0]
        for middle in [statistics.median(one[key] for one in again)]
    }
    return {
        "servers": servers,
        "tools": servers * tools,
        "import_mcp_s": round(bare, 3),
        "import_mcp_cpu_s": round(bare_cpu, 3),
        "first": first,
        "second": second,
        "second_over_import_s": round(second["listed_s"] - bare, 3),
        "second_over_import_cpu_s": round(second["listed_cpu_s"] - bare_cpu, 3),
    }


def wait_for_catalogues(config: Path, home: Path, servers: int) -> None:
    """Let a gateway finish its first look, however long that takes on this machine."""
    gateway = Gateway(config, home)
    gateway.request("tools/list")
    folder = home / "catalogues"
    deadline = time.monotonic() + 120
    while len(list(folder.glob("*.catalogue"))) < servers and time.monotonic() < deadline:
        time.sleep(0.1)
    gateway.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, default=70)
    parser.add_argument("--tools", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(json.dumps(main(given.servers, given.tools, given.rounds), indent=1))
