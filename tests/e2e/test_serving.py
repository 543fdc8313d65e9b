"""`pegboard serve` as a process: HTTP, who may ask, signals, files that change."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import Process
from mcp import Client
from tests.gateway.support import ROOT, SDK_MODES, called, polite, said, served, write

pytestmark = pytest.mark.anyio
Running = AbstractAsyncContextManager[tuple[str, Process]]
SERVERS = str(ROOT / "tests/upstream/servers")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def gateway(folder: Path, servers: dict[str, Any], *options: str) -> Running:
    return running_gateway(folder, write(folder, servers), *options)


@asynccontextmanager
async def running_gateway(
    folder: Path,
    config: Path,
    *options: str,
    patience: float = 40,
    host: str = "127.0.0.1",
    env: Mapping[str, str] | None = None,
    port: int | None = None,
) -> AsyncGenerator[tuple[str, Process]]:
    """`pegboard serve --http`, once it is ready; its stderr is in `stderr.txt`."""
    port = port or free_port()
    args = ["-m", "pegboard", "serve", "--config", str(config), "--http", f"{host}:{port}"]
    env = {**(env or {}), "PYTHONPATH": str(ROOT / "src"), "PEGBOARD_HOME": str(folder / "home")}
    with (folder / "stderr.txt").open("w") as stderr, anyio.fail_after(patience):
        command = [sys.executable, *args, *options]
        async with await anyio.open_process(command, stderr=stderr, env=env) as process:
            url = f"http://127.0.0.1:{port}"
            try:
                await _ready(url)
                yield url, process
            finally:
                if process.returncode is None:
                    process.terminate()
                await process.wait()


async def _ready(url: str) -> None:
    async with httpx2.AsyncClient() as http:
        while True:
            try:
                if (await http.get(f"{url}/ready")).status_code == 200:
                    return
            except httpx2.TransportError:
                pass
            await anyio.sleep(0.05)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_every_mode_has_an_address(era: str, tmp_path: Path) -> None:
    async with gateway(tmp_path, {"a": polite()}) as (url, _):
        async with Client(f"{url}/mcp", mode=SDK_MODES[era], cache=None) as client:
            assert [t.name for t in (await client.list_tools()).tools] == ["a_echo"]
            assert said(await client.call_tool("a_echo", {})).isdigit()
        async with Client(f"{url}/mcp/proxy", mode=SDK_MODES[era], cache=None) as client:
            assert "search_tools" in {t.name for t in (await client.list_tools()).tools}
            assert (await called(client, "a_echo")).isdigit()


async def test_health_and_readiness_are_told(tmp_path: Path) -> None:
    servers = {"a": polite(), "dead": {"command": "no-such-command"}}
    async with gateway(tmp_path, servers) as (url, _), httpx2.AsyncClient() as http:
        assert (await http.get(f"{url}/health")).json() == {"status": "ok"}
        state = (await http.get(f"{url}/ready")).json()
        assert (state["ready"], state["tools"]) == (True, 1)
        assert (state["pending"], state["unavailable"]) == ([], ["dead"])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:3000"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
    ],
)
async def test_a_page_of_a_stranger_is_not_answered(
    headers: dict[str, str], status: int, tmp_path: Path
) -> None:
    async with gateway(tmp_path, {"a": polite()}) as (url, _), httpx2.AsyncClient() as http:
        for path in ("/mcp", "/health"):
            answer = await http.get(f"{url}{path}", headers=headers)
            refused = answer.status_code in (403, 421)
            assert refused == (status != 200), answer.status_code
            if status != 200:
                assert answer.status_code == status


async def test_sigterm_finishes_the_call_under_way_and_leaves_no_process(tmp_path: Path) -> None:
    async with gateway(tmp_path, {"a": _slow(tmp_path)}, "--mode", "eager") as (url, process):
        results: list[str] = []

        async def call(client: Client) -> None:
            results.append(said(await client.call_tool("a_slow", {"seconds": 1.0})))

        async with Client(f"{url}/mcp", mode="auto", cache=None) as client:
            pid = int(said(await client.call_tool("a_echo", {})))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call, client)
                await _busy(url)
                process.send_signal(signal.SIGTERM)
        assert results == [str(pid)]
        assert await process.wait() == 0
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_sighup_reads_the_configuration_again(tmp_path: Path) -> None:
    async with gateway(tmp_path, {"a": polite()}) as (url, process):
        write(tmp_path, {"a": polite(), "b": polite()})
        process.send_signal(signal.SIGHUP)
        assert await _lists(url, {"a_echo", "b_echo"})


async def test_a_changed_file_is_read_and_a_broken_one_is_told_and_left(tmp_path: Path) -> None:
    async with gateway(tmp_path, {"a": polite()}) as (url, _):
        write(tmp_path, {"b": polite()})
        assert await _lists(url, {"b_echo"})
        write(tmp_path, "{ this is no configuration")
        told = tmp_path / "stderr.txt"
        with anyio.fail_after(60):
            while "was not applied" not in told.read_text():  # noqa: ASYNC110 - another process writes it
                await anyio.sleep(0.05)
        assert await _lists(url, {"b_echo"})


def _slow(folder: Path) -> dict[str, Any]:
    """A server whose `slow` is listed too, and which tells when it is at work."""
    script = folder / "slow.py"
    source = (ROOT / "tests/upstream/servers/polite.py").read_text()
    source = source.replace("raw.tools()", 'raw.tools(raw.TOOL, {**raw.TOOL, "name": "slow"})')
    script.write_text(source.replace("import raw", f"sys.path.insert(0, {SERVERS!r})\nimport raw"))
    return {"command": sys.executable, "args": [str(script)]}


async def _busy(url: str) -> None:
    async with httpx2.AsyncClient() as http:
        while (await http.get(f"{url}/ready")).json().get("in_flight", 0) == 0:  # noqa: ASYNC110
            await anyio.sleep(0.02)


async def _lists(url: str, wanted: set[str]) -> bool:
    """Whether exactly these tools come to be listed."""
    with anyio.move_on_after(60):
        while True:
            async with Client(f"{url}/mcp", mode="auto", cache=None) as client:
                if {t.name for t in (await client.list_tools()).tools} == wanted:
                    return True
            await anyio.sleep(0.05)
    return False


async def test_stdio_ends_with_its_client_and_takes_its_servers_along(tmp_path: Path) -> None:
    async with served(tmp_path, {"a": polite()}, era="modern") as client:
        pid = int(said(await client.call_tool("a_echo", {})))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_catalog_files_hold_no_secret(tmp_path: Path) -> None:
    entry = polite(env={"API_TOKEN": "s3cr3t-value"})
    async with served(tmp_path, {"a": entry}) as client:
        await client.call_tool("a_echo", {})
    kept = [p for p in (tmp_path / "home").rglob("*") if p.is_file()]
    assert kept
    assert not any(b"s3cr3t-value" in p.read_bytes() for p in kept)
