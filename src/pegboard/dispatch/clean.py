"""Results without invisible characters and terminal escapes, where that is configured."""

from __future__ import annotations

from pegboard.core.calls import Call, CallResult
from pegboard.core.cleaning import clean_value
from pegboard.ports import Handler


def clean_results(inner: Handler) -> Handler:
    """A layer that cleans every string of a result."""

    async def handle(call: Call) -> CallResult:
        result = await inner(call)
        wire = clean_value(result.wire)
        return result if wire is result.wire else CallResult(wire)

    return handle
