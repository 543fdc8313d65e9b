"""For your own tests: an in-memory client, fakes of the ports, and the token cost of a server.

    async with connect(board, mode="proxy") as client:       # a board, or any MCP server object
        await client.call_tool("search_tools", {"query": "open issues"})

    assert await list_tokens(server, mode="proxy") < 500

Fakes implement a port of `pegboard.ports` and do what the test says; nothing is patched.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pegboard.board import Pegboard
from pegboard.core.calls import Caller, CallResult, Era, ToolCall
from pegboard.core.events import Event
from pegboard.core.json import Json, JsonObject
from pegboard.core.options import check_mode
from pegboard.core.tool_parser import tool_from_wire
from pegboard.core.tools import Tool, constant_definition
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
    return Tool(name, constant_definition(schema, output_schema), **about)


class FakeClock:
    """Time that passes when a test says so: call it for the time, `sleep` moves it."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


class FakeSource:
    """A `Source` with fixed answers, which records its calls.

    An answer is a `CallResult`, an exception to raise, or any JSON value.
    """

    def __init__(self, tools: Iterable[Tool] = (), **answers: Json) -> None:
        self.listed = list(tools)
        self.answers: dict[str, Json] = dict(answers)
        self.calls: list[ToolCall] = []

    async def tools(self) -> Sequence[Tool]:
        return self.listed

    async def call(self, call: ToolCall) -> CallResult:
        self.calls.append(call)
        answer = self.answers.get(call.tool.name, "done")
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, CallResult):
            return answer
        return CallResult.text(answer) if isinstance(answer, str) else CallResult.json(answer)


class RecordingObserver:
    """An `Observer` that records every event."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> None:
        self.events.append(event)

    def kinds(self) -> list[str]:
        """The kinds of the events, in order."""
        return [event.kind for event in self.events]


def board_of(**sources: FakeSource) -> Pegboard:
    """A board over fake servers, by name."""
    from dataclasses import replace

    tools = [
        # An empty id is computed again, now with the name of the server in it.
        replace(tool, server=server, id="")
        for server, source in sources.items()
        for tool in source.listed
    ]
    board = Pegboard("fakes")
    board.mount(sources, tools)
    return board


@asynccontextmanager
async def connect(
    server: Any, *, mode: str | None = None, era: Era = "modern", name: str = "test"
) -> AsyncGenerator[Client]:
    """A real MCP client, connected in memory.

    Args:
        server: A `Pegboard`; an `MCPServer`, low-level `Server` or FastMCP server; or what the
            client of the SDK accepts: a URL, or the parameters of a command.
        mode: The mode of a board, instead of the configured one.
        era: The protocol era that the client speaks.
        name: The name of the client.
    """
    from mcp import Client
    from mcp_types import Implementation

    info = Implementation(name=name, version="0")
    # `auto` negotiates as real clients do: the modern era first, then the one before.
    negotiation = "legacy" if era == "legacy" else "auto"
    async with Client(_target(server, mode), mode=negotiation, client_info=info) as client:
        yield client


async def list_tokens(
    server: Any, mode: str = "proxy", *, tokenizer: str = DEFAULT_TOKENIZER
) -> int:
    """The tokens of a server's list in a mode, as a model reads it.

    A server without Pegboard is counted as if it were behind one.
    """
    return sum((await listed_costs(server, mode, tokenizer=tokenizer)).values())


async def listed_costs(
    server: Any, mode: str = "proxy", *, tokenizer: str = DEFAULT_TOKENIZER
) -> dict[str, int]:
    """The tokens of each tool in a server's list in a mode, as a model reads it."""
    from pegboard.measure.mode_costs import count_entry_tokens, list_entries
    from pegboard.modes.auto import choose_mode

    board = await _load_board(server)
    name: Any = check_mode(mode)
    if name == "auto":
        name = choose_mode("auto", Caller(), board.catalog, board.options)
    entries = await list_entries(board, name)
    return {entry["name"]: count_entry_tokens([entry], tokenizer) for entry in entries}


async def _load_board(server: Any) -> Pegboard:
    """A board with all tools of a server, whatever mode it is in."""
    if isinstance(server, Pegboard):
        return server
    from pegboard.core.tool_parser import LAZY_KEY

    board = Pegboard("measured")
    async with connect(server) as client:
        cursor: str | None = None
        while True:
            # A server with Pegboard lists all its tools for this key, in every mode. Others ignore
            # it.
            page = await client.list_tools(cursor=cursor, meta={LAZY_KEY: False})  # pyright: ignore[reportArgumentType] a key of ours
            for tool in page.tools:
                entry = tool.model_dump(by_alias=True, mode="json", exclude_none=True)
                board.add(tool_from_wire(entry))
            cursor = page.next_cursor
            if cursor is None:
                return board


def _target(server: Any, mode: str | None) -> Any:
    if isinstance(server, Pegboard):
        from pegboard.server.serving import build_server

        return build_server(server, environ={} if mode is None else {"PEGBOARD_MODE": mode})
    if mode is not None:
        raise ConfigError("Only a `Pegboard` has modes: pass one, or leave `mode` out.")
    # By name, since FastMCP is an optional dependency that need not be installed.
    if type(server).__name__ == "FastMCP":
        from pegboard.server import mcp_private

        return mcp_private.get_lowlevel_server(server)
    return server
