"""Every call of a real client is recorded with its tokens; successes are not logged loudly."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from mcp import Client
from tests.dispatch.fakes import Recorder
from tests.gateway.support import said

from pegboard import Pegboard, count_tokens
from pegboard.core.events import CallFinished
from pegboard.core.json import compact
from pegboard.pipeline import Parts
from pegboard.server.serving import build_server

pytestmark = pytest.mark.anyio


def shop(recorder: Recorder) -> Pegboard:
    board = Pegboard(mode="proxy", spill_tokens=500)
    board.parts = Parts(observers=(recorder,), is_closed=board.is_closed)

    @board.tool
    def lamps(count: int) -> list[dict[str, Any]]:
        """List lamps."""
        return [{"id": n, "title": f"Lamp {n}", "price": n * 1.5} for n in range(count)]

    return board


async def test_every_call_is_recorded_with_its_tokens_in_and_out() -> None:
    recorder = Recorder()
    count_tokens("the tokenizer is loaded")
    async with Client(build_server(shop(recorder)), cache=None) as client:
        for count in (2, 30, 300):
            call = {"name": "lamps", "arguments": {"count": count}}
            result = await client.call_tool("call_tool", call)
            told = recorder.of(CallFinished)[-1]
            assert told.tokens_in == count_tokens(compact({"count": count}))
            assert told.tokens_out == count_tokens(said(result))
            assert not told.tokens_estimated
            rows = [{"id": n, "title": f"Lamp {n}", "price": n * 1.5} for n in range(count)]
            assert told.tokens_out_before is not None
            if count == 2:
                # Too small for a table; what is saved is the indentation of the SDK's text.
                assert told.tokens_out == count_tokens(compact(rows))
                assert told.tokens_out < told.tokens_out_before
            else:
                assert told.tokens_out_before >= 0.9 * count_tokens(compact(rows))
                assert told.tokens_out < 0.85 * told.tokens_out_before
        await client.call_tool("lamps", {"count": "many"})
        refused = recorder.of(CallFinished)[-1]
        assert (refused.outcome, refused.tokens_out) == ("refused", None)
        assert refused.tokens_in == count_tokens(compact({"count": "many"}))


ATTACHED = """
import anyio
from mcp import Client
from mcp.server.mcpserver import MCPServer
from pegboard import attach

server = MCPServer("shop")


@server.tool()
def lamp(n: int) -> str:
    if n < 0:
        raise ConnectionError("no light")
    return f"Lamp {n}"


async def main() -> None:
    async with Client(attach(server, mode="proxy"), cache=None) as client:
        await client.list_tools()
        await client.call_tool("search_tools", {"query": "lamp"})
        await client.call_tool("call_tool", {"name": "lamp", "arguments": {"n": 1}})


anyio.run(main)
"""


def test_an_attached_server_does_not_log_the_names_of_events_that_went_well() -> None:
    run = subprocess.run([sys.executable, "-c", ATTACHED], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "call.finished" not in run.stderr
    assert "list.answered" not in run.stderr
    assert "search.answered" not in run.stderr
