"""The compact layer: JSON that a server sends indented, or inside a string, as compact JSON.

Models read the text of a result, and indentation is a third of its tokens. What programs read is
left alone: structured content, results for clients that validate them against a listed output
schema, and calls that request `raw` or structured content.
"""

from __future__ import annotations

from collections.abc import Callable

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.results.compact_text import compact_content
from pegboard.core.results.shapes import (
    OutputContract,
    default_contract,
    is_text,
    wants_structured,
)
from pegboard.core.token_budget import Count
from pegboard.dispatch.call_events import record_tokens_before, result_text
from pegboard.dispatch.expensive_work import run_count
from pegboard.errors import Busy
from pegboard.offload import DeadlineExceeded, offload
from pegboard.ports import Handler, Layer

_QUICK_CHARACTERS = 200_000
"""Characters of JSON that are rewritten in a few milliseconds."""


def compact_layer(
    *,
    count: Count,
    structured: bool = False,
    contract: Callable[[ToolCall], OutputContract] = default_contract,
) -> Layer:
    """A layer that writes JSON in texts compactly.

    With `structured`, all clients get structured content, and texts stay as servers sent them.
    """

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            result = await inner(call)
            if structured or call.shape.raw or wants_structured(call):
                return result
            if not result.is_complete or contract(call) != "nothing" or not _may_shrink(result):
                return result
            changed = await _compact(result)
            if changed is not result:
                record_tokens_before(await run_count([result_text(result)], count))
            return changed

        return handle

    return layer


def _may_shrink(result: CallResult) -> bool:
    """Whether some text looks like JSON; most results are prose or compact, and cost one look."""
    return any(is_text(b) and b["text"].lstrip()[:1] in ("{", "[") for b in result.content)


async def _compact(result: CallResult) -> CallResult:
    if sum(len(b["text"]) for b in result.content if is_text(b)) <= _QUICK_CHARACTERS:
        content = compact_content(result.content)
    else:
        try:
            content = await offload(compact_content, result.content)
        except (DeadlineExceeded, Busy):
            return result
    return result if content == result.content else CallResult({**result.wire, "content": content})
