"""Behind a gateway names have prefixes; whoever knows a server's own names gets by with those."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from tests.gateway.support import client_of, running, said
from tests.upstream.servers.everything import Everything
from tests.upstream.support import in_memory, memory

from pegboard.config.settings import Settings

pytestmark = pytest.mark.anyio


async def answers(folder: Path, mode: Any, *asked: tuple[str, dict[str, Any]]) -> list[Any]:
    """What a client is told in one mode by two servers that both have everything, as JSON."""
    wires = memory({"fetch": (Everything(), "modern"), "other": (Everything(), "legacy")})
    specs = [in_memory("fetch"), in_memory("other", include=("echo",), category="talk")]
    async with (
        running(specs, folder, settings=Settings(mode=mode), open_transport=wires) as gateway,
        client_of(gateway, "modern") as client,
    ):
        return [await _told(client, *one) for one in asked]


async def _told(client: Client, name: str, arguments: dict[str, Any]) -> Any:
    result = await client.call_tool(name, arguments)
    try:
        return json.loads(said(result))
    except ValueError:
        return said(result)


async def test_the_pair_finds_a_tool_by_its_servers_name_for_it(tmp_path: Path) -> None:
    schema, other, called, several = await answers(
        tmp_path,
        "hierarchy",
        ("tools_get_schema", {"category": "fetch", "tool": "echo"}),
        ("tools_get_schema", {"category": "talk", "tool": "echo"}),
        ("tools_dispatch", {"category": "fetch", "tool": "echo", "params": {"a": 1}}),
        (
            "tools_dispatch",
            {
                "calls": [
                    {"category": "talk", "tool": "echo", "params": {}},
                    {"tool": "fetch.echo", "params": {}},
                    {"category": "fetch", "tool": "fetch_echo", "params": {}},
                ]
            },
        ),
    )
    assert schema["schema"]["name"] == "fetch_echo"
    assert other["schema"]["name"] == "other_echo"
    assert called == "echo"
    assert [outcome["ok"] for outcome in several["results"]] == [True, True, True]


async def test_server_and_tool_do_in_every_mode_that_asks_for_a_name(tmp_path: Path) -> None:
    described, called = await answers(
        tmp_path / "proxy",
        "proxy",
        ("describe_tools", {"names": ["fetch.echo", "other/echo", "rich"]}),
        ("call_write_tool", {"name": "talk.echo", "arguments": {}}),
    )
    assert all(name in described for name in ("fetch_echo", "other_echo", "fetch_rich"))
    assert called == "echo"
    (shown,) = await answers(
        tmp_path / "index", "index", ("get_tool_description", {"tool_name": "fetch.echo"})
    )
    assert shown["name"] == "fetch_echo"


async def test_a_name_of_two_servers_is_answered_with_an_address_for_each(tmp_path: Path) -> None:
    (told,) = await answers(
        tmp_path, "proxy", ("call_write_tool", {"name": "echo", "arguments": {}})
    )
    assert "use one of fetch_echo, other_echo" in told


async def test_a_direct_call_by_a_servers_name_is_understood_where_it_is_the_only_one(
    tmp_path: Path,
) -> None:
    (direct,) = await answers(tmp_path, "proxy", ("other.echo", {}))
    assert direct == "echo"
    with pytest.raises(BaseExceptionGroup) as caught:
        await answers(tmp_path, "proxy", ("echo", {}))
    assert caught.group_contains(MCPError, match="fetch_echo, other_echo")
