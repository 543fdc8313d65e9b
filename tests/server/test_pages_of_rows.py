"""Pages of like rows are read as tables where that is shorter, and say the same."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from mcp import Client
from tests.gateway.support import said

from pegboard import Pegboard, count_tokens
from pegboard.core.json import compact
from pegboard.core.tables import decode_table
from pegboard.server.serve import build_server

pytestmark = pytest.mark.anyio

ROWS = [{"id": n, "subject": f"Letter {n}", "unread": n % 10 == 0} for n in range(3_000)]
STRUCTURED: Any = {"io.github.pegboard/structured": True}


def archive(**options: Any) -> Pegboard:
    board = Pegboard(face="proxy", **options)

    @board.tool
    def letters() -> list[dict[str, Any]]:
        """List all letters."""
        return ROWS

    @board.tool
    def words() -> list[str]:
        """List all words."""
        return [f"word {n}" for n in range(5_000)]

    return board


async def kept(client: Client, tool: str = "letters") -> str:
    notice = await client.call_tool("call_tool", {"name": tool, "arguments": {}})
    return json.loads(said(notice))["handle"]


async def test_a_page_of_like_rows_is_a_table_that_says_the_same() -> None:
    async with Client(build_server(archive()), cache=None) as client:
        asked = {"handle": await kept(client), "offset": 100, "limit": 50}
        brief = said(await client.call_tool("read_result", asked))
        assert brief.startswith("value[50]{id,subject,unread}:\n100,Letter 100,true\n")
        page = decode_table(brief)
        assert page == {
            "value": ROWS[100:150],
            "offset": 100,
            "total": 3_000,
            "next": {"offset": 150},
        }
        assert count_tokens(brief) <= 0.85 * count_tokens(compact(page))


async def test_matches_are_a_table_too() -> None:
    async with Client(build_server(archive()), cache=None) as client:
        asked = {"handle": await kept(client), "grep": "Letter 29", "limit": 30}
        page = decode_table(said(await client.call_tool("read_result", asked)))
        assert page["matches"][:2] == [
            {"at": "[29]", "value": ROWS[29]},
            {"at": "[290]", "value": ROWS[290]},
        ]


async def test_other_pages_are_json() -> None:
    async with Client(build_server(archive()), cache=None) as client:
        few = {"handle": await kept(client), "limit": 2}
        assert json.loads(said(await client.call_tool("read_result", few)))["value"] == ROWS[:2]
        words = {"handle": await kept(client, "words"), "limit": 100}
        page = json.loads(said(await client.call_tool("read_result", words)))
        assert page["value"][99] == "word 99"


@pytest.mark.parametrize(("face", "more"), [("proxy", {"raw": True}), ("index", {})])
async def test_a_page_is_json_where_that_is_asked_for_or_promised(
    face: str, more: dict[str, Any]
) -> None:
    board = archive()
    async with Client(build_server(board), cache=None) as client:
        handle = await kept(client)
        board.reconfigure(replace(board.options, face=face))
        page = await client.call_tool("read_result", {"handle": handle, "limit": 50, **more})
        assert json.loads(said(page))["value"] == ROWS[:50]


async def test_whoever_asks_for_structured_content_gets_it() -> None:
    async with Client(build_server(archive()), cache=None) as client:
        asked = {"handle": await kept(client), "limit": 50}
        result = await client.call_tool("read_result", asked, meta=STRUCTURED)
        assert result.structured_content is not None
        assert result.structured_content["value"] == ROWS[:50]
        assert json.loads(said(result)) == result.structured_content


async def test_a_board_without_tables_has_none_here_either() -> None:
    async with Client(build_server(archive(tables=False)), cache=None) as client:
        asked = {"handle": await kept(client), "limit": 50}
        result = await client.call_tool("read_result", asked)
        assert json.loads(said(result))["value"] == ROWS[:50]
