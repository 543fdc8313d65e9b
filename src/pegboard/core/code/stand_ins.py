"""Values in place of results that a preview must not fetch: of the right shape, without meaning."""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.core.code.stubs import unwrap_result_schema
from pegboard.core.json import Json, JsonObject
from pegboard.core.schemas.schema_view import SchemaView, merge_branches
from pegboard.core.schemas.signatures import allowed_values, value_types

_MAX_DEPTH = 6
_EMPTY: Mapping[str, Json] = {
    "string": "",
    "integer": 0,
    "number": 0.0,
    "boolean": True,
    "null": None,
}


def make_stand_in(schema: JsonObject | None, arguments: Mapping[str, Json]) -> Json:
    """A value of a result's shape; what the call itself named is repeated under the same name."""
    unwrapped = unwrap_result_schema(schema)
    if unwrapped is None:
        return dict(arguments)
    return _make(SchemaView.of(unwrapped), arguments, None, _MAX_DEPTH)


def _make(view: SchemaView, arguments: Mapping[str, Json], name: str | None, depth: int) -> Json:
    if name is not None and name in arguments:
        return arguments[name]
    if depth <= 0 or view.cut:
        return None
    if values := allowed_values(view):
        return next(iter(values))
    if view.alternatives:
        return _make(view.alternatives[0], arguments, name, depth - 1)
    kind = next(iter(value_types(view)), "object")
    if kind == "array":
        return []
    if kind != "object":
        return _EMPTY.get(kind)
    whole = merge_branches(view)
    return {
        member: _make(whole.at(schema), arguments, member, depth - 1)
        for member, schema in whole.members.items()
    }
