"""Halves of surrogate pairs, which JSON can spell and UTF-8 cannot, in both directions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.e2e.test_serving import free_port, gateway
from tests.gateway.support import ROOT, write
from tests.replicas.world import MODERN_META, message

SERVER = r"""
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOLS = [
    {"name": name, "description": "Says \ud800 and \U0001f600.",
     "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
    for name in ("say", "keep")
]

def answer(request):
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "odd", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        told = params["arguments"].get("text", "")
        text = "half \ud83d, whole \U0001f600, told " + ascii(told)
        if params["name"] == "keep":
            rows = [{"id": n, "text": text} for n in range(2000)]
            return {"content": [{"type": "text", "text": json.dumps(rows)}]}
        return {"content": [{"type": "text", "text": text}], "structuredContent": {"text": text}}

def reply(request):
    result = answer(request)
    body = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], **body})

class Web(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = reply(request).encode() if "id" in request else b""
        self.send_response(200 if text else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.send_error(405)

    def log_message(self, *said):
        pass

if sys.argv[1:]:
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Web).serve_forever()
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        print(reply(request), flush=True)
"""

HALF, WHOLE, REPLACED = "\ud83d", "\U0001f600", "\ufffd"


ERAS = ("modern", "legacy")
HELLO = {
    "protocolVersion": "2025-11-25", "capabilities": {},
    "clientInfo": {"name": "old", "version": "1"},
}  # fmt: skip


@pytest.fixture(params=["stdio", "http"])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """The odd server, as a process behind pipes or at an address."""
    script = tmp_path / "odd.py"
    script.write_text(SERVER)
    if request.param == "stdio":
        yield {"odd": {"command": sys.executable, "args": [str(script)]}}
        return
    port = free_port()
    process = subprocess.Popen([sys.executable, str(script), str(port)])
    try:
        yield {"odd": {"url": f"http://127.0.0.1:{port}/mcp"}}
    finally:
        process.kill()
        process.wait()


def asked(method: str, number: int, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def call(number: int, name: str, text: str) -> dict[str, Any]:
    return asked("tools/call", number, name=name, arguments={"text": text})


REQUESTS = [
    asked("tools/list", 1, lazy=False),
    call(2, "odd_say", "plain"),
    call(3, "odd_say", f"half {HALF}"),
    call(4, "odd_keep", "plain"),
    asked("tools/call", 5, name="search_tools", arguments={"query": f"say {HALF}"}),
    call(6, "odd_say", f"whole {WHOLE}"),
]


def requests(era: str) -> list[dict[str, Any]]:
    """The same requests as a client of either era sends them."""
    if era == "legacy":
        return [asked("initialize", 0, **HELLO), *REQUESTS]
    return [{**one, "params": {**one["params"], "_meta": MODERN_META}} for one in REQUESTS]


def check(answers: dict[int, dict[str, Any]], half: str) -> None:
    assert {t["name"] for t in answers[1]["result"]["tools"]} == {"odd_say", "odd_keep"}
    for number, told in ((2, "plain"), (6, f"whole {WHOLE}")):
        said = answers[number]["result"]
        text = said["content"][0]["text"]
        assert said["structuredContent"] == {"text": text}, "both parts stay equal"
        assert text == f"half {half}, whole {WHOLE}, told {told!a}"
    assert "error" in answers[3], "what cannot be passed on is refused, and not altered"
    assert "handle" in str(answers[4]["result"])
    assert "error" in answers[5]


@pytest.mark.parametrize("era", ERAS)
def test_on_stdio_nothing_breaks_and_nothing_else_changes(
    era: str, servers: dict[str, Any], tmp_path: Path
) -> None:
    config = str(write(tmp_path, servers))
    command = [sys.executable, "-m", "pegboard", "serve", "--config", config, "--mode", "proxy"]
    environ = {"PYTHONPATH": str(ROOT / "src"), "PEGBOARD_HOME": str(tmp_path / "home")}
    answers: dict[int, dict[str, Any]] = {}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for one in requests(era):
            process.stdin.write(json.dumps(one) + "\n")
            process.stdin.flush()
            while one["id"] not in answers:
                answer = json.loads(process.stdout.readline())
                answers[answer.get("id")] = answer
            if one["method"] == "initialize":
                done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                process.stdin.write(json.dumps(done) + "\n")
        process.stdin.close()
        assert process.wait(timeout=20) == 0
    check(answers, HALF if "command" in servers["odd"] else REPLACED)


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_over_http_a_half_is_replaced_and_nothing_else_changes(
    era: str, servers: dict[str, Any], tmp_path: Path
) -> None:
    async with (
        gateway(tmp_path, servers, "--mode", "proxy") as (url, _),
        httpx2.AsyncClient(timeout=20) as http,
    ):
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        answers: dict[int, dict[str, Any]] = {}

        async def send(body: dict[str, Any]) -> httpx2.Response:
            name = body.get("params", {}).get("name")
            about = {"Mcp-Method": body["method"], **({"Mcp-Name": name} if name else {})}
            sent = headers if era == "legacy" else {**headers, **about}
            return await http.post(f"{url}/mcp", content=json.dumps(body).encode(), headers=sent)

        headers |= {} if era == "legacy" else {"MCP-Protocol-Version": "2026-07-28"}
        for one in requests(era):
            answer = await send(one)
            answers[one["id"]] = message(answer)
            if one["method"] == "initialize":
                headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
                headers["MCP-Protocol-Version"] = "2025-11-25"
                await send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        check(answers, REPLACED)
