"""Arguments against the tool's schema, before the call, and back to the server's own spelling."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.json import Json, JsonObject
from pegboard.core.results.shapes import add_meta
from pegboard.core.sanitization import restore_originals
from pegboard.core.tools import Tool
from pegboard.core.validation import Validator, Validators, as_object, understood
from pegboard.offload import DeadlineExceeded, offload
from pegboard.ports import Handler, Layer

logger = logging.getLogger(__name__)

UNKNOWN = "unknown_parameters"
"""Our `_meta` key for the parameters that were passed on though the schema does not name them."""

_IN_WORKER = Validators(256)
"""The schemas that a worker process has compiled."""


class _Checked(NamedTuple):
    """Arguments that fit; `None` where they are as they were given."""

    arguments: JsonObject | None
    strangers: list[str]
    problem: str | None = None


def validate(
    *, coerce: bool = True, is_closed: Callable[[Tool], bool] = lambda tool: True
) -> Layer:
    """A layer that reads arguments forgivingly and refuses those that do not fit.

    A tool whose schema is itself wrong is called unchecked; the log says so once. Parameters that
    the schema of a tool that is not closed does not name are passed on, and named in the `_meta` of
    the result. What could take long is checked in a worker process; what does take too long is left
    to the server.

    Args:
        coerce: Whether numbers and the like may be spelled as texts.
        is_closed: Whether a tool takes no parameters but those that its schema names.
    """
    validators = Validators()
    reported: set[tuple[str, str]] = set()

    def warn_once(tool: Tool, problem: str) -> None:
        if (tool.id, problem) not in reported and len(reported) < _MOST_REPORTED:
            reported.add((tool.id, problem))
            logger.warning("%s is called unchecked: %s", tool.id, problem)

    async def checked(call: ToolCall) -> _Checked:
        tool, closed = call.tool, is_closed(call.tool)
        validator = validators.of(tool.id, tool.input_schema, closed=closed)
        if not validator.is_heavy(call.arguments):
            return _check(validator, tool.name, call.arguments, coerce=coerce)
        try:
            return await offload(
                _check_in_worker,
                tool.id,
                tool.name,
                validator.schema,
                call.arguments,
                closed,
                coerce,
            )
        except DeadlineExceeded as exc:
            warn_once(tool, f"its arguments could not be checked. {exc.message}")
            return _Checked(as_object(tool.name, call.arguments), [])

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            arguments, strangers, problem = await checked(call)
            if problem:
                warn_once(call.tool, problem)
            if originals := call.tool.definition().originals:
                # Names and values that were escaped for the model go out as the server knows them.
                given = call.arguments if arguments is None else arguments
                arguments = restore_originals(given, originals)
            result = await inner(call if arguments is None else replace(call, arguments=arguments))
            return add_meta(result, UNKNOWN, strangers) if strangers else result

        return handle

    return layer


_MOST_REPORTED = 1_000


def _check(validator: Validator, tool: str, given: Json, *, coerce: bool) -> _Checked:
    arguments = understood(tool, given, validator, coerce=coerce)
    validator.check(arguments, tool)
    strangers = [] if validator.closed else validator.strangers(arguments)
    return _Checked(None if arguments is given else arguments, strangers, validator.problem)


def _check_in_worker(
    tool_id: str, tool: str, schema: JsonObject, given: Json, closed: bool, coerce: bool
) -> _Checked:
    validator = _IN_WORKER.of(tool_id, schema, closed=closed)
    return _check(validator, tool, given, coerce=coerce)
