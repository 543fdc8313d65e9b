"""Arguments against the tool's schema, before the call, and back to the server's own spelling."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from pegboard.core.calls import Call, CallResult
from pegboard.core.cleaning import restored
from pegboard.core.results import with_meta
from pegboard.core.tools import Tool
from pegboard.core.validation import Validators, understood
from pegboard.ports import Handler, Layer

logger = logging.getLogger(__name__)

UNKNOWN = "unknown_parameters"
"""Our `_meta` key for the parameters that were passed on though the schema does not name them."""


def validate(
    *, coerce: bool = True, is_closed: Callable[[Tool], bool] = lambda tool: True
) -> Layer:
    """A layer that reads arguments forgivingly and refuses those that do not fit.

    A tool whose schema is itself wrong is called unchecked; the log says so once. Parameters that
    the schema of a tool that is not closed does not name are passed on, and named in the `_meta` of
    the result.

    Args:
        coerce: Whether numbers and the like may be spelled as texts.
        is_closed: Whether a tool takes no parameters but those that its schema names.
    """
    validators = Validators()
    reported: set[str] = set()

    def layer(inner: Handler) -> Handler:
        async def handle(call: Call) -> CallResult:
            tool = call.tool
            schemas = tool.definition()
            validator = validators.of(tool.id, schemas.input, closed=is_closed(tool))
            if validator.problem and tool.id not in reported:
                reported.add(tool.id)
                logger.warning("%s is called unchecked: %s", tool.id, validator.problem)
            arguments = understood(tool.name, call.arguments, validator, coerce=coerce)
            validator.check(arguments, tool.name)
            strangers = () if validator.closed else validator.strangers(arguments)
            if schemas.originals:
                arguments = restored(arguments, schemas.originals)
            result = await inner(
                call if arguments is call.arguments else replace(call, arguments=arguments)
            )
            return with_meta(result, UNKNOWN, strangers) if strangers else result

        return handle

    return layer
