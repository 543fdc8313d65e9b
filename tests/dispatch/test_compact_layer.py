"""Models read compact JSON; programs get what the server sent."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from pegboard import Pegboard, count_tokens
from pegboard.core.calls import CallResult, ResultShape, ToolCall
from pegboard.core.json import compact
from pegboard.core.results.shapes import OutputContract
from pegboard.core.tools import Tool, constant_definition
from pegboard.dispatch.compact_text import compact_layer
from pegboard.testing import connect

pytestmark = pytest.mark.anyio
NESTED = {"issue": {"key": "A-1", "labels": ["ui", "slow"]}, "total": 1}
INDENTED = json.dumps(NESTED, indent=2)


async def answered(
    result: CallResult,
    *,
    shape: ResultShape | None = None,
    contract: OutputContract = "nothing",
    params: dict[str, Any] | None = None,
    structured: bool = False,
) -> CallResult:
    async def handler(call: ToolCall) -> CallResult:
        return result

    layer = compact_layer(count=count_tokens, structured=structured, contract=lambda call: contract)
    tool = Tool("get", constant_definition({"type": "object"}))
    call = ToolCall(tool, {}, shape=shape or ResultShape(), params=params or {})
    return await layer(handler)(call)


async def test_indented_text_becomes_compact_and_structured_content_stays() -> None:
    result = await answered(CallResult.text(INDENTED, structured=NESTED))
    assert result.wire == {
        "content": [{"type": "text", "text": compact(NESTED)}],
        "structuredContent": NESTED,
    }


@pytest.mark.parametrize(
    "how",
    [
        {"shape": ResultShape(raw=True)},
        {"structured": True},
        {"params": {"_meta": {"io.github.pegboard/structured": True}}},
        {"contract": "exact"},
        {"contract": "relaxed"},
    ],
    ids=["raw", "setting", "request", "exact", "relaxed"],
)
async def test_what_somebody_needs_as_it_was_comes_as_it_was(how: dict[str, Any]) -> None:
    given = CallResult.text(INDENTED, structured=NESTED)
    assert await answered(given, **how) is given


async def test_prose_compact_json_and_unfinished_results_come_as_they_were() -> None:
    for given in (
        CallResult.text("All,  of   it."),
        CallResult.json(NESTED),
        CallResult(
            {"resultType": "input_required", "content": [{"type": "text", "text": INDENTED}]}
        ),
    ):
        assert await answered(given) is given


async def test_a_large_result_is_rewritten_off_the_event_loop() -> None:
    rows = [{"key": f"A-{n}", "text": "x " * 50} for n in range(3_000)]
    result = await answered(CallResult.text(json.dumps(rows, indent=4)))
    assert result.content[0]["text"] == compact(rows)


async def test_a_compact_result_costs_microseconds() -> None:
    given = CallResult.json({"key": "A-1", "title": "Broken", "votes": 3})
    began = time.perf_counter()
    for _ in range(200):
        await answered(given)
    assert (time.perf_counter() - began) / 200 < 0.001


async def test_a_model_never_reads_indented_json_in_a_string() -> None:
    board = Pegboard(mode="proxy")

    @board.tool
    def get_issue() -> str:
        """Read an issue."""
        return INDENTED

    async with connect(board, mode="proxy") as client:
        result = await client.call_tool("call_tool", {"name": "get_issue"})
    assert result.content[0].text == compact(NESTED)  # type: ignore[union-attr]
    assert result.structured_content == {"result": INDENTED}
