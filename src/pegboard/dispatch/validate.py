"""The validation layer: arguments are coerced and checked against the tool's schema.

Then names and values that were escaped for the model get their original spelling back, since the
server knows no other.
"""

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
from pegboard.core.validation import Validator, Validators, coerce_arguments, decode_arguments
from pegboard.offload import DeadlineExceeded, offload
from pegboard.ports import Handler, Layer

logger = logging.getLogger(__name__)

UNKNOWN_KEY = "unknown_parameters"
"""Our `_meta` key for parameters that were passed on although the schema does not name them."""

_worker_validators = Validators(256)
"""The schemas that a worker process has compiled."""

_MAX_REPORTED = 1_000


class _Checked(NamedTuple):
    """Valid arguments; `None` if they are unchanged."""

    arguments: JsonObject | None
    strangers: list[str]
    problem: str | None = None


def validate(
    *, coerce: bool = True, is_closed: Callable[[Tool], bool] = lambda tool: True
) -> Layer:
    """A layer that coerces arguments and rejects those that do not match the schema.

    A tool whose schema is invalid is called unchecked, which is logged once. Unknown parameters of
    a tool that is not closed are passed on, and named in the `_meta` of the result. Checks that
    could be slow run in a worker process; one that takes too long is skipped, and the server is
    left to check.

    Args:
        coerce: Whether numbers and booleans may be sent as text.
        is_closed: Whether a tool takes no parameters but those in its schema.
    """
    validators = Validators()
    reported: set[tuple[str, str]] = set()

    def warn_once(tool: Tool, problem: str) -> None:
        # Bounded, since upstreams choose the ids and the problems.
        if (tool.id, problem) not in reported and len(reported) < _MAX_REPORTED:
            reported.add((tool.id, problem))
            logger.warning("%s is called unchecked: %s", tool.id, problem)

    async def check(call: ToolCall) -> _Checked:
        tool, closed = call.tool, is_closed(call.tool)
        validator = validators.get(tool.id, tool.input_schema, closed=closed)
        # Nearly all calls: a round trip to a worker would cost more than the check.
        if not validator.is_expensive(call.arguments):
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
            return _Checked(decode_arguments(tool.name, call.arguments), [])

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            arguments, strangers, problem = await check(call)
            if problem:
                warn_once(call.tool, problem)
            if originals := call.tool.definition().originals:
                given = call.arguments if arguments is None else arguments
                arguments = restore_originals(given, originals)
            result = await inner(call if arguments is None else replace(call, arguments=arguments))
            return add_meta(result, UNKNOWN_KEY, strangers) if strangers else result

        return handle

    return layer


def _check(validator: Validator, tool: str, given: Json, *, coerce: bool) -> _Checked:
    # Nearly all calls: valid as they are, with no name that the schema lacks.
    if isinstance(given, dict) and validator.accepts(given) and not validator.unknown_names(given):
        return _Checked(None, [], validator.problem)
    arguments = coerce_arguments(tool, given, validator, coerce=coerce)
    validator.check(arguments, tool)
    strangers = [] if validator.closed else validator.unknown_names(arguments)
    return _Checked(None if arguments is given else arguments, strangers, validator.problem)


def _check_in_worker(
    tool_id: str, tool: str, schema: JsonObject, given: Json, closed: bool, coerce: bool
) -> _Checked:
    validator = _worker_validators.get(tool_id, schema, closed=closed)
    return _check(validator, tool, given, coerce=coerce)
