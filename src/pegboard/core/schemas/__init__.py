"""Reading JSON Schemas: signatures, parameters, output fields, repairs.

Pure functions over schemas as they come, drafts 4 to 2020-12, well-formed or not: none of them
raises.
"""

from __future__ import annotations

from pegboard.core.json import JsonObject
from pegboard.core.schemas.describing import Described, described
from pegboard.core.schemas.fields import field_outline, output_fields
from pegboard.core.schemas.parameters import parameters
from pegboard.core.schemas.reading import View
from pegboard.core.schemas.relaxing import relaxed_output
from pegboard.core.schemas.repairs import Repair, repair, repaired
from pegboard.core.schemas.returns import returns
from pegboard.core.schemas.signatures import signature
from pegboard.core.schemas.titles import without_titles

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
    return View.of(schema).schema
