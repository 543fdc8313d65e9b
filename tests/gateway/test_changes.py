"""What a server announces is seen at once; only one that goes on announcing is held back."""

from __future__ import annotations

import gc
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from tests.gateway.support import everything_behind
from tests.upstream.servers.everything import Everything
from tests.upstream.support import gateway as relaying
from tests.upstream.support import in_memory, memory

from pegboard.gateway.gateway import Gateway
from pegboard.upstream.listing import COOLDOWN, MAX_BURST, Listing, ListingRefresher, ListingResult

pytestmark = pytest.mark.anyio


async def seen(gateway: Gateway, name: str) -> float:
    """The seconds until a tool is on the board."""
    began = anyio.current_time()
    while name not in {tool.name for tool in gateway.board.tools()}:
        changed = anyio.Event()
        stop = gateway.board.on_change(changed.set)
        await changed.wait()
        stop()
    return anyio.current_time() - began


@pytest.mark.parametrize("server", ["legacy", "modern"])
async def test_the_first_changes_of_a_server_are_seen_at_once(server: str, tmp_path: Path) -> None:
    async with everything_behind(server, "modern", tmp_path) as (it, client, gateway):
        await client.call_tool("e_echo", {})  # the first use of a server has it looked at, too
        await client.call_tool("e_change_tools", {})
        assert await seen(gateway, "e_new") < COOLDOWN / 2
        it.tools["newer"] = it.echo
        await client.call_tool("e_change_tools", {})
        assert await seen(gateway, "e_newer") < COOLDOWN / 2


def whole_listings() -> dict[int, Listing]:
    """The listings with their tools that anything in this process holds."""
    found = (one for one in gc.get_objects() if isinstance(one, Listing) and one.tools)
    return {id(one): one for one in found}


async def test_what_a_server_listed_is_held_once(tmp_path: Path) -> None:
    others = whole_listings()
    async with everything_behind("legacy", "modern", tmp_path) as (_, client, gateway):
        await client.call_tool("e_change_tools", {})
        await seen(gateway, "e_new")
        with anyio.fail_after(10):  # until the look that found it has ended
            while whole_listings().keys() - others.keys():
                await anyio.lowlevel.checkpoint()


async def test_a_server_that_keeps_announcing_changes_is_listed_a_few_times() -> None:
    it = Everything()

    async def note(found: ListingResult) -> None:
        it.tools[f"tool_{it.listed}"] = it.echo  # so that every look finds something new

    wires = memory({"e": (it, "legacy")})
    async with (
        relaying(in_memory("e"), open_transport=wires) as through,
        anyio.create_task_group() as tasks,
        through.client("auto") as client,
    ):
        refresher = ListingRefresher(through.pool, note, debounce=0.01, cooldown=60.0)
        through.pool.add_listener(refresher.on_event)
        tasks.start_soon(refresher.run)
        while it.listed < MAX_BURST:
            await client.call_tool("e.change_tools", {})
        for _ in range(40):
            await client.call_tool("e.change_tools", {})
        tasks.cancel_scope.cancel()
    assert it.listed == MAX_BURST
