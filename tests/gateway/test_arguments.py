"""Parameters that a server's schema does not name: passed on, unless they are slips of the pen."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as t
import pytest
from mcp import Client
from tests.gateway.support import client_of, running, said
from tests.upstream.servers.everything import Everything
from tests.upstream.support import in_memory, memory

from pegboard import Pegboard
from pegboard.config.settings import Settings
from pegboard.server.serving import build_server

pytestmark = pytest.mark.anyio

QUERY: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "max_results": {"type": "integer"}},
}
UNKNOWN = "io.github.pegboard/unknown_parameters"


@asynccontextmanager
async def behind(
    folder: Path, schema: dict[str, Any], mode: Any = "eager"
) -> AsyncGenerator[Client]:
    it = Everything()
    it.schemas["echo"] = schema
    wires = memory({"e": (it, "modern")})
    async with (
        running(
            [in_memory("e")], folder, settings=Settings(mode=mode), open_transport=wires
        ) as gateway,
        client_of(gateway, "modern") as client,
    ):
        yield client


def received(result: t.CallToolResult) -> Any:
    assert result.structured_content is not None, said(result)
    return result.structured_content["arguments"]


@pytest.mark.parametrize("mode", ["eager", "proxy"])
async def test_a_server_gets_parameters_that_its_schema_does_not_forbid(
    mode: str, tmp_path: Path
) -> None:
    given = {"query": "a", "undocumented": {"b": [1]}}
    async with behind(tmp_path, QUERY, mode) as client:
        if mode == "eager":
            result = await client.call_tool("e_echo", given)
        else:
            result = await client.call_tool(
                "call_destructive_tool", {"name": "e_echo", "arguments": given}
            )
    assert received(result) == given
    assert (result.meta or {})[UNKNOWN] == ["undocumented"]


async def test_a_slip_is_refused_before_the_server_could_overlook_it(tmp_path: Path) -> None:
    async with behind(tmp_path, QUERY) as client:
        told = await client.call_tool("e_echo", {"query": "a", "maxResult": 3})
        assert told.is_error
        assert "there is no `maxResult` (did you mean `max_results`?)" in said(told)
        both = await client.call_tool("e_echo", {"query": "a", "max_results": 1, "maxResult": 3})
        assert received(both)["maxResult"] == 3


async def test_a_server_that_forbids_other_parameters_is_not_called(tmp_path: Path) -> None:
    async with behind(tmp_path, {**QUERY, "additionalProperties": False}) as client:
        told = await client.call_tool("e_echo", {"query": "a", "undocumented": 1})
        assert told.is_error
        assert "there is no `undocumented`" in said(told)


async def test_a_python_function_takes_no_parameter_that_it_does_not_have() -> None:
    board = Pegboard(mode="eager")

    @board.tool
    def find(query: str) -> str:
        """Find something."""
        return query

    async with Client(build_server(board), cache=None) as client:
        told = await client.call_tool("find", {"query": "a", "undocumented": 1})
        assert told.is_error
        assert "there is no `undocumented`" in said(told)
