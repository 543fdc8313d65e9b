"""Real gateway processes on one real Redis, in front of one small server."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

SERVER = """
import sys, time
from pathlib import Path
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

here = Path(__file__).parent
server = MCPServer("work")

@server.tool(description="Lists many records.")
def report(rows: int) -> list[dict]:
    return [{"id": n, "text": f"record number {n} of a long report"} for n in range(rows)]

@server.tool(description="Waits, then answers.")
def wait(seconds: float) -> str:
    time.sleep(seconds)
    return "waited"

@server.tool(description="Answers at once.")
def quick() -> str:
    return "quick"

@server.tool(description="Always fails because its backend is down.")
def broken() -> str:
    raise ToolError("connection refused by the database at db:5432")

if (here / "more").exists():
    @server.tool(description="A tool that came later.")
    def later() -> str:
        return "late"

server.run()
"""

MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@dataclass
class Replica:
    """One gateway process."""

    process: subprocess.Popen[str]
    url: str
    log: Path
    client: httpx2.Client = field(default_factory=lambda: httpx2.Client(timeout=30))

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The JSON-RPC answer to one request of the modern era."""
        return message(self.post(method, **params))

    def listed(self) -> set[str]:
        """The names of all tools that can be called."""
        return {tool["name"] for tool in self.ask("tools/list", lazy=False)["result"]["tools"]}

    def decide(self, section: str, action: str, **form: str) -> None:
        """Post a form of the page, as an operator does."""
        page = f"{self.url}/ui/{section}"
        shown = self.client.get(page, params={"id": form["id"]} if "id" in form else None).text
        proof = shown.split('name="csrf_token" value="')[1].split('"')[0]
        answer = self.client.post(f"{page}/{action}", data={"csrf_token": proof, **form})
        assert answer.status_code == 303, answer.text

    def kill(self) -> None:
        """End it as a crash of the machine would."""
        self.process.kill()
        self.process.wait()

    def post(self, method: str, *, meta: Any = None, **params: Any) -> httpx2.Response:
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            **({"Mcp-Name": params["name"]} if "name" in params else {}),
        }
        params = {**params, "_meta": {**MODERN_META, **(meta or {})}}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.client.post(f"{self.url}/mcp", json=body, headers=headers)

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The result of one call."""
        answer = self.ask("tools/call", name=name, arguments=arguments)
        assert "result" in answer, (answer, self.log.read_text())
        return answer["result"]

    def text(self, name: str, **arguments: Any) -> str:
        """The text of one call's result."""
        return self.call(name, **arguments)["content"][0]["text"]

    def open_session(self) -> str:
        """The id of a new legacy session."""
        body = {
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "old", "version": "1"},
            },
        }  # fmt: skip
        answer = self.legacy(body)
        session = answer.headers["mcp-session-id"]
        self.legacy({"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
        return session

    def legacy(self, body: dict[str, Any], session: str | None = None) -> httpx2.Response:
        headers = {"Accept": "application/json, text/event-stream"}
        if session is not None:
            headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
        return self.client.post(f"{self.url}/mcp", json=body, headers=headers)


def message(answer: httpx2.Response) -> dict[str, Any]:
    if answer.headers["content-type"].startswith("text/event-stream"):
        data = [line[5:] for line in answer.text.splitlines() if line.startswith("data:")]
        return json.loads(data[-1])
    return answer.json()


@dataclass
class World:
    """A folder with a configuration, and the gateways that were started with it."""

    folder: Path
    store: str
    settings: str = ""
    mode: str = "proxy"
    server: str = SERVER
    replicas: list[Replica] = field(default_factory=list[Replica])

    def __post_init__(self) -> None:
        (self.folder / "server.py").write_text(self.server)
        command, script = json.dumps(sys.executable), json.dumps(str(self.folder / "server.py"))
        (self.folder / "pegboard.toml").write_text(
            f'mode = "{self.mode}"\n{self.settings}\n[store]\nurl = "{self.store}"\n'
            f"[calls]\nbreaker_failures = 2\nbreaker_cooldown = 60.0\n"
            f"[servers.work]\ncommand = {command}\nargs = [{script}]\n"
        )

    @property
    def config(self) -> str:
        return str(self.folder / "pegboard.toml")

    def start(
        self,
        *,
        home: str = "kept",
        options: Sequence[str] = (),
        until_ready: bool = True,
        **environment: str,
    ) -> Replica:
        """Start a gateway and wait until it is ready; what it prints is beside its log."""
        self._know_tools(home)
        port = free_port()
        log = self.folder / f"{port}.log"
        line = [
            sys.executable, "-m", "pegboard", "serve", "--config", self.config,
            "--http", f"127.0.0.1:{port}", *options,
        ]  # fmt: skip
        environ = {**os.environ, "PEGBOARD_HOME": str(self.folder / home), **environment}
        with log.open("w") as stderr, log.with_suffix(".out").open("w") as stdout:
            process = subprocess.Popen(line, stdout=stdout, stderr=stderr, env=environ, text=True)
        replica = Replica(process, f"http://127.0.0.1:{port}", log)
        self.replicas.append(replica)
        if until_ready:
            _wait_ready(replica)
        return replica

    def _know_tools(self, home: str) -> None:
        """Have the server listed once, so that gateways on a busy machine need not wait for it."""
        if not (self.folder / home).exists():
            listed = self.command("list", PEGBOARD_HOME=str(self.folder / home))
            assert listed.returncode == 0, listed.stderr

    def command(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """One command of the command line."""
        line = [sys.executable, "-m", "pegboard", *words, "--config", self.config]
        environ = {**os.environ, **environment}
        return subprocess.run(line, capture_output=True, text=True, check=False, env=environ)

    def stop(self) -> None:
        for replica in self.replicas:
            replica.client.close()
            if replica.process.poll() is None:
                replica.process.send_signal(signal.SIGTERM)
        for replica in self.replicas:
            try:
                replica.process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                replica.process.kill()
                replica.process.wait()


def handle_in(text: str) -> str:
    """The handle in a spill notice."""
    found = re.search(r'"?handle"?[:=] ?"?([A-Za-z0-9_-]+)', text)
    assert found, text
    return found.group(1)


def _wait_ready(replica: Replica) -> None:
    with httpx2.Client() as client:
        for _ in range(600):
            try:
                if client.get(f"{replica.url}/ready").status_code == 200:
                    return
            except httpx2.HTTPError:
                pass
            try:
                replica.process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            break
    raise AssertionError(f"not ready: {replica.log.read_text()}")
