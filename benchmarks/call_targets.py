"""What the calls question connects to: a server itself, or each gateway in front of it.

A target is started on stdio by the client, or on HTTP here; either way it gives the tool to call,
and the arguments around ours that its own call tool wants.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contestants import (
    FASTMCP,
    lazy_config,
    peer,
    pegboard_command,
    pegboard_env,
    written,
)
from benchmarks.data import beside
from benchmarks.runner import WrongAnswer
from benchmarks.wire import descendants

SERVER = str(Path(__file__).with_name("call_server.py"))
ARGUMENTS = {"query": "a short question", "limit": 10, "tags": ["one", "two"]}
Wrap = Callable[[str, dict[str, Any]], tuple[str, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Target:
    """One way to make the call."""

    name: str
    command: Callable[[Path, dict[str, Any], int | None], list[str]]
    wrap: Wrap
    modern: bool = True
    path: str = "/mcp"
    tools: int = 0
    """How many tools of other servers stand beside the one that is called."""
    process: str = ""
    """Targets with the same word here are one process, called in several ways."""


def upstream(url: str | None) -> dict[str, Any]:
    if url:
        return {"url": url}
    return {"command": sys.executable, "args": [SERVER]}


def config(target: Target, url: str | None, folder: Path) -> dict[str, Any]:
    others: dict[str, Any] = {}
    if target.tools:
        others = beside(target.tools, folder).configuration()["mcpServers"]
    return {"mcpServers": {"up": upstream(url), **others}}


def _direct(folder: Path, config: dict[str, Any], port: int | None) -> list[str]:
    return [sys.executable, SERVER, *([str(port)] if port else [])]


def _pegboard(folder: Path, config: dict[str, Any], port: int | None) -> list[str]:
    where = written(folder, "mcp.json", config)
    address = ["--http", f"127.0.0.1:{port}"] if port else []
    return pegboard_command("--config", where, "--mode", "proxy", *address)


def _fastmcp(kind: str) -> Callable[[Path, dict[str, Any], int | None], list[str]]:
    def command(folder: Path, config: dict[str, Any], port: int | None) -> list[str]:
        given = [
            "proxy",
            written(folder, "fast.json", config),
            kind,
            *([str(port)] if port else []),
        ]
        return [peer("python"), str(FASTMCP), *given]

    return command


def _compressor(folder: Path, config: dict[str, Any], port: int | None) -> list[str]:
    # Without a header it insists on OAuth towards a server on HTTP.
    header = {"headers": {"Authorization": "Bearer none"}}
    servers = {
        name: {**one, **(header if "url" in one else {})}
        for name, one in config["mcpServers"].items()
    }
    where = written(folder, "pack.json", {"mcpServers": servers})
    address = ["--transport", "streamable-http", "--port", str(port)] if port else []
    return [peer("mcp-compressor"), "--config", where, *address]


def _lazy(folder: Path, config: dict[str, Any], port: int | None) -> list[str]:
    address = ["--transport", "http", "--port", str(port)] if port else []
    return [peer("lazy-mcp"), "--config", lazy_config(config, folder), *address]


def targets(sizes: tuple[int, ...], *, peers: bool = True) -> list[Target]:
    """Everyone, ourselves once per size of the catalog."""
    found = [Target("direct", _direct, lambda n, a: (n, a))]
    for size in sizes:
        by_name: Wrap = lambda n, a: (f"up_{n}", a)  # noqa: E731
        inner: Wrap = lambda n, a: ("call_destructive_tool", {"name": f"up_{n}", "arguments": a})  # noqa: E731
        for way, wrap in (("by name", by_name), ("call_tool", inner)):
            name = f"pegboard, {way}, {size:,} tools"
            found.append(Target(name, _pegboard, wrap, tools=size, process=f"pegboard {size}"))
    if peers:
        found += [
            Target("fastmcp proxy, by name", _fastmcp("none"), lambda n, a: (n, a)),
            Target("fastmcp bm25, call_tool", _fastmcp("bm25"),
                   lambda n, a: ("call_tool", {"name": n, "arguments": a})),
            Target("mcp-compressor", _compressor, modern=False,
                   wrap=lambda n, a: ("invoke_tool", {"tool_name": n, "tool_input": a})),
            Target("lazy-mcp", _lazy, modern=False, wrap=lambda n, a: (
                "invoke_command", {"server": "up", "command_name": n, "parameters": a})),
        ]  # fmt: skip
    return found


def environment(folder: Path) -> dict[str, str]:
    pins = {"ALWAYS_AVAILABLE_TOOLS": "up_search"}  # clients list again after an unlisted call
    return {**os.environ, **pegboard_env(folder), **pins}


@contextmanager
def served(target: Target, folder: Path) -> Generator[tuple[str, int]]:
    """The target on HTTP, with the server behind it on HTTP too: its address and process."""
    with ExitStack() as stack:
        url = None
        if target.name != "direct":
            url, _ = stack.enter_context(_listening([sys.executable, SERVER], folder))
        port = free_port()
        command = target.command(folder, config(target, url, folder), port)
        yield stack.enter_context(_listening(command, folder, port, target.path))


@contextmanager
def _listening(
    command: list[str], folder: Path, port: int | None = None, path: str = "/mcp"
) -> Generator[tuple[str, int]]:
    if port is None:
        port = free_port()
        command = [*command, str(port)]
    process = subprocess.Popen(
        command,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}{path}", process.pid
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if process.poll() is not None:
            raise WrongAnswer(f"{process.args} ended with {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise WrongAnswer(f"{process.args} did not listen within a minute")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def between(pid: int, server: int) -> list[int]:
    """A gateway and what it started, without the server behind it."""
    return [one for one in (pid, *descendants(pid)) if one != server or pid == server]
