"""Who chooses the mode: environment, URL, header, configuration, else `auto`; and the pins."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from tests.boards import office_board
from tests.conformance.clients import Era, Target, office_process, play_python, served
from tests.conformance.scenarios import LISTING, call, request

from pegboard import ConfigError, Pegboard
from pegboard.core.options import MODES, ModeName
from pegboard.server.serving import build_server

ERAS: tuple[Era, ...] = ("legacy", "modern")
pytestmark = pytest.mark.parametrize("era", ERAS)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(office_board().asgi()) as address:
        yield address


def names(target: Target, era: Era) -> list[str]:
    return play_python(target, era, {"list": LISTING})["list"].names


def test_a_query_asks_for_a_mode(url: str, era: Era) -> None:
    assert names(f"{url}/mcp?mode=index", era) == ["list_available_tools", "get_tool_description"]


def test_the_path_wins_over_the_query(url: str, era: Era) -> None:
    assert "tools_dispatch" in names(f"{url}/mcp/hierarchy?mode=index", era)


@asynccontextmanager
async def with_header(url: str) -> AsyncGenerator[Any]:
    """A connection whose every request asks for the `index` mode by header."""
    headers = {"Pegboard-Mode": "index"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


def test_a_header_asks_for_a_mode_and_the_query_wins_over_it(url: str, era: Era) -> None:
    assert "get_tool_description" in names(with_header(f"{url}/mcp"), era)
    assert "tools_dispatch" in names(with_header(f"{url}/mcp?mode=hierarchy"), era)


def test_an_office_with_loaders_is_shown_by_proxy_when_nobody_asks(url: str, era: Era) -> None:
    assert names(f"{url}/mcp", era)[0] == "search_tools"


def test_a_query_of_no_mode_is_misuse(url: str, era: Era) -> None:
    listed = play_python(f"{url}/mcp?mode=prox", era, {"list": LISTING})["list"]
    assert "Did you mean 'proxy'?" in listed.misuse["message"]


def test_what_a_request_asks_for_wins_over_code(era: Era) -> None:
    with served(office_board(mode="hierarchy").asgi()) as address:
        assert "get_tool_description" in names(f"{address}/mcp/index", era)
        assert "tools_dispatch" in names(f"{address}/mcp", era)


def test_the_environment_wins_over_requests_and_code(era: Era) -> None:
    environ = {"PEGBOARD_MODE": "index"}
    assert "get_tool_description" in names(build_server(office_board(), environ=environ), era)
    configured = build_server(office_board(mode="hierarchy"), environ=environ)
    assert "get_tool_description" in names(configured, era)
    with served(office_board(mode="hierarchy").asgi(environ=environ)) as address:
        assert "get_tool_description" in names(f"{address}/mcp/proxy", era)


def test_pins_from_the_environment_reach_a_real_process(era: Era) -> None:
    process = office_process(PEGBOARD_MODE="index", ALWAYS_AVAILABLE_TOOLS="list_projects, echo,")
    listed = names(StdioServerParameters(**process), era)
    assert listed == ["list_available_tools", "get_tool_description", "list_projects", "echo"]


@pytest.mark.parametrize("mode", MODES)
def test_pins_are_listed_whole_by_every_mode(mode: ModeName, era: Era) -> None:
    board = office_board(mode=mode, pins=["list_projects", "issues.search"])
    told = play_python(
        build_server(board, environ={}), era, {"list": LISTING, "call": call("list_projects")}
    )
    listed = {tool["name"]: tool for tool in told["list"].ok["tools"]}
    assert {"list_projects", "issues.search"} <= set(listed)
    assert "query" in listed["issues.search"]["inputSchema"]["properties"]
    assert told["call"].ok["structuredContent"] == {"result": ["apollo", "gemini"]}


def test_a_list_comes_in_pages_where_that_is_configured(era: Era) -> None:
    server = build_server(office_board(mode="eager", page_size=20), environ={})
    told = play_python(
        server, era, {"first": LISTING, "second": request("tools/list", cursor="20")}
    )
    assert len(told["first"].names) == 20
    assert told["first"].ok["nextCursor"] == "20"
    assert len(told["second"].names) == 9
    assert "nextCursor" not in told["second"].ok
    assert not set(told["first"].names) & set(told["second"].names)


@pytest.mark.parametrize("mode", ["proxy", "index", "hierarchy", "dynamic"])
def test_listing_a_lazy_mode_runs_no_loader_and_makes_no_schema(mode: str, era: Era) -> None:
    board = office_board(mode=mode)
    server = build_server(board, environ={})
    made_at_start = board.schema_cache.stats().misses
    assert names(server, era)
    assert not board.is_loaded("reports")
    assert board.schema_cache.stats().misses == made_at_start < len(board.known_catalog) / 2


@pytest.mark.parametrize("mode", ["eager", "stub"])
def test_a_mode_that_lists_everything_runs_the_loaders(mode: str, era: Era) -> None:
    board = office_board(mode=mode)
    assert "burndown" in names(build_server(board, environ={}), era)
    assert board.is_loaded("reports")


def test_a_small_board_is_simply_listed(era: Era) -> None:
    board = Pegboard("small")
    board.tool(shout)
    assert names(build_server(board, environ={}), era) == ["shout"]


def shout(text: str) -> str:
    """A tool with a name."""
    return text


def test_what_cannot_be_served_stops_the_server_at_once(era: Era) -> None:
    with pytest.raises(
        ConfigError, match=r"PEGBOARD_MODE: Unknown mode 'prox'\. Did you mean 'proxy'\?"
    ):
        build_server(office_board(), environ={"PEGBOARD_MODE": "prox"})
    with pytest.raises(ConfigError, match=r"A pin names no tool.*list_projects"):
        build_server(office_board(pins=["list_project"]), environ={})
    with pytest.raises(ConfigError, match=r"A pin in ALWAYS_AVAILABLE_TOOLS .*documents\.search"):
        build_server(office_board(), environ={"ALWAYS_AVAILABLE_TOOLS": "search"})


def test_a_meta_tool_of_another_mode_is_a_tool_that_does_not_exist(url: str, era: Era) -> None:
    steps = {"call": call("call_tool", name="get_issue", arguments={})}
    told = play_python(f"{url}/mcp/eager", era, steps)["call"].misuse
    assert "call_tool" in told["message"]
    assert "call it directly" not in told["message"]
