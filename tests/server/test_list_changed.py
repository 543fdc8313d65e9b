"""Changes of the catalog at run time, of which clients of both eras are notified."""

from __future__ import annotations

import anyio
import mcp_types as types
import pytest
from mcp import Client
from tests.boards import office_board

from pegboard.server.serving import build_server

pytestmark = pytest.mark.anyio


async def test_a_legacy_client_is_notified_once_of_a_burst_of_changes() -> None:
    board = office_board(mode="eager")
    told = anyio.Event()
    count = 0

    async def note(message: object) -> None:
        nonlocal count
        if isinstance(message, types.ToolListChangedNotification):
            count += 1
            told.set()

    server = build_server(board, environ={})
    with anyio.fail_after(10):
        async with Client(server, mode="legacy", message_handler=note) as client:
            before = {tool.name for tool in (await client.list_tools()).tools}
            for name in ("echo", "fail", "whoami"):
                board.disable(name)
            await told.wait()
            after = {tool.name for tool in (await client.list_tools()).tools}
    assert before - after == {"echo", "fail", "whoami"}
    assert count == 1


async def test_a_modern_client_hears_it_on_the_stream_that_it_opened() -> None:
    """2026-07-28: change notifications travel only on a `subscriptions/listen` stream."""
    board = office_board(mode="eager")
    with anyio.fail_after(10):
        async with Client(build_server(board, environ={})) as client:
            before = {tool.name for tool in (await client.list_tools()).tools}
            async with client.listen(tools_list_changed=True) as changes:
                board.disable("echo")
                async for _ in changes:
                    break
            after = {tool.name for tool in (await client.list_tools()).tools}
    assert before - after == {"echo"}
