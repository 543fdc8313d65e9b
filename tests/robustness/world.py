"""Real gateway processes under attack, and a bystander who notices when others are held up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Self

import httpx2
from tests.gateway.support import ROOT, SERVERS
from tests.replicas.world import MODERN_META, free_port, message

NOTICEABLE = 0.2
"""Seconds that one request may delay another client; tests allow for a busy machine beside."""


@dataclass
class Gateway:
    """A `pegboard serve --http` process."""

    process: subprocess.Popen[str]
    url: str
    log: Path
    headers: dict[str, str] = field(default_factory=dict[str, str])

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, timeout=60, headers=self.headers)

    def health(self) -> int | None:
        """The status of `/health`; `None` when nobody answers."""
        with suppress(httpx2.TransportError):
            return httpx2.get(f"{self.url}/health", timeout=5).status_code
        return None

    def post(self, method: str, **params: Any) -> httpx2.Response:
        """One request of the modern era."""
        with self.client() as client:
            return post(client, method, **params)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return message(self.post(method, **params))

    def call(self, name: str, arguments: Any) -> dict[str, Any]:
        answer = self.ask("tools/call", name=name, arguments=arguments)
        assert "result" in answer, answer
        return answer["result"]

    def text(self, name: str, arguments: Any) -> str:
        return self.call(name, arguments)["content"][0]["text"]

    def names(self) -> set[str]:
        tools = self.ask("tools/list", lazy=False)["result"]["tools"]
        return {tool["name"] for tool in tools}

    def memory(self) -> float:
        """Resident megabytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


def post(client: httpx2.Client, method: str, **params: Any) -> httpx2.Response:
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
    }
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    params = {**params, "_meta": MODERN_META}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.post("/mcp", json=body, headers=headers)


def initialize(client: httpx2.Client, name: str = "old", **params: Any) -> httpx2.Response:
    """The first request of the session era."""
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": name, "version": "1"},
        **params,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    return client.post("/mcp", json=body, headers={"Accept": "application/json, text/event-stream"})


def tool(name: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema}


def listed(folder: Path, name: str, *tools: Any) -> dict[str, Any]:
    """A server of a configuration that lists exactly these tools."""
    path = folder / f"{name}.tools.json"
    path.write_text(json.dumps(tools))
    return {"command": sys.executable, "args": [str(SERVERS / "listed.py"), str(path)]}


def write(folder: Path, servers: dict[str, Any], settings: str = "") -> Path:
    """A configuration of ours with these servers."""
    tables = [
        f"[servers.{json.dumps(name)}]\n"
        + "".join(f"{key} = {json.dumps(value)}\n" for key, value in server.items())
        for name, server in servers.items()
    ]
    path = folder / "pegboard.toml"
    path.write_text("\n".join([settings, *tables]))
    return path


@contextmanager
def started(folder: Path, config: Path, *options: str, **environ: str) -> Generator[Gateway]:
    """A gateway process; its log is in `stderr.txt`."""
    port = free_port()
    line = [sys.executable, "-m", "pegboard", "serve", "--config", str(config)]
    line += ["--http", f"127.0.0.1:{port}", *options]
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "PEGBOARD_HOME": str(folder / "home"),
        **environ,
    }
    log = folder / "stderr.txt"
    with log.open("a") as stderr:
        process = subprocess.Popen(line, stderr=stderr, env=env, text=True)
    try:
        yield Gateway(process, f"http://127.0.0.1:{port}", log)
    finally:
        if process.poll() is None:
            process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()


@contextmanager
def running(folder: Path, config: Path, *options: str, **environ: str) -> Generator[Gateway]:
    """A gateway process that is ready."""
    with started(folder, config, *options, **environ) as gateway:
        wait_until(lambda: _is_ready(gateway), "the gateway is ready", gateway.log)
        yield gateway


def _is_ready(gateway: Gateway) -> bool:
    assert gateway.process.poll() is None, gateway.log.read_text()
    with suppress(httpx2.TransportError):
        return httpx2.get(f"{gateway.url}/ready", timeout=5).status_code == 200
    return False


def wait_until(condition: Any, what: str, log: Path | None = None, seconds: float = 30) -> None:
    """Return when the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(
                f"not within {seconds} s: {what}\n{log.read_text() if log else ''}"
            )
        time.sleep(0.05)


class Bystander:
    """Another client, who lists tools all the time and notes how long that takes."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.allowance = 0.0
        self.delays: list[float] = []
        self.statuses: set[int] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: len(self.delays) > 5, "the bystander is served", self._gateway.log)
        # The promise is 0.2 s on a quiet machine, where an answer takes a few milliseconds, and
        # `python -m tests.fuzz` measures it. On one that is busy with other tests everything takes
        # longer, so this only tells it from an attack that succeeds: those took 8 to 213 s.
        self.allowance = max(3.0, 20 * median(self.delays))
        self.delays.clear()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with self._gateway.client() as client:
            while not self._stop.is_set():
                began = time.monotonic()
                self.statuses.add(post(client, "tools/list").status_code)
                self.delays.append(time.monotonic() - began)
                self._stop.wait(0.01)

    @property
    def worst(self) -> float:
        return max(self.delays)
