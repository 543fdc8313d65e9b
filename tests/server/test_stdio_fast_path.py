"""Calls on a pipe that go past the SDK's dispatcher: a real process, spoken to line by line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

PROGRAM = """
import sys
from contextlib import asynccontextmanager
import anyio
import mcp_types as t
from mcp import MCPError
from mcp.server.lowlevel.server import Server
from pegboard.server.stdio import serve_on_stdio

notified = []

def way():
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_qualname == "StdioFastPath._run":
            return "fast path"
        frame = frame.f_back
    return "dispatcher"

async def call_tool(ctx, params):
    match params.name:
        case "way":
            text = way()
        case "progress":
            await ctx.session.report_progress(0.5, 1.0, "half")
            text = "done"
        case "ask":
            answer = await ctx.session.list_roots()
            text = answer.roots[0].name
        case "wait":
            say("began")
            try:
                await anyio.sleep(60)
            finally:
                say("ended")
        case "persist":
            say("began")
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.2)
            say("persisted")
            text = "in spite of all"
        case "notified":
            text = " ".join(notified)
        case "client":
            text = ctx.session.client_params.client_info.name
        case "large":
            text = "x" * 3_000_000
        case "odd error":
            raise MCPError(-32099, "odd", {"data": object()})
        case "break":
            raise RuntimeError("a secret")
    return t.CallToolResult(content=[t.TextContent(type="text", text=text)])

async def list_tools(ctx, params):
    return t.ListToolsResult(tools=[])

def say(line):
    print(line, file=sys.stderr, flush=True)

async def middleware(ctx, call_next):
    if ctx.request_id is None:
        notified.append(ctx.method)
    if ctx.method == "tools/call" and ctx.params["name"] == "odd result":
        return {"content": [], "odd": object()}
    return await call_next(ctx)

@asynccontextmanager
async def lifespan(server):
    yield {}
    say("over")

server = Server("s", on_call_tool=call_tool, on_list_tools=list_tools, lifespan=lifespan)
server.middleware.append(middleware)
anyio.run(serve_on_stdio, server)
"""
LEGACY, MODERN = "2025-11-25", "2026-07-28"
ENVELOPE: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Client:
    """Sends and reads single lines."""

    def __init__(self, process: subprocess.Popen[str], era: str) -> None:
        self.process = process
        self.era = era

    def send(self, method: str, params: dict[str, Any] | None = None, **rest: Any) -> None:
        self.write(self.message(method, params, **rest))

    def message(
        self, method: str, params: dict[str, Any] | None = None, **rest: Any
    ) -> dict[str, Any]:
        if self.era == MODERN and "id" in rest:
            params = {**(params or {}), "_meta": {**ENVELOPE, **(params or {}).get("_meta", {})}}
        given = {"params": params} if params else {}
        return {"jsonrpc": "2.0", "method": method, **rest, **given}

    def write(self, *messages: dict[str, Any]) -> None:
        """Send these at once."""
        assert self.process.stdin is not None
        self.process.stdin.write("".join(json.dumps(message) + "\n" for message in messages))
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def hear(self, line: str) -> None:
        """Wait until the server prints this line."""
        assert self.process.stderr is not None
        heard = ""
        while heard != f"{line}\n":
            heard = self.process.stderr.readline()
            assert heard, f"it ended without saying {line!r}"

    def call(self, name: str, number: int | str, **meta: Any) -> None:
        params = {"name": name, "arguments": {}, **({"_meta": meta} if meta else {})}
        self.send("tools/call", params, id=number)

    def called(self, name: str, number: int | str) -> str:
        self.call(name, number)
        answer = self.read()
        assert answer["id"] == number
        return answer["result"]["content"][0]["text"]


@contextmanager
def opened(era: str) -> Generator[Client]:
    """A client that has made the first request, and a call that the lane may take."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        client = Client(process, era)
        if era == LEGACY:
            about = {"name": "c", "version": "1"}
            params = {"protocolVersion": LEGACY, "capabilities": {"roots": {}}, "clientInfo": about}
            client.send("initialize", params, id="hello")
            assert client.read()["id"] == "hello"
            client.send("notifications/initialized")
        client.send("tools/list", id="list")
        assert client.read()["id"] == "list"
        yield client
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0


@pytest.fixture(scope="module")
def legacy() -> Generator[Client]:
    with opened(LEGACY) as client:
        yield client


@pytest.fixture(scope="module")
def modern() -> Generator[Client]:
    with opened(MODERN) as client:
        yield client


@pytest.fixture(params=["legacy", "modern"])
def client(request: pytest.FixtureRequest) -> Client:
    return request.getfixturevalue(request.param)


def test_calls_take_the_fast_path_once_the_sdk_has_served_a_request(client: Client) -> None:
    assert client.called("way", 1) == "fast path"
    assert client.called("way", "one") == "fast path"


def test_progress_comes_before_the_result(client: Client) -> None:
    client.call("progress", 1, progressToken="t")
    told, answer = client.read(), client.read()
    assert told["method"] == "notifications/progress"
    assert told["params"]["progressToken"] == "t"
    assert answer["result"]["content"][0]["text"] == "done"


