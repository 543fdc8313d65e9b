"""The table layer: the same data in fewer tokens, where that pays and raw data is not requested.

Lists of similar records become tables. Other JSON is compact already (`compact_text`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pegboard.core import defaults
from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.results.shapes import (
    TABLE_KEY,
    OutputContract,
    add_meta,
    default_contract,
    find_payload,
    is_text,
    payload_text,
    replace_with_text,
    wants_structured,
)
from pegboard.core.results.table_format import encode_table
from pegboard.core.token_budget import Count
from pegboard.dispatch.call_events import record_tokens_before
from pegboard.dispatch.expensive_work import run_count
from pegboard.errors import Busy
from pegboard.offload import DeadlineExceeded, offload
from pegboard.ports import Handler, Layer

_QUICK_CHARACTERS = 200_000
"""Characters of JSON that are encoded in about 20 ms."""


@dataclass(frozen=True, slots=True)
class TablePolicy:
    """When another encoding pays: the minimum share saved, of a text of the minimum size."""

    saving: float = defaults.TABLE_SAVING
    bytes: int = 300


def table_layer(
    *,
    count: Count,
    policy: TablePolicy | None = None,
    structured: bool = False,
    contract: Callable[[ToolCall], OutputContract] = default_contract,
) -> Layer:
    """A layer that encodes results compactly.

    Left unchanged: results of calls that request `raw` or structured content (with `structured`,
    all of them), errors, and results that the client will validate against an output schema
    (`contract`).
    """
    chosen = policy or TablePolicy()

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            result = await inner(call)
            if structured or call.shape.raw or wants_structured(call):
                return result
            if result.is_error or not result.is_complete or contract(call) != "nothing":
                return result
            return await encode_result(result, chosen, count)

        return handle

    return layer


async def encode_result(result: CallResult, policy: TablePolicy, count: Count) -> CallResult:
    """The result with its data in the encoding of fewest tokens, or unchanged."""
    size = sum(len(b["text"]) + 1 for b in result.content if is_text(b))
    if result.structured is None and size <= policy.bytes:
        return result  # before anything is parsed: most results are short
    payload = find_payload(result)
    if payload is None:
        return result
    try:
        sent = payload_text(result, payload)
        if len(sent) < policy.bytes:
            return result
        if len(sent) <= _QUICK_CHARACTERS:
            table = encode_table(payload.text_value)
        else:
            table = await offload(encode_table, payload.text_value)
    except (ValueError, RecursionError, DeadlineExceeded, Busy):  # circular, too deep, too large
        return result
    if table is None:
        return result
    # Counted and not estimated: which encoding has fewer tokens depends on the data.
    before = await run_count([sent], count)
    if await run_count([table], count) > (1 - policy.saving) * before:
        return result
    record_tokens_before(before)
    # The position tells `find_payload`, in layers further out, which block to decode.
    changed, position = replace_with_text(result, payload, table)
    return add_meta(changed, TABLE_KEY, position)
