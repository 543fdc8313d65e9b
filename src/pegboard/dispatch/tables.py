"""The table layer: the same data in fewer tokens, where that pays and nobody asked for it raw.

Lists of like records become tables, other JSON that was sent indented becomes compact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pegboard.core.budget import Count
from pegboard.core.calls import Call, CallResult
from pegboard.core.json import Json, compact
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
from pegboard.dispatch.heavy import count_in
from pegboard.dispatch.observe import note_tokens_before
from pegboard.errors import Busy
from pegboard.offload import DeadlineExceeded, offload
from pegboard.ports import Handler, Layer

_QUICK = 200_000
"""Characters of JSON that are encoded in some 20 ms."""


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
            return await encoded(result, chosen, count)

        return handle

    return layer


async def encoded(result: CallResult, policy: TablePolicy, count: Count) -> CallResult:
    """The result with its data in the encoding of fewest tokens, or as it came."""
    if result.structured is None and _is_short(result, policy.bytes):
        return result  # before anything is read: most results are short
    payload = payload_of(result)
    if payload is None:
        return result
    try:
        sent = as_sent(result, payload)
        if len(sent) < policy.bytes:
            return result
        plain, table = await _encodings(payload.said, len(sent))
    except (ValueError, RecursionError, DeadlineExceeded, Busy):  # circular, too deep, too large
        return result
    before = await count_in([sent], count)
    tokens = before if plain == sent else await count_in([plain], count)
    if table is not None and await count_in([table], count) <= (1 - policy.saving) * min(
        before, tokens
    ):
        note_tokens_before(before)
        changed, position = with_text(result, payload, table)
        return with_meta(changed, TABLE, position)
    if tokens <= (1 - policy.saving) * before:
        note_tokens_before(before)
        return with_text(result, payload, plain)[0]
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
