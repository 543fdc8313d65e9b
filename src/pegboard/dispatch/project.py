"""The projection layer: keeps the requested fields, in structured content and in JSON text.

Fields are checked before the call where the output schema of the tool is known. After the call
nothing here raises: a call that has run must not turn into an error, so fields that could not be
selected are reported in a note beside the result.
"""

from __future__ import annotations

from dataclasses import replace

from pegboard.core.calls import CallResult, ResultShape, ToolCall
from pegboard.core.json import Json
from pegboard.core.results.output_fields import (
    is_text_wrapper,
    resolve_aliases,
    validate_fields,
)
from pegboard.core.results.paths import join_names, list_field_paths
from pegboard.core.results.projection import project_report
from pegboard.core.results.shapes import (
    WRAPPER_KEY,
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

MISSING_FIELDS_KEY = "missing_fields"
SELECT_ERROR_KEY = "select_error"
_MAX_LISTED = 20


def projection_layer(*, count: Count | None = None) -> Layer:
    """A layer that applies `include_fields` and `select` of each call.

    Before the call it raises `InvalidField` for paths that the output schema cannot have, for
    malformed paths and for expressions that are not JMESPath. With `count`, the tokens of the whole
    result are recorded for observers.
    """

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            shape, tool = call.shape, call.tool
            if not shape.include_fields and shape.select is None:
                return await inner(call)
            if tool.field_aliases and shape.select is None:
                fields = resolve_aliases(
                    shape.include_fields,
                    tool.field_aliases,
                    tool.output_schema,
                    tool.projection_root,
                )
                shape = replace(shape, include_fields=fields)
                call = replace(call, shape=shape)
            if shape.select is None:
                schema = None if is_text_wrapper(tool.output_schema) else tool.output_schema
                validate_fields(shape.include_fields, schema, tool.projection_root)
            else:
                # Few calls have a `select`, and the import takes milliseconds.
                from pegboard.core.results.selection import check_expression

                check_expression(shape.select)
                # No schema describes what is selected.
                validate_fields(shape.include_fields, None)
            result = await inner(call)  # the complete one, which the cache below may share
            changed = await shape_result(result, shape, tool.projection_root)
            if changed is not result:
                call_notes().projected = True
                payload = find_payload(result) if count is not None else None
                if count is not None and payload is not None:
                    text = payload_text(result, payload)
                    record_tokens_before(await run_count([text], count))
            return changed

        return handle

    return layer


async def shape_result(
    result: CallResult, shape: ResultShape, root: str | None = None
) -> CallResult:
    """The result with only what was requested; errors and unfinished results unchanged."""
    if result.is_error or not result.is_complete:
        return result
    payload = find_payload(result)
    if payload is None:
        return add_note(
            add_meta(result, MISSING_FIELDS_KEY, list(shape.include_fields)),
            "No fields were selected: the result is not JSON.",
        )
    if payload.is_encoded and shape.include_fields == (WRAPPER_KEY,) and shape.select is None:
        return result  # the one field of the output schema, which is the whole text
    value: Json = payload.value
    missing: tuple[str, ...] = ()
    failure = ""
    if shape.select is not None:
        try:
            value = await run_select(value, shape.select)
        except (InvalidField, Busy) as error:
            failure = error.message
    if not failure:
        projected = project_report(value, shape.include_fields, root)
        value, missing = projected.value, projected.missing
    try:
        is_object = payload.structured and isinstance(payload.value, dict)
        if is_object and not payload.is_encoded and not isinstance(value, dict):
            # MCP requires structured content to be an object: other values are wrapped.
            mirror = "unwrapped" if payload.texts else "none"
            wrapped = {WRAPPER_KEY: value}
            changed = replace_value(result, replace(payload, mirror=mirror), wrapped)
        else:
            changed = replace_value(result, payload, value)
    except (ValueError, RecursionError):  # circular, or too deep to be written
        return add_note(result, "No fields were selected: the result cannot be written as JSON.")
    if failure:
        note = f"{failure} The result is complete."
        return add_note(add_meta(changed, SELECT_ERROR_KEY, failure), note)
    if not missing:
        return changed
    available = ", ".join(list_field_paths(payload.value))
    note = f"Missing fields: {join_names(missing, _MAX_LISTED)}."
    note += f" Available: {available}." if available else ""
    return add_note(add_meta(changed, MISSING_FIELDS_KEY, list(missing)), note)
