"""A FastMCP server with a search transform, migrated to Pegboard."""

import anyio
from fastmcp import FastMCP

from pegboard import attach
from pegboard.testing import connect

server = FastMCP("office")


@server.tool(annotations={"readOnlyHint": True})
def find_room(people: int) -> str:
    """Find a free meeting room."""
    return f"the blue room has {people} chairs"


@server.tool
def book_room(name: str) -> str:
    """Reserve a meeting room."""
    return f"booked {name}"


attach(server, mode="proxy", risk="single", pins=["find_room"])


async def main() -> None:
    async with connect(server) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert {"search_tools", "call_tool", "find_room"} <= set(listed)

        found = await client.call_tool("search_tools", {"query": "we need a place to sit together"})
        assert "book_room(name)" in str(found.content)

        call = {"name": "book_room", "arguments": {"name": "blue"}}
        assert "booked blue" in str((await client.call_tool("call_tool", call)).content)


if __name__ == "__main__":
    anyio.run(main)
