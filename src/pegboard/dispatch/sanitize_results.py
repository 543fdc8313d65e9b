"""The sanitizing layer, opt-in: results without invisible characters and terminal escapes."""

from __future__ import annotations

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.sanitization import sanitize_value
from pegboard.ports import Handler


def sanitize_results(inner: Handler) -> Handler:
    """A layer that sanitizes every string of a result."""

    async def handle(call: ToolCall) -> CallResult:
        result = await inner(call)
        wire = sanitize_value(result.wire)
        # No copy where nothing was removed, which is nearly always.
        return result if wire is result.wire else CallResult(wire)

    return handle
