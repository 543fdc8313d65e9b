"""Searches that a real gateway learns from: over stdio by default, over HTTP not at all."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from tests.cli.terminal import ROOT, pegboard

from pegboard.config.loader import ConfigEnvironment, load_configuration
from pegboard.core.calls import Caller
from pegboard.gateway.gateway import Gateway

SERVER = """
from mcp.server import MCPServer
server = MCPServer("tickets")

@server.tool()
def close_ticket(ticket: str) -> str:
    "Close a ticket: the work on it is finished."
    return "closed"

@server.tool()
def archive_ticket(ticket: str) -> str:
    "Move a ticket to the archive."
    return "archived"

server.run()
"""
QUERY = "put the ticket in the box of finished work"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    script, path = tmp_path / "tickets.py", tmp_path / "mcp.json"
    script.write_text(SERVER)
    entry = {"command": sys.executable, "args": [str(script)]}
    path.write_text(json.dumps({"mcpServers": {"tickets": entry}}))
    return path


@pytest.mark.anyio
async def test_a_gateway_learns_from_its_user_until_it_is_told_to_forget(
    config: Path, tmp_path: Path
) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "pegboard", "serve", "--config", str(config), "--mode", "proxy"],
        env={**os.environ, "PEGBOARD_HOME": str(tmp_path / "cache")},
        cwd=ROOT,
    )
    options = ("--config", str(config))
    assert pegboard("index", *options, home=tmp_path).code == 0

    async def search(client: Client) -> list[str]:
        answer = await client.call_tool("search_tools", {"queries": [QUERY]})
        return re.findall(r"tickets_\w+", str(answer.content))

    async with Client(server) as client:
        first, second, *_ = await search(client)
        for _ in range(3):
            await search(client)
            arguments = {"name": second, "arguments": {"ticket": "A-1"}}
            called = await client.call_tool("call_write_tool", arguments)
            assert not called.is_error
        assert (await search(client))[0] == second
        assert "of one user" in pegboard("index", "--forget", *options, home=tmp_path).out
        assert (await search(client))[0] == first
    assert "Nothing to forget" in pegboard("index", "--forget", *options, home=tmp_path).out
    again = pegboard("index", "--forget", "--json", *options, home=tmp_path)
    assert again.json["forgotten"] == 0


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("setting", "learns"),
    [("", [True, False, False]), ('learn = "principals"', [True, True, False])],
)
async def test_a_shared_gateway_learns_only_where_the_operator_wants_it(
    config: Path, tmp_path: Path, setting: str, learns: list[bool]
) -> None:
    path = tmp_path / "pegboard.toml"
    path.write_text(f'import = ["{config}"]\n[search]\n{setting}\n')
    configuration = load_configuration(path, ConfigEnvironment({}, tmp_path, tmp_path))
    async with Gateway(configuration, folder=tmp_path / "data") as gateway:
        callers = [Caller(), Caller("ann", session="a"), Caller(anonymous=True, session="b")]
        assert [gateway.board.searches.learns_from(caller) for caller in callers] == learns
