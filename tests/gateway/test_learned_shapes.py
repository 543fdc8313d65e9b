"""Shapes of results of real servers: learned by a call, found by the next process, per caller."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver.context import Context
from tests.cli.terminal import pegboard
from tests.conformance.clients import served

from pegboard.config.loader import Configuration
from pegboard.config.settings import Settings
from pegboard.core.calls import Caller
from pegboard.gateway.gateway import Gateway
from pegboard.upstream.spec import UpstreamSpec

SERVER = """
import json
from mcp.server import MCPServer
server = MCPServer("notes")

@server.tool()
def find_notes(text: str) -> str:
    "Find notes by words."
    return json.dumps({"notes": [{"title": text, "pages": 3}], "next": None}, indent=2)

server.run()
"""
LEARNED = "~{notes[]{title, pages}, next}"


def test_a_call_teaches_what_the_next_command_shows(tmp_path: Path) -> None:
    script, config = tmp_path / "notes.py", tmp_path / "mcp.json"
    script.write_text(SERVER)
    entry = {"command": sys.executable, "args": [str(script)]}
    config.write_text(json.dumps({"mcpServers": {"notes": entry}}))
    options = ("--config", str(config))
    words = ("search", "find notes; list pages", *options)
    assert "~{" not in pegboard(*words, home=tmp_path).out
    called = pegboard(
        "call", "find_notes", "--args", '{"text": "a secret"}', *options, home=tmp_path
    )
    assert called.code == 0, called.err
    found = pegboard(*words, "--json", home=tmp_path).json
    assert [need["query"] for need in found["needs"]] == ["find notes", "list pages"]
    assert found["needs"][0]["matches"][0]["returns"] == LEARNED
    assert "~{notes" in pegboard(*words, home=tmp_path).out
    assert LEARNED in pegboard("describe", "find_notes", *options, home=tmp_path).out
    shown = pegboard("fields", "find_notes", *options, home=tmp_path).out
    assert "notes[].title" in shown
    assert "learned" in shown
    saved = list(tmp_path.rglob("shapes/*"))
    assert saved
    assert not any("secret" in file.read_text() for file in saved)


@pytest.mark.anyio
async def test_a_server_that_may_want_a_login_teaches_each_their_own(tmp_path: Path) -> None:
    server = MCPServer("notes")

    @server.tool()
    def read_note() -> str:
        """Read a note."""
        return '{"title": "x"}'

    with served(server.streamable_http_app()) as url:
        spec = UpstreamSpec("notes", transport="http", url=f"{url}/mcp")
        async with Gateway(Configuration(Settings(), (spec,)), folder=tmp_path) as gateway:
            await gateway.wait_until_listed()
            tool, ann = gateway.board.find("read_note"), Caller("ann", session="ann")
            await gateway.board.call("read_note", caller=ann)
            assert (await gateway.view(ann)).returns(tool) == "~{title}"
            assert (await gateway.view(Caller())).returns(tool) == "{result}"
            await gateway.board.call("read_note")
            assert (await gateway.view(Caller())).returns(tool) == "~{title}"


@pytest.mark.anyio
async def test_a_server_that_knows_its_callers_teaches_each_their_own(tmp_path: Path) -> None:
    server = MCPServer("crm")

    @server.tool()
    def whoami(ctx: Context) -> str:
        """Who calls."""
        request = ctx.request_context.request
        assert request is not None
        return json.dumps({f"only_for_{request.headers['x-who']}": 1})

    callers = {name: Caller(name, session=name) for name in ("ann", "bob")}
    with served(server.streamable_http_app()) as url:
        headers = {"X-Who": "{{principal}}"}
        spec = UpstreamSpec("crm", transport="http", url=f"{url}/mcp", headers=headers)
        async with Gateway(Configuration(Settings(), (spec,)), folder=tmp_path) as gateway:
            await gateway.wait_until_listed()
            tool = gateway.board.find("whoami")
            await gateway.board.call("whoami", caller=callers["ann"])
            shown = {n: (await gateway.view(c)).returns(tool) for n, c in callers.items()}
            assert shown == {"ann": "~{only_for_ann}", "bob": "{result}"}
            nobody = Caller(anonymous=True, session="x")
            assert (await gateway.view(nobody)).returns(tool) == "{result}"
