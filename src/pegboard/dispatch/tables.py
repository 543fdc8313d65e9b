"""The table layer: the same data in fewer tokens, where that pays and nobody asked for it raw.

Lists of like records become tables, other JSON that was sent indented becomes compact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pegboard.core.budget import Count
from pegboard.core.calls import Call, CallResult
from pegboard.core.json import compact
from pegboard.core.results import (
    TABLE,
    Promise,
    as_sent,
    is_text,
    payload_of,
    promised,
    structured_asked,
    with_meta,
    with_text,
)
from pegboard.core.tables import encode_table
from pegboard.dispatch.observe import note_tokens_before
from pegboard.ports import Handler, Layer


@dataclass(frozen=True, slots=True)
class TablePolicy:
    """When another encoding pays: the least part saved, of a text of the least size."""

    saving: float = 0.15
    bytes: int = 300


def table_layer(
    *,
    count: Count,
    policy: TablePolicy | None = None,
    structured: bool = False,
    promise: Callable[[Call], Promise] = promised,
) -> Layer:
    """A layer that encodes results compactly.

    Left as they are: results of calls that ask for `raw` or for structured content (`structured`
    says that all do), errors, and results that the client will check against an output schema
    (`promise`).
    """
    chosen = policy or TablePolicy()

    def layer(inner: Handler) -> Handler:
        async def handle(call: Call) -> CallResult:
            result = await inner(call)
            if structured or call.shape.raw or structured_asked(call):
                return result
            if result.is_error or not result.is_complete or promise(call) != "nothing":
                return result
            return encoded(result, chosen, count)

        return handle

    return layer


def encoded(result: CallResult, policy: TablePolicy, count: Count) -> CallResult:
    """The result with its data in the encoding of fewest tokens, or as it came."""
    if result.structured is None and _is_short(result, policy.bytes):
        return result  # before anything is read: most results are short
    payload = payload_of(result)
    if payload is None:
        return result
    try:
        plain = compact(payload.said)
        table = encode_table(payload.said)
    except (ValueError, RecursionError):  # circular or too deep
        return result
    sent = as_sent(result, payload)
    if len(sent) < policy.bytes:
        return result
    before = count(sent)
    tokens = before if plain == sent else count(plain)
    if table is not None and count(table) <= (1 - policy.saving) * min(before, tokens):
        note_tokens_before(before)
        changed, position = with_text(result, payload, table)
        return with_meta(changed, TABLE, position)
    if tokens <= (1 - policy.saving) * before:
        note_tokens_before(before)
        return with_text(result, payload, plain)[0]
    return result


def _is_short(result: CallResult, size: int) -> bool:
    return sum(len(block["text"]) + 1 for block in result.content if is_text(block)) <= size
