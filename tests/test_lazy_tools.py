"""`LazyTools` with real servers: by `tools/describe`, through `proxy`, and without either."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer

from examples.tracker import build_board
from pegboard import LazyTools, ToolNotFound
from pegboard.errors import ToolError
from pegboard.testing import connect

pytestmark = pytest.mark.anyio
Kind = Literal["describe", "proxy", "plain"]


class WithoutExtension(Client):
    """A client whose server does not pass its extension on, as behind another gateway."""

    @property
    def server_capabilities(self) -> Any:
        found = super().server_capabilities
        return found.model_copy(update={"extensions": None, "experimental": None})


@asynccontextmanager
async def tools_of(
    kind: Kind, mode: str = "proxy", era: Any = "modern"
) -> AsyncGenerator[LazyTools]:
    async with connect(build_board(), mode=mode, era=era) as client:
        if kind == "proxy":
            client.__class__ = WithoutExtension
        yield LazyTools(client)


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("kind", ["describe", "proxy"])
async def test_a_tool_is_found_described_once_and_called(kind: Kind, era: str) -> None:
    async with tools_of(kind, era=era) as tools:
        found = await tools.find("which milestones are running late", limit=3)
        assert found[0].name.endswith("milestones")
        assert found[0].signature
        assert tools.definitions == {}
        first = await tools.call("list_projects")
        before = tools.definitions["list_projects"]
        assert await tools.call("list_projects") == first
        assert tools.definitions["list_projects"] is before
        assert isinstance(first, dict)
        assert list(tools.definitions) == ["list_projects"]


@pytest.mark.parametrize("mode", ["eager", "hierarchy", "dynamic"])
async def test_every_mode_of_a_board_will_do(mode: str) -> None:
    async with tools_of("describe", mode) as tools:
        names = [tool.name for tool in await tools.find("list projects", limit=5)]
        assert "list_projects" in names
        await tools.call("list_projects")
        assert "inputSchema" in await tools.describe("get_issue")
        assert len(tools.definitions) == 2


async def test_names_and_summaries_of_all_tools_cost_no_definition() -> None:
    async with tools_of("describe") as tools:
        listed = await tools.list()
        assert len(listed) > 100
        assert all(tool.summary for tool in listed)
        assert tools.definitions == {}


@pytest.mark.parametrize("kind", ["describe", "proxy"])
async def test_what_is_wrong_is_said(kind: Kind) -> None:
    async with tools_of(kind) as tools:
        with pytest.raises(ToolNotFound, match="nothing_like_it"):
            await tools.call("nothing_like_it")
        with pytest.raises(ToolError, match="`issue` is missing"):
            await tools.call("get_issue", {})


async def test_many_definitions_are_fetched_at_once() -> None:
    async with tools_of("describe") as tools:
        names = [tool.name for tool in await tools.list()]
        await tools.learn(names)
        assert set(tools.definitions) == set(names)


async def test_a_server_that_knows_nothing_of_this_works_too() -> None:
    server = MCPServer("plain")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    def shout(text: str) -> str:
        """Say something loudly."""
        return text.upper()

    async with Client(server) as client:
        tools = LazyTools(client)
        assert [tool.name for tool in await tools.find("add some numbers")] == ["add"]
        assert await tools.call("add", {"a": 2, "b": 3}) == {"result": 5}
        with pytest.raises(ToolNotFound):
            await tools.call("subtract")
