"""What a login adds to a call, against a fixed header, as JSON: `python -m benchmarks.login_overhead`.

Two gateways are in front of one MCP server that wants a bearer token. One has it in a header of its
configuration, the other has it from a login that is stored on disk. Clients call both in turn, and
the CPU is that of the gateway's process. Then five calls of a second each are made at once.

`python -m benchmarks.login_overhead PORT` is the server.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from benchmarks.call_targets import free_port
from benchmarks.runner import ROOT, WrongAnswer
from benchmarks.wire import cpu_between, cpu_times, descendants, settle

TOKEN = "benchmark-token-" + "0123456789abcdef" * 40
"""As long as a signed token usually is."""
CALLS = 50
ROUNDS = 40
WAIT = 1.0
AT_ONCE = 5


def serve(port: int) -> None:
    """The MCP server: `answer` answers at once, `wait` after a second; both want the token."""
    import mcp_types as t
    import uvicorn
    from mcp.server.lowlevel.server import Server

    async def list_tools(ctx: Any, params: Any) -> t.ListToolsResult:
        reads = t.ToolAnnotations(read_only_hint=True)
        schema: dict[str, Any] = {"type": "object"}
        return t.ListToolsResult(
            tools=[
                t.Tool(name=name, description=name, input_schema=schema, annotations=reads)
                for name in ("answer", "wait")
            ]
        )

    async def call_tool(ctx: Any, params: Any) -> t.CallToolResult:
        if params.name == "wait":
            await anyio.sleep(WAIT)
        return t.CallToolResult(content=[t.TextContent(type="text", text="done")])

    server = Server("login", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    app = server.streamable_http_app(json_response=True)
    wanted = f"Bearer {TOKEN}".encode()

    async def protected(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and dict(scope["headers"]).get(b"authorization") != wanted:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await app(scope, receive, send)

    uvicorn.run(protected, host="127.0.0.1", port=port, log_level="error")


async def store_login(url: str, folder: Path) -> None:
    """What `pegboard login` would have left."""
    from pegboard.oauth.encryption import NoKey
    from pegboard.oauth.grant_storage import FileGrants
    from pegboard.oauth.grants import Grant, GrantKey

    grant = Grant(
        issuer="http://127.0.0.1:1",
        token_endpoint="http://127.0.0.1:1/token",
        client_id="benchmark",
        access_token=TOKEN,
        refresh_token="unused",
        expires_at=time.time() + 3600,
        lifetime=3600.0,
    )
    await FileGrants(folder / "logins", NoKey()).save(GrantKey("up", url, "local"), grant)


@asynccontextmanager
async def gateway(url: str, folder: Path, headers: dict[str, str]) -> AsyncGenerator[Any]:
    """A client of a gateway, and the process of that gateway, which is at rest."""
    from mcp import Client, StdioServerParameters, stdio_client

    config = anyio.Path(folder) / "mcp.json"
    await config.parent.mkdir(exist_ok=True)
    await config.write_text(json.dumps({"mcpServers": {"up": {"url": url, "headers": headers}}}))
    command = ["-m", "pegboard", "serve", "--config", str(config)]
    env = {**os.environ, "PEGBOARD_HOME": str(folder), "PEGBOARD_MODE": "eager"}
    given = StdioServerParameters(command=sys.executable, args=command, env=env)
    before = set(descendants(os.getpid()))
    with open(os.devnull, "w") as quiet:  # noqa: ASYNC230
        async with Client(stdio_client(given, errlog=quiet), cache=None) as client:
            [pid, *_] = [one for one in descendants(os.getpid()) if one not in before]
            for _ in range(20):
                await call(client)
            await anyio.to_thread.run_sync(settle, pid)
            yield client, pid


async def call(client: Any, tool: str = "up_answer") -> None:
    result = await client.call_tool(tool, {})
    if result.is_error or result.content[0].text != "done":
        raise WrongAnswer(str(result.content))


async def cpu_of_calls(client: Any, pid: int) -> float:
    """Milliseconds of CPU that a gateway uses for one call."""
    before = cpu_times(pid)
    for _ in range(CALLS):
        await call(client)
    return cpu_between(before, cpu_times(pid)) / CALLS * 1e3


async def seconds_at_once(client: Any, count: int) -> float:
    began = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(call, client, "up_wait")
    return time.perf_counter() - began


async def measure(url: str, folder: Path) -> dict[str, Any]:
    await store_login(url, folder / "login")
    fixed = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        gateway(url, folder / "header", fixed) as (with_header, header_pid),
        gateway(url, folder / "login", {}) as (with_login, login_pid),
    ):
        header: list[float] = []
        login: list[float] = []
        for number in range(ROUNDS):
            # Which of them is first changes: the machine may become busier or calmer meanwhile.
            order = ((header, with_header, header_pid), (login, with_login, login_pid))
            for found, client, pid in order if number % 2 else reversed(order):
                found.append(await cpu_of_calls(client, pid))
        ratios = [one / other for one, other in zip(login, header, strict=True)]
        least, _, most = statistics.quantiles(ratios, n=4)
        alone = [await seconds_at_once(with_login, 1) for _ in range(3)]
        at_once = [await seconds_at_once(with_login, AT_ONCE) for _ in range(3)]
    return {
        "CPU per call": {
            "header, ms": round(statistics.median(header), 3),
            "login, ms": round(statistics.median(login), 3),
            "login / header": round(statistics.median(login) / statistics.median(header), 3),
            "first quartile": round(least, 3),
            "third quartile": round(most, 3),
        },
        "calls of 1 s": {
            "one, s": round(statistics.median(alone), 3),
            f"{AT_ONCE} at once, s": round(statistics.median(at_once), 3),
        },
    }


def main() -> None:
    import subprocess

    port = free_port()
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "benchmarks.login_overhead", str(port)]
    server = subprocess.Popen(command, env=env, cwd=ROOT)
    try:
        _wait_for(port)
        with tempfile.TemporaryDirectory() as folder:
            found = anyio.run(measure, f"http://127.0.0.1:{port}/mcp", Path(folder))
    finally:
        server.terminate()
        server.wait(10)
    print(json.dumps(found, indent=2))


def _wait_for(port: int) -> None:
    import socket

    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise WrongAnswer("the server does not listen")


if __name__ == "__main__":
    serve(int(sys.argv[1])) if len(sys.argv) > 1 else main()
