"""Calls by category and tool, one at a time or in parallel."""

import anyio

from pegboard import Call, Pegboard
from pegboard.testing import connect

board = Pegboard("office", mode="hierarchy", breaker_failures=5, breaker_cooldown=60.0)
calendar = board.category("calendar", description="Calendars and free time")


@calendar.tool(annotations={"readOnlyHint": True})
async def find_slot(minutes: int) -> str:
    """Find a time slot that is free for everyone."""
    if minutes > 480:
        raise ValueError("Nobody is free for a whole day.")
    return f"{minutes} minutes at noon"


async def main() -> None:
    one = await board.call("calendar.find_slot", {"minutes": 30})
    assert one.output == {"result": "30 minutes at noon"}

    calls = [Call("find_slot", {"minutes": m}) for m in (15, 30)]
    calls.append(Call("find_slots", {}))
    outcomes = await board.call_many(calls, max_concurrency=8)
    assert [o.ok for o in outcomes] == [True, True, False]  # in order, each with its own error
    assert outcomes[2].error is not None
    assert "find_slot" in outcomes[2].error["nearest"][0]

    async with connect(board) as client:  # a model sees four tools; earlier names work too
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert listed == [
            "tools_list_categories",
            "tools_list_tools",
            "tools_get_schema",
            "tools_dispatch",
        ]
        place = {"category": "calendar", "tool": "find_slot"}
        old = {"calls": [{**place, "params": {"minutes": 45}}]}
        assert "45 minutes" in str((await client.call_tool("tools_dispatch_parallel", old)).content)


if __name__ == "__main__":
    anyio.run(main)
