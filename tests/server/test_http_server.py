"""Shutdown ends open streams without errors; an address in use is reported plainly."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
from starlette.types import Message, Receive, Scope, Send

from pegboard.errors import ConfigError
from pegboard.server.http_server import StreamTracker
from pegboard.sockets import bind_sockets

BOARD = """
import sys
from pegboard import Pegboard
board = Pegboard("greeter")

@board.tool
def greet(name: str) -> str:
    "Say hello."
    return name

board.run(http=sys.argv[1])
"""


@contextmanager
def running(*command: str, home: Path) -> Generator[subprocess.Popen[str]]:
    """A process of ours, which is not there any more afterwards."""
    env = {**os.environ, "PEGBOARD_HOME": str(home)}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, *command], stdout=pipe, stderr=pipe, text=True, env=env
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def free_address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


async def stopped_with_a_page_open(process: subprocess.Popen[str], url: str, enter: str) -> str:
    """What is on standard error after Ctrl-C while a page follows; its stream must be complete."""
    async with httpx2.AsyncClient(base_url=url, follow_redirects=True) as visitor:
        with anyio.fail_after(30):
            while True:
                try:
                    assert (await visitor.get(enter)).status_code == 200
                    break
                except httpx2.TransportError:
                    await anyio.sleep(0.05)
            async with visitor.stream("GET", "/ui/live?parts=figures") as events:
                lines = events.aiter_lines()
                assert await anext(lines) == "retry: 2000"
                process.send_signal(signal.SIGINT)
                async for _ in lines:  # a stream that is cut off would raise here
                    pass
    return process.communicate(timeout=20)[1]


def catalog(folder: Path) -> str:
    entry = {"name": "greet", "description": "Say hello.", "inputSchema": {"type": "object"}}
    path = folder / "tools.json"
    path.write_text(json.dumps({"tools": [entry]}), "utf-8")
    return str(path)


@pytest.mark.anyio
@pytest.mark.parametrize("what", ["gateway", "catalog", "board"])
async def test_ctrl_c_with_a_page_open_ends_quietly(what: str, tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {}}')
    (tmp_path / "board.py").write_text(BOARD)
    address = free_address()
    command = {
        "gateway": ["-m", "pegboard", "serve", "--config", f"{tmp_path}/mcp.json", "--http"],
        "catalog": ["-m", "pegboard", "serve", "--catalog", catalog(tmp_path), "--http"],
        "board": [f"{tmp_path}/board.py"],
    }[what]
    with running(*command, address, home=tmp_path) as process:
        said = await stopped_with_a_page_open(process, f"http://{address}", "/")
    assert "ERROR" not in said
    assert "Traceback" not in said


@pytest.mark.anyio
async def test_ctrl_c_ends_pegboard_ui_quietly(tmp_path: Path) -> None:
    named = ("--catalog", catalog(tmp_path), "--no-browser", "--json")
    with running("-m", "pegboard", "ui", *named, home=tmp_path) as process:
        assert process.stdout is not None
        page = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")["page"]
        url, _, path = page.partition("/ui/")
        said = await stopped_with_a_page_open(process, url, f"/ui/{path}")
    assert said == ""


@pytest.mark.parametrize("command", ["serve", "ui"])
def test_an_address_in_use_is_reported_in_one_sentence(command: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        where = {"serve": ["--http", f"127.0.0.1:{port}"], "ui": ["--no-browser", "--port", port]}
        named = ("--catalog", catalog(tmp_path), *where[command])
        with running("-m", "pegboard", command, *named, home=tmp_path) as process:
            _, said = process.communicate(timeout=30)
    assert process.returncode == 3
    assert said.startswith(f"error: Cannot listen on 127.0.0.1:{port}: ")
    assert said.count("\n") == 1


def test_an_address_that_nobody_has_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Cannot listen on nowhere\.invalid:80"):
        bind_sockets("nowhere.invalid", 80)


def test_every_address_of_a_name_is_bound_once() -> None:
    sockets = bind_sockets("localhost", 0)
    try:
        families = [made.family for made in sockets]
        assert socket.AF_INET in families
        assert len(families) == len(set(families))
    finally:
        for made in sockets:
            made.close()


async def for_ever(scope: Scope, receive: Receive, send: Send) -> None:
    kind = [(b"Content-Type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": kind})
    await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
    await anyio.sleep_forever()


@pytest.mark.anyio
async def test_streams_that_may_hold_an_answer_outlast_those_that_cannot() -> None:
    streams = StreamTracker(for_ever)
    sent: dict[str, list[Message]] = {"GET": [], "POST": []}

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def ask(method: str) -> None:
        async def send(message: Message) -> None:
            sent[method].append(message)

        await streams({"type": "http", "method": method}, receive, send)

    def is_over(method: str) -> bool:
        return sent[method][-1] == {"type": "http.response.body", "body": b"", "more_body": False}

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for method in sent:
                tasks.start_soon(ask, method)
            await anyio.wait_all_tasks_blocked()
            streams.end_listening()
            await anyio.wait_all_tasks_blocked()
            assert (is_over("GET"), is_over("POST")) == (True, False)
            streams.end_all()
        assert is_over("POST")
