"""Every server tells a model, in a few constant sentences, how to work with its mode."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.server import MCPServer
from tests.boards import office_board
from tests.gateway.support import entry, said, searched, served, write

from pegboard import Pegboard, attach, count_tokens
from pegboard.core.options import MODES
from pegboard.server.serving import build_server

pytestmark = pytest.mark.anyio
ERAS = {"legacy": "legacy", "modern": "auto"}
OWN = "Ask Ada before you delete anything."


async def instructions_of(server: object, era: str) -> str:
    async with Client(InMemoryTransport(server), mode=ERAS[era], cache=None) as client:  # pyright: ignore[reportArgumentType]
        return client.instructions or ""


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_each_mode_has_short_instructions(mode: str, era: str) -> None:
    board = office_board(mode=mode)
    board.instructions = None
    text = await instructions_of(build_server(board), era)
    assert 0 < count_tokens(text) <= 80
    assert 1 <= text.count(".") <= 3
    board.disable(board.tools()[0].name)
    assert await instructions_of(build_server(board), era) == text


@pytest.mark.parametrize("era", ERAS)
async def test_the_authors_own_instructions_come_first(era: str) -> None:
    board = office_board(mode="proxy")
    board.instructions = OWN
    text = await instructions_of(build_server(board), era)
    assert text.startswith(f"{OWN}\n")
    assert "search_tools" in text


@pytest.mark.parametrize("era", ERAS)
async def test_they_fit_the_mode_that_auto_chooses(era: str) -> None:
    assert "search_tools" not in await instructions_of(build_server(Pegboard("small")), era)
    large = build_server(office_board(mode="auto", eager_budget=10))
    assert "search_tools" in await instructions_of(large, era)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", ["auto", "proxy", "eager"])
async def test_an_attached_server_keeps_its_own(mode: str, era: str) -> None:
    server = MCPServer("notes", instructions=OWN)

    @server.tool()
    def read_note(title: str) -> str:
        """Read a note."""
        return title

    text = await instructions_of(attach(server, mode=mode), era)
    assert text.startswith(f"{OWN}\n")
    assert count_tokens(text) <= 80 + count_tokens(OWN)
    assert ("search_tools" in text) == (mode != "eager")


@pytest.mark.parametrize("era", ERAS)
async def test_a_gateway_over_stdio_has_them_from_the_first_start_on(
    tmp_path: Path, era: str
) -> None:
    servers = {"polite": entry("polite")}
    for _ in range(2):  # the second start answers `initialize` from what it recorded
        async with served(tmp_path, servers, "--mode", "proxy") as client:
            assert "search_tools" in (client.instructions or "")


async def test_those_of_another_pegboard_are_not_quoted_as_advice(tmp_path: Path) -> None:
    script = tmp_path / "office.py"
    script.write_text(
        "from pegboard import Pegboard\n"
        f"board = Pegboard('office', mode='eager', instructions={OWN!r})\n"
        "@board.tool\n"
        "def read_note(title: str) -> str:\n"
        "    'Read a note.'\n"
        "    return title\n"
        "board.run()\n"
    )
    servers = {"office": {"command": sys.executable, "args": [str(script)]}}
    assert write(tmp_path, servers)
    async with served(tmp_path, servers, "--mode", "proxy") as client:
        found = await searched(client, "read a note")
        assert f'"{OWN}"' in found
        assert "too large" not in found
        assert said(await client.call_tool("call_tool", {"name": "office_read_note"}))
