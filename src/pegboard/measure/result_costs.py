"""The token cost of recorded results, in full and as a model would get them.

The results pass through the layers of a real call: projection if fields were selected, tables where
they are shorter, and a preview in place of a result that is too large.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pegboard.board import Pegboard
from pegboard.core.calls import Caller, CallResult, ResultShape, ToolCall
from pegboard.core.json import JsonObject
from pegboard.core.tools import Tool, constant_definition
from pegboard.errors import ConfigError, PegboardError
from pegboard.pipeline import Parts, build_pipeline
from pegboard.tokens import DEFAULT_TOKENIZER, count_tokens


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """One result of a tool, and the fields that the caller selected."""

    tool: str
    result: JsonObject
    include_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResultCost:
    """The token cost of one recorded result."""

    tool: str
    whole: int
    given: int


def read_results(path: Path) -> list[RecordedResult]:
    """The results of a file: JSON lines of `{"tool", "result", "include_fields"?}`.

    Raises:
        ConfigError: The file or a line of it cannot be read; the message says which and why.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"Cannot read the results {path}: {exc}") from exc
    recorded: list[RecordedResult] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            tool, result = value["tool"], value["result"]
            fields = tuple(str(field) for field in value.get("include_fields") or ())
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise ConfigError(
                f'{path}:{number}: expected {{"tool": NAME, "result": ...}}, one per line.'
            ) from exc
        # A `tools/call` result is taken as it is; any other JSON is wrapped in one.
        if isinstance(result, str):
            result = CallResult.text(result).wire
        elif not (isinstance(result, dict) and isinstance(result.get("content"), list)):
            result = CallResult.json(result).wire
        recorded.append(RecordedResult(str(tool), result, fields))
    return recorded


async def result_costs(
    board: Pegboard, recorded: Iterable[RecordedResult], *, tokenizer: str = DEFAULT_TOKENIZER
) -> list[ResultCost]:
    """The cost of each recorded result, in full and as a model would get it."""
    costs: list[ResultCost] = []
    for one in recorded:
        given = await _replay(board, one)
        whole = count_tokens(_text(one.result), tokenizer)
        costs.append(ResultCost(one.tool, whole, count_tokens(_text(given.wire), tokenizer)))
    return costs


async def _replay(board: Pegboard, recorded: RecordedResult) -> CallResult:
    async def replay(call: ToolCall) -> CallResult:
        return CallResult(recorded.result)

    # The arguments of the call were not recorded: the tool accepts any here. A tool that the board
    # does not have is measured too.
    try:
        known = board.find(recorded.tool)
        definition = constant_definition({"type": "object"}, known.output_schema)
        tool = replace(known, definition=definition)
    except PegboardError:
        tool = Tool(recorded.tool, constant_definition({"type": "object"}))
    # Without a cache, or a second result of the same tool would be answered with the first.
    run = build_pipeline(replace(board.options, cache={}), replay, Parts())
    call = ToolCall(
        tool,
        {},
        shape=ResultShape(include_fields=recorded.include_fields),
        caller=Caller(mode="proxy"),
        via="call_tool",
    )
    return await run(call)


def _text(result: JsonObject) -> str:
    blocks: Sequence[JsonObject] = result.get("content") or []
    return "\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str))
