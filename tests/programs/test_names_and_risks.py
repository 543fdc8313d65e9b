"""The tools that run programs, called through other tools: no way around what a name promises."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard import Pegboard
from pegboard.core.options import CodeOptions
from pegboard.testing import connect, list_tokens

pytestmark = pytest.mark.anyio

NOTES: list[str] = []


def make_board() -> Pegboard:
    NOTES[:] = ["first"]
    board = Pegboard("names", risk="split", code=CodeOptions(in_proxy=True))

    @board.tool(annotations={"readOnlyHint": True})
    def list_notes() -> list[str]:
        """List notes."""
        return list(NOTES)

    @board.tool(annotations={"readOnlyHint": False, "destructiveHint": False})
    def add_note(text: str) -> str:
        """Add a note."""
        NOTES.append(text)
        return "added"

    @board.tool(annotations={"destructiveHint": True})
    def delete_note(text: str) -> str:
        """Delete a note."""
        NOTES.remove(text)
        return "deleted"

    return board


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


@pytest.mark.parametrize("outer", ["call_tool", "call_write_tool"])
async def test_a_paused_run_cannot_be_continued_under_a_harmless_name(outer: str) -> None:
    async with connect(make_board(), mode="proxy") as client:
        waiting = await client.call_tool(
            "run_write_code", {"code": "await delete_note(text='first')"}
        )
        run = (waiting.meta or {})["io.github.pegboard/run"]["run"]
        inner = {"name": "run_destructive_code", "arguments": {"run": run}}
        for call in (inner, {"name": "call_tools", "arguments": {"calls": [inner]}}):
            await client.call_tool(outer, call)
        assert NOTES == ["first"]
        done = await client.call_tool("run_destructive_code", {"run": run})
    assert text_of(done) == "deleted"
    assert NOTES == []


async def test_a_writing_program_cannot_be_run_under_a_reading_name() -> None:
    program = {"code": "await add_note(text='second')"}
    async with connect(make_board(), mode="proxy") as client:
        await client.call_tool("run_code", program)
        inner = {"name": "run_write_code", "arguments": program}
        await client.call_tool("call_tool", inner)
        await client.call_tool("call_tool", {"name": "call_tools", "arguments": {"calls": [inner]}})
    assert NOTES == ["first"]


async def test_programs_cannot_run_programs() -> None:
    async with connect(make_board(), mode="code") as client:
        for name in ("run_code", "run_write_code", "run_destructive_code", "search_tools"):
            result = await client.call_tool("run_write_code", {"code": f"await {name}(code='1')"})
            assert result.is_error
            assert "Nothing ran" in text_of(result)


async def test_the_list_is_constant_and_short() -> None:
    board = make_board()
    async with connect(board, mode="code") as client:
        before = (await client.list_tools()).tools
        await client.call_tool("run_code", {"code": "await list_notes()"})
        after = (await client.list_tools()).tools
    assert before == after
    assert [tool.name for tool in before] == [
        "search_tools",
        "run_code",
        "run_write_code",
        "run_destructive_code",
    ]
    assert await list_tokens(board, "code") <= 230


@pytest.mark.parametrize(
    "program",
    [
        "seen = set()\nseen.add(1)\nlen(await list_notes()) + len(seen)",
        "# delete_note and add are not called here\nlen(await list_notes()) + 1",
        "what = 'delete_note'\nlen(await list_notes()) + 1",
        "def add(n):\n    return n + 1\nx = dict(add_note=1)\nlen(await list_notes()) + 1",
        "add_note = len(await list_notes())\n2",
    ],
)
async def test_a_word_that_calls_nothing_does_not_make_a_program_write(program: str) -> None:
    board = make_board()
    board.tool(name="add", annotations={"readOnlyHint": False})(lambda: NOTES.append("added"))
    result = await board.run_code(program)
    assert result.structured == {"result": 2}, result.wire


@pytest.mark.parametrize(
    "program",
    [
        "await add_note(text='x')",
        "f'{await add_note(text=1)}'",
        'f"{[1]["0"]} {await add_note(text="x")}"',
        "call = add_note\nawait call(text='x')",
        "[await f(text='x') for f in (add_note,)]",
        'x = """\'"""; await add_note(text=\'x\') # \'',
        "x = '#'; await add_note(text='x')",
        "await add_note (text='x')",
        "add_note == 1 or await gather(*map(lambda t: add_note(text=t), 'ab'))",
        "add_note: int\nawait add_note(text='x')",
        "def f(g=add_note):\n    return g(text='x')\nf()",
        "eval('add_note(text=1)')",
        "async def add_note2(): await add_note(text='x')\nawait add_note2()",
    ],
)
async def test_a_reading_program_writes_nothing_however_it_names_a_tool(program: str) -> None:
    board = make_board()
    result = await board.run_code(program)
    assert NOTES == ["first"]
    assert result.structured["ran"] == "nothing"
