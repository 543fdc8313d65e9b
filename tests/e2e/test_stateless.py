"""`stateless = true` of a server over real HTTP: one connection to it, however many clients."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client
from tests.e2e.test_serving import free_port, running_gateway
from tests.gateway.support import said

pytestmark = pytest.mark.anyio

SERVER = r"""
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

opened = Path(sys.argv[2])
ANSWERS = {
    "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                   "serverInfo": {"name": "old", "version": "1"}},
    "tools/list": {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "told"}]},
}

class Old(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, body = request["method"], b""
        if "id" in request:
            found = ANSWERS.get(method)
            end = {"result": found} if found else {"error": {"code": -32601, "message": "no"}}
            body = json.dumps({"jsonrpc": "2.0", "id": request["id"], **end}).encode()
        if method == "initialize":
            with opened.open("a") as file:
                file.write("opened\n")
        self.send_response(200 if body else 202)
        if method == "initialize":
            self.send_header("Mcp-Session-Id", "s" + str(len(opened.read_text())))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_error(405)

    def do_DELETE(self):
        self.send_error(405)

    def log_message(self, *said):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Old).serve_forever()
"""


@pytest.fixture
def old_server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a server of the session era, and where it notes each session."""
    script, opened, port = tmp_path / "old.py", tmp_path / "opened.txt", free_port()
    script.write_text(SERVER)
    process = subprocess.Popen([sys.executable, str(script), str(port), str(opened)])
    yield f"http://127.0.0.1:{port}/mcp", opened
    process.kill()
    process.wait()


CLIENTS = 5


@pytest.mark.parametrize(("stateless", "sessions"), [("true", 1), ("false", CLIENTS)])
async def test_a_server_that_keeps_nothing_is_shared_by_clients_with_sessions(
    stateless: str, sessions: int, old_server: tuple[str, Path], tmp_path: Path
) -> None:
    """Give or take two: listing the server's tools in the background may open a session too."""
    address, opened = old_server
    config = tmp_path / "pegboard.toml"
    config.write_text(f'[servers.old]\nurl = "{address}"\nstateless = {stateless}\n')
    async with running_gateway(tmp_path, config) as (url, _):
        before = len(opened.read_text().splitlines())  # to list it
        for _ in range(CLIENTS):
            async with Client(f"{url}/mcp", mode="legacy", cache=None) as client:
                for _ in range(2):
                    assert said(await client.call_tool("old_ask", {})) == "told"
        assert abs(len(opened.read_text().splitlines()) - before - sessions) <= 2
