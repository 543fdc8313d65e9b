"""Parity over whole catalogs: the example servers, walked mode by mode."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import anyio
import pytest
from mcp import Client
from tests.conformance.clients import Era, play_python
from tests.conformance.scenarios import LAZY, call, request, shown_mode

from examples import memory
from examples.tracker import Tracker
from examples.tracker import board_for as tracker_board
from pegboard import Pegboard
from pegboard.core.options import MODES, ModeName
from pegboard.server.serving import build_server

WRONG = {"no such parameter": 1}
"""Refused before a call, so that every tool can be tried without doing anything."""


@pytest.fixture(scope="module", params=["tracker", "memory"])
def board(request: pytest.FixtureRequest) -> Generator[Pegboard]:
    if request.param == "tracker":
        database = Tracker.open(":memory:")
        yield tracker_board(database)
    else:
        database = memory.open_memory()
        yield memory.board_for(database)
    database.connection.close()


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("mode", MODES)
def test_what_a_walk_through_a_mode_finds_is_described_and_callable(
    board: Pegboard, mode: ModeName, era: Era
) -> None:
    board.options = replace(board.options, mode=mode)
    server = build_server(board, environ={})
    names = anyio.run(walked, server, shown_mode(mode, era), era)
    assert sorted(names) == sorted(board.catalog.address(t) for t in board.tools())
    told = play_python(
        server,
        era,
        {
            "batch": request("tools/describe_batch", names=names[:200]),
            **{name: call(name, **WRONG) for name in names},
        },
    )
    described = told["batch"].ok
    assert [entry["schema"]["name"] for entry in described["tools"]] == names
    assert described["missing"] == []
    for name in names:
        assert told[name].mendable["kind"] == "invalid_arguments", name


async def walked(server: Any, mode: ModeName, era: Era) -> list[str]:
    """Every tool that a client can find by the mode's own means."""
    async with Client(server, mode="legacy" if era == "legacy" else "auto") as client:
        match mode:
            case "eager" | "stub":
                return [tool.name for tool in (await client.list_tools()).tools]
            case "index":
                return await _indexed(client)
            case "hierarchy":
                return await _hierarchical(client)
            case _:
                stubs = await client.list_tools(meta={LAZY: True})
                return [tool.name for tool in stubs.tools]


async def _indexed(client: Client) -> list[str]:
    """Category by category, and page by page where `next` names a further one."""
    first = await _answer(client, "list_available_tools", {})
    names: list[str] = []
    for category in first["categories"]:
        asked: str | None = category if isinstance(category, str) else category["name"]
        while asked is not None:
            page = await _answer(client, "list_available_tools", {"category": asked})
            names += [row["name"] for row in page["tools"]]
            asked = page.get("next")
    assert {row["name"] for row in first["tools"]} <= set(names)
    assert first["total"] == len(names)
    return names


async def _hierarchical(client: Client) -> list[str]:
    names: list[str] = []
    for category in (await _answer(client, "tools_list_categories", {}))["categories"]:
        tools = (await _answer(client, "tools_list_tools", {"category": category["name"]}))["tools"]
        assert len(tools) == category["tool_count"]
        for tool in tools:
            pair = {"category": category["name"], "tool": tool["name"]}
            schema = (await _answer(client, "tools_get_schema", pair))["schema"]
            assert (schema["name"], schema["category"]) == (tool["name"], category["name"])
            names.append(tool["name"])
    return names


async def _answer(client: Client, name: str, arguments: dict[str, Any]) -> Any:
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result
    block: Any = result.content[0]
    return json.loads(block.text)
