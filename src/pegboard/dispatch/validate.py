"""Arguments against the tool's schema, before the call."""

from __future__ import annotations

from dataclasses import replace

from pegboard.core.calls import Call, CallResult
from pegboard.core.validation import understood
from pegboard.ports import Handler, Layer


def validate(*, coerce: bool = True) -> Layer:
    """A layer that reads arguments forgivingly and refuses those that do not fit."""

    def layer(inner: Handler) -> Handler:
        async def handle(call: Call) -> CallResult:
            arguments = understood(
                call.tool.name, call.arguments, call.tool.input_schema, coerce=coerce
            )
            return await inner(replace(call, arguments=arguments))

        return handle

    return layer
