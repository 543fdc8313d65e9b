"""What `pegboard.testing` and the pytest plugin give to other people's tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fastmcp import FastMCP
from mcp.server import MCPServer
from tests.boards import office_board

import pegboard.testing
from pegboard import UpstreamUnavailable, attach
from pegboard.errors import ConfigError
from pegboard.pipeline import Parts
from pegboard.testing import (
    FakeClock,
    FakeSource,
    RecordingObserver,
    board_of,
    connect,
    list_tokens,
    listed_costs,
    make_tool,
)

pytestmark = pytest.mark.anyio


def _flat(kind: type[MCPServer] | type[FastMCP]) -> MCPServer | FastMCP:
    server = kind("flat")

    @server.tool()
    def forecast(city: str, days: int = 3) -> str:
        """The weather of the coming days in a city, as told by somebody who has seen it."""
        return f"{city}: sunny for {days} days"

    return server


def test_the_public_names_are_there() -> None:
    for name in pegboard.testing.__all__:
        assert getattr(pegboard.testing, name)


async def test_a_client_in_memory_sees_a_board_under_the_mode_asked_for() -> None:
    async with connect(office_board(), mode="proxy") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "search_tools" in names
        found = await client.call_tool("search_tools", {"query": "create an issue"})
    assert "create_issue" in str(found.content)


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("kind", [MCPServer, FastMCP])
async def test_a_client_in_memory_sees_other_servers_too(kind: type, era: str) -> None:
    async with connect(_flat(kind), era=era) as client:  # pyright: ignore[reportArgumentType]
        called = await client.call_tool("forecast", {"city": "Oslo"})
    assert "Oslo: sunny for 3 days" in str(called.content)


async def test_a_mode_of_a_server_without_a_board_is_refused() -> None:
    with pytest.raises(ConfigError, match="Only a `Pegboard`"):
        async with connect(_flat(MCPServer), mode="proxy"):
            pass


@pytest.mark.parametrize("kind", [MCPServer, FastMCP])
async def test_a_flat_server_is_counted_as_it_would_be_behind_pegboard(kind: type) -> None:
    eager = await listed_costs(_flat(kind), "eager")
    assert list(eager) == ["forecast"]
    assert await list_tokens(_flat(kind), "eager") == eager["forecast"] > 20
    assert "search_tools" in await listed_costs(_flat(kind), "proxy")


async def test_a_server_that_is_lazy_already_is_counted_whole() -> None:
    flat, lazy = _flat(MCPServer), attach(_flat(MCPServer), mode="proxy")
    assert await list_tokens(lazy, "eager") == await list_tokens(flat, "eager")


async def test_auto_counts_the_mode_that_it_would_choose() -> None:
    assert await list_tokens(_flat(MCPServer), "auto") == await list_tokens(
        _flat(MCPServer), "eager"
    )


async def test_fake_servers_answer_as_told_and_remember() -> None:
    source = FakeSource(
        [make_tool("read", {"id": {"type": "integer"}}, required=["id"]), make_tool("fail")],
        read={"title": "x"},
        fail=UpstreamUnavailable("gone"),
    )
    board = board_of(notes=source)
    observer = RecordingObserver()
    board.parts = Parts(observers=(observer,))
    assert (await board.call("read", {"id": 1})).output == {"title": "x"}
    with pytest.raises(UpstreamUnavailable, match="gone"):
        await board.call("fail")
    assert source.calls[0].arguments == {"id": 1}
    assert source.calls[0].tool.server == "notes"
    assert observer.kinds()


async def test_a_fake_clock_moves_when_told() -> None:
    clock = FakeClock(5.0)
    await clock.sleep(2.5)
    assert clock() == 7.5


BUDGET_TESTS = """
import pytest
from mcp.server import MCPServer

server = MCPServer("flat")

@server.tool()
def forecast(city: str) -> str:
    "The weather of the coming days."
    return city

def test_fits(pegboard_budget):
    assert pegboard_budget(server, mode="eager", max_tokens=200) > 10

@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_fits_in_an_async_test(pegboard_budget, anyio_backend):
    pegboard_budget(server, max_tokens=1000)

def test_does_not_fit(pegboard_budget):
    pegboard_budget(server, mode="eager", max_tokens=10)
"""


def test_the_budget_fixture_holds_a_server_to_its_tokens(tmp_path: Path) -> None:
    path = tmp_path / "test_budget.py"
    path.write_text(BUDGET_TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "pegboard.pytest_plugin", "-q", str(path)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=env, check=False
    )
    assert "1 failed, 2 passed" in done.stdout, done.stdout
    assert "more than 10. The most expensive tools: forecast (" in done.stdout


def test_the_plugin_costs_other_people_s_runs_nothing() -> None:
    code = "import sys, pegboard.pytest_plugin; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'mcp'" not in done.stdout
    assert "'splintr'" not in done.stdout
