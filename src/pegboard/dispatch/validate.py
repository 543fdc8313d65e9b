"""Arguments against the tool's schema, before the call."""

from __future__ import annotations

import logging
from dataclasses import replace

from pegboard.core.calls import Call, CallResult
from pegboard.core.validation import Validators, understood
from pegboard.ports import Handler, Layer

logger = logging.getLogger(__name__)


def validate(*, coerce: bool = True) -> Layer:
    """A layer that reads arguments forgivingly and refuses those that do not fit.

    A tool whose schema is itself wrong is called unchecked; the log says so once.
    """
    validators = Validators()
    reported: set[str] = set()

    def layer(inner: Handler) -> Handler:
        async def handle(call: Call) -> CallResult:
            tool = call.tool
            validator = validators.of(tool.id, tool.input_schema)
            if validator.problem and tool.id not in reported:
                reported.add(tool.id)
                logger.warning("%s is called unchecked: %s", tool.id, validator.problem)
            arguments = understood(tool.name, call.arguments, validator, coerce=coerce)
            validator.check(arguments, tool.name)
            return await inner(
                call if arguments is call.arguments else replace(call, arguments=arguments)
            )

        return handle

    return layer
