"""Programs that exhaust, pry or write behind our back: the host is unharmed and limits hold."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from tests.programs.hostile_programs import (
    CRASHES,
    ESCAPES,
    HOSTILE,
    UNDECLARED_WRITES,
    UNSUPPORTED,
)

from pegboard import CallResult, Pegboard, Policy, Rule
from pegboard.core.calls import Caller
from pegboard.core.options import CodeOptions

pytestmark = pytest.mark.anyio

SECRET = "s3cr3t-of-the-host"
COMPUTE_TIME = 0.4
MOST_GROWTH = 100
"""Megabytes that the host may gain from a hostile program: a few copies of the largest value."""
NOTES: list[str] = []
READ_ONLY = {"readOnlyHint": True}


LIMITS = CodeOptions(
    compute_time=COMPUTE_TIME, sleep_time=0.2, total_time=4, memory_bytes=32 << 20, workers=2
)


def make_board(code: CodeOptions = LIMITS) -> Pegboard:
    policy = Policy((Rule(effect="deny", tools=("secret_tool",)),))
    board = Pegboard("hostile", code=code, policy=policy)

    @board.tool(annotations=READ_ONLY)
    def echo(n: int, text: str = "") -> dict[str, Any]:
        """Return what arrived."""
        return {"n": n, "text": text}

    @board.tool(annotations=READ_ONLY)
    def secret_tool(n: int) -> str:
        """Say the secret."""
        return SECRET

    @board.tool
    def add_note(text: str) -> str:
        """Add a note."""
        NOTES.append(text)
        return "added"

    return board


@pytest.fixture(scope="module")
def workers() -> Pegboard:
    """One board for all, as a gateway has one for all programs: whatever one leaves behind."""
    return make_board()


@pytest.fixture
def board(workers: Pegboard, monkeypatch: pytest.MonkeyPatch) -> Pegboard:
    monkeypatch.setenv("PEGBOARD_SECRET", SECRET)
    NOTES.clear()
    return workers


def text_of(result: CallResult) -> str:
    return "\n".join(block.get("text", "") for block in result.content)


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.parametrize("name", [*HOSTILE, *CRASHES])
async def test_a_hostile_program_ends_in_time_and_harms_nobody(name: str, board: Pegboard) -> None:
    program = {**HOSTILE, **CRASHES}[name]
    await board.run_code("1")  # workers are started on first use
    before, began = resident_mb(), time.monotonic()
    result = await board.run_code(program)
    assert time.monotonic() - began < 4 * 1.5
    assert len(text_of(result)) < 50_000
    assert resident_mb() - before < MOST_GROWTH
    assert text_of(await board.run_code("(await echo(n=7))['n']")) == "7"


async def test_writes_carry_no_more_than_the_memory_limit(board: Pegboard) -> None:
    program = "for n in range(20):\n    await add_note(text='x' * 3_000_000 + str(n))"
    result = await board.run_code(program, write=True)
    assert result.is_error
    assert "memory_bytes" in text_of(result)
    assert len(NOTES) == (32 << 20) // 3_000_000


@pytest.mark.parametrize("name", ESCAPES)
async def test_no_escape_reaches_the_host_or_a_hidden_tool(name: str, board: Pegboard) -> None:
    result = await board.run_code(ESCAPES[name], write=True)
    text = text_of(result)
    assert SECRET not in text
    assert "root:" not in text
    assert not os.path.exists("/tmp/pegboard-escaped")  # noqa: ASYNC240
    if "hidden" in name:
        missing = await board.run_code(ESCAPES[name].replace("secret", "no_such"), write=True)
        assert text_of(missing).replace("no_such", "secret") == text
    assert text_of(await board.run_code("1 + 1")) == "2"


@pytest.mark.parametrize("name", UNDECLARED_WRITES)
async def test_a_write_that_the_text_does_not_show_is_refused(name: str, board: Pegboard) -> None:
    result = await board.run_code(UNDECLARED_WRITES[name])
    assert result.is_error
    assert NOTES == []
    missing = await board.run_code(UNDECLARED_WRITES[name].replace("add_", "no_such_"))
    assert text_of(missing).replace("no_such_", "add_") == text_of(result)


@pytest.mark.parametrize("name", UNSUPPORTED)
async def test_what_is_not_supported_is_answered_with_what_to_write(
    name: str, board: Pegboard
) -> None:
    program, word = UNSUPPORTED[name]
    result = await board.run_code(program)
    assert result.is_error == bool(word)
    assert word in text_of(result)
    if word:
        assert "monty" not in text_of(result).lower()


async def test_another_caller_does_not_see_what_the_first_may_call(board: Pegboard) -> None:
    result = await board.run_code("await echo(n=1)", caller=Caller(principal="nobody"))
    assert not result.is_error
