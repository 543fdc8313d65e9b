"""One limit for messages from servers, on every transport, against a server that floods us."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as t
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.client.stdio import stdio_client
from mcp.shared.message import SessionMessage
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tests.gateway.support import command, said, write
from tests.upstream.support import NOBODY, SERVERS, Gateway, gateway, script
from tests.upstream.test_http import serving

from pegboard.config.loader import load_configuration
from pegboard.config.server_entries import ConfigEnvironment
from pegboard.errors import ConfigError, UpstreamError
from pegboard.upstream.relay import UpstreamRequest
from pegboard.upstream.spec import UpstreamSpec
from pegboard.upstream.transports import SseWriter
from pegboard.wire.message_filters import build_oversize_replacement, limit_response_size
from pegboard.wire.message_streams import LineSplitter

pytestmark = pytest.mark.anyio

LIMIT = 2_000_000
FLOOD = 5_000_000
TRANSPORTS = ("stdio", "stdio id-last", "json", "json?modern", "gzip", "gzip?modern",
              "sse", "sse?modern", "old")  # fmt: skip


@contextmanager
def flooding() -> Generator[str]:
    """The flooding server on a port of this machine, by its address."""
    command = [sys.executable, str(SERVERS / "flooding.py"), "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.kill()


@contextmanager
def spec_of(transport: str) -> Generator[UpstreamSpec]:
    if transport.startswith("stdio"):
        yield script("flooding", *transport.split(), server="e", max_message_bytes=LIMIT)
        return
    with flooding() as address:
        kind = "sse" if transport == "old" else "http"
        url = f"{address}/{transport}"
        yield UpstreamSpec("e", transport=kind, url=url, max_message_bytes=LIMIT)


async def call(through: Gateway, size: int) -> str:
    params = {"name": "echo", "arguments": {"bytes": size}}
    result = await through.relay.request(UpstreamRequest("e", "tools/call", params), NOBODY)
    return result["content"][0]["text"]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_message_over_the_limit_fails_its_call_and_the_connection_goes_on(
    transport: str,
) -> None:
    with spec_of(transport) as spec:
        async with gateway(spec) as through:
            process = (await call(through, 0)).partition(":")[0]
            for _ in range(2):
                with pytest.raises(UpstreamError) as caught:
                    await call(through, FLOOD)
                assert caught.value.message == (
                    "e sent a message over the limit of 2,000,000 bytes, which was discarded. "
                    "Ask for less, or raise `upstreams.max_message_bytes`."
                )
                assert "code" not in caught.value.details  # a result that a model reads
            below = await call(through, LIMIT - 1000)
            assert len(below) == LIMIT - 1000 + len(process) + 1
            assert below.startswith(f"{process}:xxx")
            assert through.pool.status()[0].connections == 1
            assert through.pool.status()[0].last_error is None


async def test_the_answer_of_another_request_is_not_lost_with_a_discarded_one() -> None:
    with spec_of("stdio") as spec:
        async with gateway(spec) as through, anyio.create_task_group() as tasks:

            async def flood() -> None:
                with pytest.raises(UpstreamError, match="over the limit"):
                    await call(through, FLOOD)

            for _ in range(3):
                tasks.start_soon(flood)
                tasks.start_soon(call, through, 10)


def memory_of(pid: int) -> float:
    """The most memory that a process has had, in megabytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("transport", ["stdio", "json", "sse?modern"])
async def test_a_flood_costs_a_gateway_little_memory(transport: str, tmp_path: Path) -> None:
    size = 250_000_000
    with flooding() as address:
        entry: dict[str, Any] = {"url": f"{address}/{transport}"}
        if transport == "stdio":
            file = str(SERVERS / "flooding.py")
            entry = {"command": sys.executable, "args": [file, "stdio"]}
        else:
            entry["type"] = "sse" if transport == "old" else "http"
        parameters = command(write(tmp_path, {"e": entry}), tmp_path / "home", "--mode", "eager")
        with anyio.fail_after(60):
            async with Client(stdio_client(parameters), mode="legacy", cache=None) as client:
                await client.call_tool("e_echo", {})
                gateway_pid = _child_running("pegboard")
                before = memory_of(gateway_pid)
                result = await client.call_tool("e_echo", {"bytes": size})
                assert result.is_error
                assert "e sent a message over the limit of 64,000,000 bytes" in said(result)
                assert "`upstreams.max_message_bytes`" in said(result)
                assert memory_of(gateway_pid) - before < 150
                assert not (await client.call_tool("e_echo", {})).is_error