def test_a_call_can_send_a_request_to_a_legacy_client(legacy: Client) -> None:
    legacy.call("ask", 1)
    asked = legacy.read()
    roots = {"roots": [{"uri": "file:///home", "name": "home"}]}
    legacy.write({"jsonrpc": "2.0", "id": asked["id"], "result": roots})
    answer = legacy.read()
    assert asked["method"] == "roots/list"
    assert answer["result"]["content"][0]["text"] == "home"


def test_a_call_sends_no_request_to_a_modern_client(modern: Client) -> None:
    modern.call("ask", 1)
    assert "error" in modern.read()


@pytest.mark.parametrize("named", [7, "7"])
def test_a_call_that_is_given_up_ends_and_is_not_answered(legacy: Client, named: int | str) -> None:
    legacy.call("wait", 7)
    legacy.hear("began")
    legacy.send("notifications/cancelled", {"requestId": named})
    legacy.hear("ended")
    assert legacy.called("way", 8) == "fast path"


def test_a_fault_of_the_server_is_an_error_that_tells_nothing_of_it(client: Client) -> None:
    client.call("break", 1)
    error = client.read()["error"]
    assert error["code"] == -32603
    assert "secret" not in json.dumps(error)
    assert client.called("way", 2) == "fast path"


def test_a_call_without_the_envelope_of_its_era_is_left_to_the_sdk(modern: Client) -> None:
    bare = {"name": "way", "arguments": {}}
    modern.write({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": bare})
    assert modern.read()["error"]["code"] == -32602


def test_an_envelope_on_a_legacy_connection_is_left_to_the_sdk(legacy: Client) -> None:
    legacy.call("way", 1, **ENVELOPE)
    assert legacy.read()["error"]["code"] == -32600


def test_another_client_behind_the_same_pipe_is_known_after_its_first_call(modern: Client) -> None:
    other = {**ENVELOPE, "io.modelcontextprotocol/clientInfo": {"name": "d", "version": "2"}}
    modern.call("way", 1, **other)
    first = modern.read()["result"]["content"][0]["text"]
    modern.call("way", 2, **other)
    second = modern.read()["result"]["content"][0]["text"]
    assert (first, second) == ("dispatcher", "fast path")


def cancelling(number: int | str) -> dict[str, Any]:
    params = {"requestId": number}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


def calling(client: Client, name: str, number: int | str) -> dict[str, Any]:
    return client.message("tools/call", {"name": name, "arguments": {}}, id=number)


def test_a_call_may_be_given_up_twice_or_after_it_has_ended(client: Client) -> None:
    client.call("wait", 7)
    client.hear("began")
    client.write(cancelling(7), cancelling(7))
    client.hear("ended")
    assert client.called("client", 8) == "c"
    client.write(cancelling(7), cancelling(8), cancelling(8))
    assert client.called("client", 9) == "c"


def test_a_call_that_is_given_up_in_the_same_breath_is_not_answered(client: Client) -> None:
    client.write(calling(client, "wait", 7), cancelling(7), calling(client, "client", 8))
    assert client.read()["id"] == 8


def test_a_call_that_was_given_up_is_not_answered_though_it_goes_on(client: Client) -> None:
    client.call("persist", 7)
    client.hear("began")
    client.write(cancelling(7))
    client.hear("persisted")
    assert client.called("client", 8) == "c"


@pytest.mark.parametrize("name", ["odd result", "odd error"])
def test_what_cannot_be_written_is_an_error_and_not_the_end(client: Client, name: str) -> None:
    client.call(name, 7)
    assert client.read()["error"]["code"] == -32603
    assert client.called("client", 8) == "c"


def test_no_call_overtakes_a_notification(client: Client) -> None:
    for number in range(5):
        notice = client.message(f"notifications/n{number}")
        client.write(notice, calling(client, "notified", number))
        assert client.read()["result"]["content"][0]["text"].endswith(f"/n{number}")


def test_a_call_is_made_for_the_client_that_sends_it(modern: Client) -> None:
    about = {"io.modelcontextprotocol/clientInfo": {"name": "other", "version": "1"}}
    lists = [modern.message("tools/list", {"_meta": about}, id=f"l{n}") for n in range(20)]
    modern.write(*lists, calling(modern, "client", 7))
    answers = {answer["id"]: answer for answer in (modern.read() for _ in range(21))}
    assert answers[7]["result"]["content"][0]["text"] == "c"


def test_a_client_that_leaves_while_it_is_answered_has_one_answer() -> None:
    with opened(LEGACY) as client:
        assert client.process.stdin is not None
        assert client.process.stdout is not None
        client.call("large", 7)
        assert client.process.stdout.read(1) == "{"  # the rest does not fit into the pipe
        client.process.stdin.close()
        (answer,) = client.process.stdout
    assert answer.endswith("}\n")
    assert len(answer) > 3_000_000


def test_calls_under_way_when_the_client_leaves_are_ended() -> None:
    with opened(LEGACY) as client:
        assert client.process.stdin is not None
        client.call("wait", 1)
        client.hear("began")
        client.process.stdin.close()
        client.hear("ended")
        client.hear("over")  # what calls need is there until they have ended
        assert client.read()["error"]["message"] == "Connection closed"
