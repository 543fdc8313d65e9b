"""Answers that are not what MCP allows: each fails its own call, at once, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from mcp import Client
from tests.e2e.test_serving import free_port
from tests.gateway.support import served

pytestmark = pytest.mark.anyio

SERVER = r"""
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWERS = {
    "fine": '{"content": [{"type": "text", "text": "fine"}]}',
    "new_kind": '{"content": [{"type": "hologram", "data": 5}, {"type": "text", "text": "x"}]}',
    "no_list": '{"content": "text"}',
    "no_content": '{"content": null}',
    "no_blocks": '{"content": [5, null, "x"]}',
    "no_type": '{"content": [{"text": "x"}]}',
    "odd_text": '{"content": [{"type": "text", "text": {"a": 1}}]}',
    "odd_image": '{"content": [{"type": "image", "data": 5, "mimeType": "image/png"}]}',
    "odd_resource": '{"content": [{"type": "resource", "resource": []}]}',
    "odd_meta": '{"content": [], "_meta": [1]}',
    "too_deep": '{"content": [], "structuredContent": {"a": ' + "[" * 900 + "]" * 900 + "}}",
    "far_too_deep": '{"content": [], "structuredContent": ' + "[" * 50000 + "]" * 50000 + "}",
    "no_json": '{"content": [}',
}
TOOLS = [{"name": n, "description": n, "inputSchema": {"type": "object"},
          "annotations": {"readOnlyHint": True}} for n in ANSWERS]
TOOLS.append({"name": "x" * 100000, "inputSchema": {"type": "object"}})

def reply(request):
    method = request["method"]
    if method == "initialize":
        result = json.dumps({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "odd", "version": "1"}})
    elif method == "tools/list":
        result = json.dumps({"tools": TOOLS})
    elif method == "tools/call":
        result = ANSWERS[request["params"]["name"]]
    else:
        return json.dumps({"jsonrpc": "2.0", "id": request["id"],
                           "error": {"code": -32601, "message": "no"}})
    return '{"jsonrpc": "2.0", "id": %s, "result": %s}' % (json.dumps(request["id"]), result)

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

MALFORMED = {
    "no_list": "`content` is not a list",
    "no_content": "`content` is not a list",
    "no_blocks": "`content` has a block without a `type`",
    "no_type": "`content` has a block without a `type`",
    "odd_text": "`content` has a block of type `text` without a valid `text`",
    "odd_image": "`content` has a block of type `image` without a valid `data`",
    "odd_resource": "`content` has a block of type `resource` without a valid `resource`",
    "odd_meta": "`_meta` is not an object",
}
UNREADABLE = ("too_deep", "far_too_deep", "no_json")


@pytest.fixture(params=["stdio", "http"])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, object]]:
    """The odd server, as a process behind pipes or at an address."""
    script = tmp_path / "odd.py"
    script.write_text(SERVER)
    if request.param == "stdio":
        yield {"command": sys.executable, "args": [str(script)]}
        return
    port = free_port()
    process = subprocess.Popen([sys.executable, str(script), str(port)])
    try:
        yield {"url": f"http://127.0.0.1:{port}/mcp"}
    finally:
        process.kill()
        process.wait()


async def call(client: Client, name: str) -> tuple[bool, str]:
    with anyio.fail_after(10):
        result = await client.call_tool("call_tool", {"name": f"odd.{name}", "arguments": {}})
    return result.is_error, "\n".join(getattr(block, "text", "") for block in result.content)


async def test_a_malformed_answer_fails_its_call_at_once(
    odd: dict[str, object], tmp_path: Path
) -> None:
    async with served(tmp_path, {"odd": odd}, "--mode", "proxy") as client:
        assert await call(client, "fine") == (False, "fine")
        for name, fault in MALFORMED.items():
            said = f"odd answered with a malformed result: {fault}. The call may have taken effect."
            assert await call(client, name) == (True, said)
            # Five failures in a row would open the breaker of this server.
            assert await call(client, "fine") == (False, "fine")
        for name in UNREADABLE:
            said = "odd sent an answer that is not valid JSON, or nested too deep to be read."
            assert await call(client, name) == (True, said)
        assert await call(client, "fine") == (False, "fine")
    log = (tmp_path / "stderr.txt").read_text()
    assert "Traceback" not in log
    assert "its name has 100,000 characters" in log
    assert len(log) < 5_000
