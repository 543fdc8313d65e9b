"""Calls in a program pass through the same layers as others: cache, circuit breaker, timeout."""

from __future__ import annotations

import anyio
import pytest
from tests.boards import READ

from pegboard import Pegboard
from pegboard.errors import CircuitOpen, UpstreamUnavailable

pytestmark = pytest.mark.anyio


async def value_of(board: Pegboard, program: str) -> str:
    result = await board.run_code(program)
    assert not result.is_error, result.content
    return result.content[0]["text"]


async def test_a_result_in_the_cache_is_not_fetched_again() -> None:
    board = Pegboard("weather", mode="code", cache={"forecast": 300.0})
    made: list[str] = []

    @board.tool(annotations=READ)
    def forecast(city: str) -> str:
        made.append(city)
        return f"sunny in {city}"

    first = await board.call("forecast", {"city": "Oslo"})
    program = (
        "[await forecast(city='Oslo'), await forecast(city='Oslo'), await forecast(city='Rome')]"
    )
    said = await value_of(board, program)
    assert said.count(first.content[0]["text"]) == 2
    assert made == ["Oslo", "Rome"]


async def test_an_open_circuit_breaker_stops_a_program_and_single_calls_alike() -> None:
    board = Pegboard("mail", mode="code", breaker_failures=3, attempts=1)
    made: list[int] = []

    @board.tool(annotations=READ)
    def read_mail() -> str:
        made.append(1)
        raise UpstreamUnavailable("The post office does not answer.")

    program = """
errors = []
for i in range(6):
    try:
        await read_mail()
    except Exception as exc:
        errors.append(str(exc))
errors
"""
    said = await value_of(board, program)
    assert len(made) == 3
    assert said.count("The post office does not answer.") == 3
    with pytest.raises(CircuitOpen):
        await board.call("read_mail", {})
    assert len(made) == 3, "what a program opened is open for everybody"


async def test_a_slow_call_in_a_program_times_out_like_any_other() -> None:
    board = Pegboard("slow", mode="code", timeout=0.05, attempts=1)
    ended: list[str] = []

    @board.tool(annotations=READ)
    async def read_slowly() -> str:
        try:
            await anyio.sleep(30)
        finally:
            ended.append("canceled")
        return "never"

    program = """
try:
    said = await read_slowly()
except Exception as exc:
    said = str(exc)
said
"""
    with anyio.fail_after(10):
        said = await value_of(board, program)
    assert "0.05 s" in said
    assert ended == ["canceled"]
