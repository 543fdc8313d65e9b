"""The projection layer: keeps the asked fields of a result, in structured content and in JSON text.

Fields are checked before the call where the tool's output schema is known. After the call nothing
here raises: a call that ran stays a call that ran, and what could not be kept is said beside the
result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from pegboard.core.calls import CallResult, ResultShape, ToolCall
from pegboard.core.json import Json
from pegboard.core.results.output_fields import resolve_aliases, validate_fields
from pegboard.core.results.paths import join_names, list_field_paths
from pegboard.core.results.projection import project_report
from pegboard.core.results.shapes import (
    WRAPPER_KEY,
    Payload,
    add_meta,
    add_note,
    find_payload,
    payload_text,
    replace_value,
)
from pegboard.core.token_budget import Count
from pegboard.dispatch.call_events import call_notes, record_tokens_before
from pegboard.dispatch.expensive_work import run_count, run_select
from pegboard.errors import Busy, InvalidField
from pegboard.ports import Handler, Layer

MISSING_FIELDS = "missing_fields"
SELECT_ERROR = "select_error"
_LISTED = 20


class _Shaped(NamedTuple):
    """A shaped value, and what to say about it."""

    value: Json
    missing: tuple[str, ...] = ()
    failed: str = ""


def projection_layer(*, count: Count | None = None) -> Layer:
    """A layer that applies `include_fields` and `select` of each call.

    Before the call it raises `InvalidField` for paths that the output schema cannot have, for
    malformed ones and for expressions that are no JMESPath. With `count`, what the whole result
    would have cost is noted for whoever observes the call.
    """

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            shape = call.shape
            if not shape.include_fields and shape.select is None:
                return await inner(call)
            if call.tool.field_aliases and shape.select is None:
                shape = replace(shape, include_fields=_named(call))
                call = replace(call, shape=shape)
            _check(call)
            result = await inner(call)
            changed = await shape_result(result, shape, call.tool.projection_root)
            if changed is not result:
                await _note(result, count)
            return changed

        return handle

    return layer


def _named(call: ToolCall) -> tuple[str, ...]:
    """The fields by the names that they have in the result."""
    tool = call.tool
    fields = call.shape.include_fields
    return resolve_aliases(fields, tool.field_aliases, tool.output_schema, tool.projection_root)


async def _note(result: CallResult, count: Count | None) -> None:
    call_notes().projected = True
    payload = find_payload(result) if count is not None else None
    if count is not None and payload is not None:
        record_tokens_before(await run_count([payload_text(result, payload)], count))


def _check(call: ToolCall) -> None:
    fields, expression = call.shape.include_fields, call.shape.select
    if expression is not None:
        from pegboard.core.results.selection import (
            check_expression,  # few select: it costs an import
        )

        check_expression(expression)
        validate_fields(fields, None)  # fields of what is selected, which no schema describes
    else:
        validate_fields(fields, call.tool.output_schema, call.tool.projection_root)


async def shape_result(
    result: CallResult, shape: ResultShape, root: str | None = None
) -> CallResult:
    """The result with only what was asked for; errors and unfinished results as they came."""
    if result.is_error or not result.is_complete:
        return result
    payload = find_payload(result)
    if payload is None:
        return add_note(
            add_meta(result, MISSING_FIELDS, list(shape.include_fields)),
            "No fields were selected: the result is not JSON.",
        )
    kept = await _shape(payload.value, shape, root)
    try:
        changed = _rewritten(result, payload, kept.value)
    except (ValueError, RecursionError):  # circular, or too deep to be written
        return add_note(result, "No fields were selected: the result cannot be written as JSON.")
    return _reported(changed, payload, kept)


async def _shape(value: Json, shape: ResultShape, root: str | None) -> _Shaped:
    if shape.select is not None:
        try:
            value = await run_select(value, shape.select)
        except (InvalidField, Busy) as error:
            return _Shaped(value, failed=error.message)
    projected = project_report(value, shape.include_fields, root)
    return _Shaped(projected.value, projected.missing)


def _rewritten(result: CallResult, payload: Payload, value: Json) -> CallResult:
    """The result about another value; structured content stays an object where it was one."""
    if payload.structured and isinstance(payload.value, dict) and not isinstance(value, dict):
        mirror = "unwrapped" if payload.texts else "none"
        return replace_value(result, replace(payload, mirror=mirror), {WRAPPER_KEY: value})
    return replace_value(result, payload, value)


def _reported(result: CallResult, payload: Payload, kept: _Shaped) -> CallResult:
    if kept.failed:
        return add_note(
            add_meta(result, SELECT_ERROR, kept.failed), f"{kept.failed} Nothing was left out."
        )
    if not kept.missing:
        return result
    available = ", ".join(list_field_paths(payload.value))
    note = f"Missing fields: {join_names(kept.missing, _LISTED)}."
    note += f" Available: {available}." if available else ""
    return add_note(add_meta(result, MISSING_FIELDS, list(kept.missing)), note)
