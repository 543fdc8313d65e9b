"""Sessions of the `dynamic` mode: what accumulates, what is evicted, and the notification."""

from __future__ import annotations

import anyio
import pytest
from mcp import Client
from tests.boards import office_board
from tests.conformance.clients import play_python
from tests.conformance.scenarios import LISTING, call

from pegboard.server.serving import build_server

META = {"search_tools", "call_tool"}


def test_tools_beyond_the_cap_make_room_least_recently_used_first() -> None:
    server = build_server(office_board(mode="dynamic", session_cap=2), environ={})
    told = play_python(
        server,
        "legacy",
        {
            "one": call("search_tools", query="echo", limit=1),
            "two": call("search_tools", query="disk_usage", limit=1),
            "use": call("echo", text="still needed"),
            "three": call("search_tools", query="find_slot", limit=1),
            "list": LISTING,
            "evicted": call("disk_usage"),
        },
    )
    assert set(told["list"].names) - META == {"echo", "find_slot"}
    assert told["evicted"].ok["structuredContent"]["files"] == 0


def test_pins_take_no_room_and_stay() -> None:
    board = office_board(mode="dynamic", session_cap=1, pins=["list_projects"])
    told = play_python(
        build_server(board, environ={}),
        "legacy",
        {
            "one": call("search_tools", query="echo", limit=1),
            "pin": call("search_tools", query="list_projects", limit=1),
            "list": LISTING,
        },
    )
    assert set(told["list"].names) - META == {"list_projects", "echo"}
    assert told["pin"].notifications == ()


def test_a_search_that_finds_nothing_announces_nothing() -> None:
    told = play_python(
        build_server(office_board(mode="dynamic"), environ={}),
        "legacy",
        {"nothing": call("search_tools", query="zebra quantum xylophone"), "list": LISTING},
    )
    assert told["nothing"].notifications == ()
    assert set(told["list"].names) == META


@pytest.mark.anyio
async def test_sessions_do_not_see_what_others_found() -> None:
    server = build_server(office_board(mode="dynamic"), environ={})
    async with Client(server, mode="legacy") as one, Client(server, mode="legacy") as other:
        with anyio.fail_after(10):
            await one.call_tool("search_tools", {"query": "echo", "limit": 1})
            mine = {tool.name for tool in (await one.list_tools()).tools}
            theirs = {tool.name for tool in (await other.list_tools()).tools}
    assert mine == META | {"echo"}
    assert theirs == META


def test_the_order_of_the_list_does_not_follow_use() -> None:
    told = play_python(
        build_server(office_board(mode="dynamic"), environ={}),
        "legacy",
        {
            "b": call("search_tools", query="list_files", limit=1),
            "a": call("search_tools", query="find_slot", limit=1),
            "list": LISTING,
        },
    )
    assert told["list"].names == ["search_tools", "call_tool", "find_slot", "list_files"]
