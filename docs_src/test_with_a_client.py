"""Your own server, tested with a real in-memory client and with fake servers."""

from pegboard import Pegboard
from pegboard.testing import FakeSource, board_of, connect, make_tool

board = Pegboard("notes")


@board.tool(annotations={"readOnlyHint": True})
def read_note(title: str) -> str:
    """Read a note by its title."""
    return f"{title}: buy milk"


async def test_a_model_finds_and_reads_a_note() -> None:
    async with connect(board, mode="proxy") as client:
        found = await client.call_tool("search_tools", {"query": "read my note"})
        assert "read_note(title)" in str(found.content)
        call = {"name": "read_note", "arguments": {"title": "todo"}}
        assert "buy milk" in str((await client.call_tool("call_tool", call)).content)


async def test_a_server_behind_the_board_is_called_once() -> None:
    issues = FakeSource([make_tool("count_issues")], count_issues={"open": 3})
    result = await board_of(tracker=issues).call("count_issues")
    assert result.output == {"open": 3}
    assert len(issues.calls) == 1
