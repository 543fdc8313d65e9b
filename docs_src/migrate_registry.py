"""A category that loads its tools on first use."""

import anyio

from pegboard import Pegboard
from pegboard.testing import connect

board = Pegboard("tasks", mode="stub")


def graph_tools():
    def shortest_path(start: str, end: str) -> list[str]:
        """Find the shortest path between two nodes."""
        return [start, end]

    return [shortest_path]


board.load("graph", graph_tools, description="Paths and neighbors")


async def main() -> None:
    assert not board.is_loaded("graph")  # nothing has been loaded yet
    [tool] = board.describe("shortest_path")  # runs the loader, once
    assert board.is_loaded("graph")
    assert tool.input_schema["required"] == ["start", "end"]
    assert [t.name for t in board.tools()] == ["shortest_path"]
    result = await board.call("shortest_path", {"start": "a", "end": "b"})
    assert result.output == {"result": ["a", "b"]}
    assert board.schema_cache.stats().hit_rate > 0  # also .hits, .misses, .size

    async with connect(board) as client:
        [stub] = (await client.list_tools()).tools
        assert stub.description == "Find the shortest path between two nodes"
        assert stub.input_schema == {"type": "object"}  # the rest comes with `tools/describe`


if __name__ == "__main__":
    anyio.run(main)
