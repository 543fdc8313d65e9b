"""Fewer tokens for the same data, and only where nobody needs it as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.dispatch.fakes import Source

from pegboard.core.calls import CallResult, ResultShape, ToolCall
from pegboard.core.json import compact
from pegboard.core.results.shapes import OutputContract, find_payload
from pegboard.core.results.table_format import decode_table
from pegboard.core.tools import Tool, constant_definition
from pegboard.dispatch.tables import TablePolicy, table_layer
from pegboard.tokens import count_tokens

pytestmark = pytest.mark.anyio

ROWS: list[Any] = [
    {"id": i, "title": f"Issue number {i}", "state": "open", "user": {"login": "ann"}}
    for i in range(20)
]
NESTED: dict[str, Any] = {
    "a": {"b": {"c": list(range(40)), "d": {"e": "text", "f": [{"g": 1}]}}},
    "h": ["x", "y"] * 20,
}


async def answered(
    result: CallResult,
    shape: ResultShape | None = None,
    contract: OutputContract = "nothing",
    params: dict[str, Any] | None = None,
    **policy: Any,
) -> CallResult:
    source = Source()
    source.queue.append(result)
    layer = table_layer(count=count_tokens, contract=lambda call: contract, **policy)
    tool = Tool("list", constant_definition({"type": "object"}))
    return await layer(source)(
        ToolCall(tool, {}, shape=shape or ResultShape(), params=params or {})
    )


@pytest.mark.parametrize(
    "value", [ROWS, {"items": ROWS, "total": 20}, {"result": ROWS}, {"a": ROWS, "b": ROWS}]
)
async def test_records_become_a_table_in_place_of_both_parts(value: Any):
    given = CallResult.json(value)
    result = await answered(given)
    (block,) = result.content
    assert decode_table(block["text"]) == value
    assert result.structured is None
    assert count_tokens(block["text"]) <= 0.85 * count_tokens(compact(value))


async def test_a_list_that_an_sdk_split_over_blocks_becomes_one_table():
    texts = [{"type": "text", "text": json.dumps(row, indent=2)} for row in ROWS]
    result = await answered(
        CallResult({"content": texts, "structuredContent": {"result": ROWS}, "isError": False})
    )
    (block,) = result.content
    assert decode_table(block["text"]) == ROWS


async def test_prose_beside_the_records_stays():
    given = CallResult.json({"items": ROWS})
    given.content.insert(0, {"type": "text", "text": "All of them:"})
    result = await answered(given)
    assert result.content[0]["text"] == "All of them:"
    assert decode_table(result.content[1]["text"]) == {"items": ROWS}


async def test_a_later_layer_can_read_the_value_back():
    payload = find_payload(await answered(CallResult.json({"items": ROWS})))
    assert payload is not None
    assert payload.value == {"items": ROWS}


@pytest.mark.parametrize(
    "given",
    [
        CallResult.json(NESTED),
        CallResult.json(ROWS[:2]),
        CallResult.text("prose " * 200),
        CallResult.text(compact(ROWS), is_error=True),
        CallResult({"resultType": "input_required", "content": []}),
    ],
    ids=["nothing to save", "small", "prose", "error", "unfinished"],
)
async def test_what_saves_too_little_or_is_no_answer_comes_as_it_was(given: CallResult):
    assert await answered(given) is given


@pytest.mark.parametrize(
    "how",
    [
        {"shape": ResultShape(raw=True)},
        {"structured": True},
        {"params": {"_meta": {"io.github.pegboard/structured": True}}},
        {"contract": "exact"},
        {"contract": "relaxed"},
        {"policy": TablePolicy(saving=0.9)},
    ],
    ids=["raw", "setting", "request", "exact", "relaxed", "saving"],
)
async def test_what_somebody_needs_as_it_was_comes_as_it_was(how: dict[str, Any]):
    given = CallResult.json({"items": ROWS})
    assert await answered(given, **how) is given


async def test_a_circular_value_comes_as_it_was():
    loop: dict[str, Any] = {"rows": ROWS}
    loop["self"] = loop
    given = CallResult({"content": [], "structuredContent": loop})
    assert await answered(given) is given
