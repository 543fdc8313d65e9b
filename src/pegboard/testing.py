"""For tests of your own: a client in memory, fakes of the ports, and what a server costs.

    async with connect(board, face="proxy") as client:       # a board, or any MCP server object
        await client.call_tool("search_tools", {"query": "open issues"})

    assert await list_tokens(server, face="proxy") < 500

Fakes implement a port of `pegboard.ports` and do as they are told; nothing is patched.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pegboard.board import Pegboard
from pegboard.core.calls import Call, CallResult, Era
from pegboard.core.events import Event
from pegboard.core.json import Json, JsonObject
from pegboard.core.options import FaceName, checked_face
from pegboard.core.tools import Tool, constant
from pegboard.core.wire import tool_from_wire
from pegboard.errors import ConfigError
from pegboard.tokens import DEFAULT_TOKENIZER

if TYPE_CHECKING:
    from mcp import Client

__all__ = [
    "FakeClock",
    "FakeSource",
    "RecordingObserver",
    "board_of",
    "connect",
    "list_tokens",
    "listed_costs",
    "make_tool",
]


def make_tool(
    name: str,
    properties: JsonObject | None = None,
    *,
    required: Sequence[str] = (),
    output_schema: JsonObject | None = None,
    **about: Any,
) -> Tool:
    """A tool of that name that takes these properties; `about` is any further field of `Tool`."""
    schema: JsonObject = {"type": "object", "properties": properties or {}}
    if required:
        schema["required"] = list(required)
    return Tool(name, constant(schema, output_schema), **about)


class FakeClock:
    """Time that passes when a test says so: call it for the time, `sleep` moves it."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


class FakeSource:
    """A `Source` that answers as told and remembers its calls.

    An answer is a `CallResult`, an exception to raise, or any JSON value.
    """

    def __init__(self, tools: Iterable[Tool] = (), **answers: Json) -> None:
        self.listed = list(tools)
        self.answers: dict[str, Json] = dict(answers)
        self.calls: list[Call] = []

    async def tools(self) -> Sequence[Tool]:
        return self.listed

    async def call(self, call: Call) -> CallResult:
        self.calls.append(call)
        answer = self.answers.get(call.tool.name, "done")
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, CallResult):
            return answer
        return CallResult.text(answer) if isinstance(answer, str) else CallResult.json(answer)


class RecordingObserver:
    """An `Observer` that keeps every event it is told of."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> None:
        self.events.append(event)

    def kinds(self) -> list[str]:
        """The kinds of what happened, in order."""
        return [event.kind for event in self.events]


def board_of(**sources: FakeSource) -> Pegboard:
    """A board over fake servers, by name; their tools become those of that server."""
    from dataclasses import replace

    tools = [
        replace(tool, server=server, id="")
        for server, source in sources.items()
        for tool in source.listed
    ]
    board = Pegboard("fakes")
    board.mount(sources, tools)
    return board


@asynccontextmanager
async def connect(
    server: Any, *, face: str | None = None, era: Era = "modern", name: str = "test"
) -> AsyncGenerator[Client]:
    """A real MCP client, connected in memory.

    Args:
        server: A `Pegboard`; an `MCPServer`, low-level `Server` or FastMCP server; or what the
            client of the SDK takes: a URL, or the parameters of a command.
        face: The face of a board, whatever it is configured to.
        era: The protocol era that the client speaks.
        name: What the client calls itself.
    """
    from mcp import Client
    from mcp_types import Implementation

    info = Implementation(name=name, version="0")
    mode = "legacy" if era == "legacy" else "auto"
    async with Client(_target(server, face), mode=mode, client_info=info) as client:
        yield client


async def list_tokens(
    server: Any, face: str = "proxy", *, tokenizer: str = DEFAULT_TOKENIZER
) -> int:
    """The tokens that a model reads of a server's list under a face.

    A server that Pegboard has no part in yet is counted as it would be behind it.
    """
    return sum((await listed_costs(server, face, tokenizer=tokenizer)).values())


async def listed_costs(
    server: Any, face: str = "proxy", *, tokenizer: str = DEFAULT_TOKENIZER
) -> dict[str, int]:
    """The tokens that a model reads of each tool that a server lists under a face."""
    from pegboard.measure.faces import listed, read_tokens

    board = await _catalogued(server)
    name: Any = checked_face(face)
    entries = await listed(board, _chosen(board) if name == "auto" else name)
    return {entry["name"]: read_tokens([entry], tokenizer) for entry in entries}


def _chosen(board: Pegboard) -> FaceName:
    from pegboard.core.calls import Caller
    from pegboard.faces.auto import choose

    return choose("auto", Caller(), board.catalog, board.options)


async def _catalogued(server: Any) -> Pegboard:
    """A board that has the server's tools, all of them, whatever face it wears."""
    if isinstance(server, Pegboard):
        return server
    from pegboard.core.details import LAZY_KEY

    board = Pegboard("measured")
    async with connect(server) as client:
        cursor: str | None = None
        while True:
            page = await client.list_tools(cursor=cursor, meta={LAZY_KEY: False})  # pyright: ignore[reportArgumentType] a key of ours
            for tool in page.tools:
                entry = tool.model_dump(by_alias=True, mode="json", exclude_none=True)
                board.add(tool_from_wire(entry))
            cursor = page.next_cursor
            if cursor is None:
                return board


def _target(server: Any, face: str | None) -> Any:
    if isinstance(server, Pegboard):
        from pegboard.server.serve import build_server

        return build_server(server, environ={} if face is None else {"PEGBOARD_FACE": face})
    if face is not None:
        raise ConfigError("Only a `Pegboard` is shown under a face: give one, or leave `face` out.")
    if type(server).__name__ == "FastMCP":
        from pegboard.server import sdk

        return sdk.lowlevel(server)
    return server
