"""The table layer: the same data in fewer tokens, where that pays and nobody asked for it raw.

Lists of like records become tables, other JSON that was sent indented becomes compact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pegboard.core import defaults
from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.json import Json, compact
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

_QUICK = 200_000
"""Characters of JSON that are encoded in some 20 ms."""


@dataclass(frozen=True, slots=True)
class TablePolicy:
    """When another encoding pays: the least part saved, of a text of the least size."""

    saving: float = defaults.TABLE_SAVING
    bytes: int = 300


def table_layer(
    *,
    count: Count,
    policy: TablePolicy | None = None,
    structured: bool = False,
    promise: Callable[[ToolCall], OutputContract] = default_contract,
) -> Layer:
    """A layer that encodes results compactly.

    Left as they are: results of calls that ask for `raw` or for structured content (`structured`
    says that all do), errors, and results that the client will check against an output schema
    (`promise`).
    """
    chosen = policy or TablePolicy()

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            result = await inner(call)
            if structured or call.shape.raw or wants_structured(call):
                return result
            if result.is_error or not result.is_complete or promise(call) != "nothing":
                return result
            return await encode_result(result, chosen, count)

        return handle

    return layer


async def encode_result(result: CallResult, policy: TablePolicy, count: Count) -> CallResult:
    """The result with its data in the encoding of fewest tokens, or as it came."""
    if result.structured is None and _is_short(result, policy.bytes):
        return result  # before anything is read: most results are short
    payload = find_payload(result)
    if payload is None:
        return result
    try:
        sent = payload_text(result, payload)
        if len(sent) < policy.bytes:
            return result
        plain, table = await _encodings(payload.text_value, len(sent))
    except (ValueError, RecursionError, DeadlineExceeded, Busy):  # circular, too deep, too large
        return result
    before = await run_count([sent], count)
    tokens = before if plain == sent else await run_count([plain], count)
    if table is not None and await run_count([table], count) <= (1 - policy.saving) * min(
        before, tokens
    ):
        record_tokens_before(before)
        changed, position = replace_with_text(result, payload, table)
        return add_meta(changed, TABLE_KEY, position)
    if tokens <= (1 - policy.saving) * before:
        record_tokens_before(before)
        return replace_with_text(result, payload, plain)[0]
    return result


async def _encodings(value: Json, size: int) -> tuple[str, str | None]:
    """The value as compact JSON, and as a table where it is one; `size` is about its length."""
    if size <= _QUICK:
        return _both(value)
    return await offload(_both, value)


def _both(value: Json) -> tuple[str, str | None]:
    return compact(value), encode_table(value)


def _is_short(result: CallResult, size: int) -> bool:
    return sum(len(block["text"]) + 1 for block in result.content if is_text(block)) <= size
