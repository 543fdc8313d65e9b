"""Serving on our own stdin and stdout: a real process, with pipes and without."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import os
import anyio
import mcp_types as t
from mcp.server.lowlevel.server import Server
from pegboard.server.stdio import serve_on_stdio

async def call_tool(ctx, params):
    print("this must not reach the client")
    os.write(1, b"neither must this")
    stdin = os.readlink("/proc/self/fd/0")
    text = f"{params.arguments['text'][:5]} {len(params.arguments['text'])} {stdin}"
    return t.CallToolResult(content=[t.TextContent(type="text", text=text)])

server = Server("s", on_call_tool=call_tool)

async def main():
    await serve_on_stdio(server)
    print("and stdout is ours again", flush=True)

anyio.run(main)
"""


def requests(text: str) -> bytes:
    client = {"name": "c", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "x", "arguments": {"text": text}}},
    ]
    return b"".join(json.dumps({"jsonrpc": "2.0", **m}).encode() + b"\n" for m in messages)


def started(stdin: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def answers(process: subprocess.Popen[bytes], sent: bytes) -> list[dict[str, Any]]:
    """What the process answers; stdin stays open until it has, as a client's does."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"not json\n" + sent)
    process.stdin.flush()
    return [json.loads(process.stdout.readline()) for _ in range(2)]


def test_pipes_carry_messages_of_any_size_and_nothing_else() -> None:
    text = "héllo" + "x" * 3_000_000
    with started(subprocess.PIPE) as process:
        greeting, result = answers(process, requests(text))
        rest, errors = process.communicate(timeout=20)
    assert greeting["id"] == 1
    assert result["result"]["content"][0]["text"] == "héllo 3000005 /dev/null"
    assert rest == b"and stdout is ours again\n"
    assert b"this must not reach the client" in errors
    assert b"neither must this" in errors
    assert process.returncode == 0


def test_a_file_as_stdin_is_read_too(tmp_path: Path) -> None:
    """The event loop cannot wait for a file: the SDK's threads do."""
    sent = tmp_path / "requests"
    sent.write_bytes(requests("hello"))
    with sent.open("rb") as stdin, started(stdin) as process:
        assert process.stdout is not None
        greeting = json.loads(process.stdout.readline())
        process.communicate(timeout=20)
    assert greeting["result"]["serverInfo"]["name"] == "s"


BOARD = """
import signal
from pegboard import Pegboard
# As in a terminal: what is started behind a shell's & inherits that it is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
board = Pegboard("greeter")
board.run()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_a_terminal_gets_a_hint_and_can_stop_the_server() -> None:
    import pty

    ours, theirs = pty.openpty()
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", BOARD]
    with subprocess.Popen(command, stdin=theirs, stdout=pipe, stderr=pipe) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert b"an MCP client should start it. Ctrl-C stops it." in process.stderr.readline()
            os.write(ours, b'{"jsonrpc": "2.0", "id": 7, "method": "ping"}\n')
            assert json.loads(process.stdout.readline())["id"] == 7
            process.send_signal(signal.SIGINT)
            rest, errors = process.communicate(timeout=10)
        finally:
            process.kill()  # a failed assertion must not wait for it
    os.close(ours)
    os.close(theirs)
    assert (rest, errors, process.returncode) == (b"", b"", 0)
