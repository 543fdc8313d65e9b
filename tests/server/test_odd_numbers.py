"""Texts that look like numbers and are not: refused as invalid, never an internal error."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.client._memory import InMemoryTransport

from pegboard import Pegboard
from pegboard.server.serving import build_server

pytestmark = pytest.mark.anyio

ODD = ("²", "٣٤", "9" * 5_000, "-1", "1e3", " 1", "½", "\u0000")


def board() -> Pegboard:
    made = Pegboard("odd", mode="index")

    @made.tool
    def add(n: int, f: float = 0.0) -> str:
        """Add a number."""
        return str(n)

    return made


@pytest.mark.parametrize("method", ["tools/list", "tools/manifest"])
@pytest.mark.parametrize("cursor", ODD)
async def test_an_odd_cursor_is_unknown(method: str, cursor: str) -> None:
    async with Client(InMemoryTransport(build_server(board())), cache=None) as client:
        with pytest.raises(MCPError, match="Unknown cursor") as raised:
            await asked(client, method, cursor)
    assert raised.value.error.code == -32602


async def asked(client: Client, method: str, cursor: str) -> Any:
    if method == "tools/list":
        return await client.list_tools(cursor=cursor)
    import mcp_types as t

    class Request(t.Request[Any, Any]):
        method: str = "tools/manifest"
        params: Any = None

    params = t.PaginatedRequestParams(cursor=cursor)
    return await client.session.send_request(Request(params=params), t.EmptyResult)


@pytest.mark.parametrize("n", ["9" * 5_000, "1e999", "-1e999", "²", "1" * 399 + "e1"])
async def test_an_odd_number_in_arguments_is_refused_or_passed_on(n: str) -> None:
    async with Client(InMemoryTransport(build_server(board())), cache=None) as client:
        result = await client.call_tool("add", {"n": n, "f": n})
    assert result.is_error
    assert "`n` must be int" in str(result.content)
    assert "Internal" not in str(result.content)


async def test_an_odd_page_of_a_category_is_refused() -> None:
    async with Client(InMemoryTransport(build_server(board())), cache=None) as client:
        for number in ODD:
            result = await client.call_tool("list_available_tools", {"category": f"x#{number}"})
            assert "Internal" not in str(result.content)