def _child_running(word: str) -> int:
    """The process that this one started last with a word in its command."""
    children = [
        int(child)
        for task in Path("/proc/self/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return max(c for c in children if word in Path(f"/proc/{c}/cmdline").read_text())


@given(st.lists(st.sampled_from([b"a", b"b" * 600, b"c" * 2000, b""])), st.integers(1, 700))
def test_only_lines_over_the_limit_are_replaced(lines: list[bytes], size: int) -> None:
    splitter = LineSplitter(1000, lambda head, tail: head[:1] + b"<replaced>" + tail[-1:])
    data = b"".join(line + b"\n" for line in lines)
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert [line for chunk in chunks for line in splitter.feed(chunk)] == [
        b"c<replaced>c" if len(line) > 1000 else line for line in lines
    ]


@pytest.mark.parametrize(
    ("head", "tail", "found"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"x', b'"id":8}}', 7),
        (b'{"id": "seven", "jsonrpc"', b"}}", "seven"),
        (b'{"result":{"id":1', b'"}}, "jsonrpc":"2.0", "id": 7 }', 7),
        (b'{"result":{', b'},"id":7,"jsonrpc":"2.0"}', 7),
        (b'{"jsonrpc":"2.0","method":"notifications/message"', b'"id":7}}', None),
        (b'data: {"jsonrpc":"2.0","id":7,', b"}", 7),
    ],
)
def test_the_request_that_a_discarded_message_answers_is_found(
    head: bytes, tail: bytes, found: object
) -> None:
    line = build_oversize_replacement(1000)(head, tail)
    assert line.startswith(b"data:") == head.startswith(b"data:")
    answer = json.loads(line.removeprefix(b"data:"))
    assert answer["id"] == found
    assert "1,000 bytes" in answer["error"]["message"]


def test_the_setting_reaches_servers_and_apis(tmp_path: Path) -> None:
    config = tmp_path / "pegboard.toml"
    config.write_text(
        "[upstreams]\nmax_message_bytes = 5000\n[servers.a]\ncommand = 'x'\n"
        "[sources.b]\nopenapi = 'b.json'\n"
    )
    found = load_configuration(config, ConfigEnvironment({}, tmp_path, tmp_path))
    assert [spec.max_message_bytes for spec in found.upstreams] == [5000]
    assert [api.max_bytes for api in found.sources] == [5000]
    config.write_text("[upstreams]\nmax_message_bytes = 10\n")
    with pytest.raises(ConfigError, match=r"max_message_bytes.*greater than or equal to 4096"):
        load_configuration(config, ConfigEnvironment({}, tmp_path, tmp_path))


def test_an_event_stream_may_end_its_lines_with_cr() -> None:
    async def chunks() -> AsyncGenerator[bytes, None]:
        for chunk in (b"event: message\r", b"\ndata: 1\r\n\r", b"data: 2\r\r", b"data: 3"):
            yield chunk

    async def read() -> bytes:
        response = httpx2.Response(200, headers={"content-type": "text/event-stream"})
        response.aiter_bytes = lambda chunk_size=None: chunks()
        await limit_response_size(100)(response)
        return b"".join([chunk async for chunk in response.aiter_bytes()])

    assert anyio.run(read) == b"event: message\ndata: 1\n\ndata: 2\n\ndata: 3"


async def test_a_flood_in_answer_to_a_posted_message_breaks_that_message_alone() -> None:
    async def flood(request: Request) -> Response:
        return Response("x" * FLOOD, media_type="text/plain")

    message = SessionMessage(t.JSONRPCNotification(jsonrpc="2.0", method="notifications/x"))
    async with (
        serving(Starlette(routes=[Route("/", flood, methods=["POST"])])) as url,
        httpx2.AsyncClient(event_hooks={"response": [limit_response_size(LIMIT)]}) as client,
    ):
        with pytest.raises(anyio.BrokenResourceError):
            await SseWriter(client, url).send(message)
