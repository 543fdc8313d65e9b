"""Reading JSON Schemas: signatures, parameters, output fields, repairs.

Pure functions over schemas as they come, drafts 4 to 2020-12, well-formed or not: none of them
raises.
"""

from __future__ import annotations

from pegboard.core.json import JsonObject
from pegboard.core.schemas.output_shape import field_outline, output_fields, relaxed_output, returns
from pegboard.core.schemas.parameter_docs import Described, described, parameters
from pegboard.core.schemas.repairs import Repair, repair, repaired, without_titles
from pegboard.core.schemas.schema_view import SchemaView
from pegboard.core.schemas.signatures import signature

__all__ = [
    "Described",
    "Repair",
    "described",
    "field_outline",
    "output_fields",
    "parameters",
    "relaxed_output",
    "repair",
    "repaired",
    "returns",
    "signature",
    "unwrap_root",
    "without_titles",
]


def unwrap_root(schema: JsonObject) -> JsonObject:
    """The schema with a `$ref` at the root followed and `allOf` there merged."""
    return SchemaView.of(schema).schema
