"""Reading JSON Schemas: signatures, parameters, output fields, repairs.

Pure functions over schemas as they come, drafts 4 to 2020-12, well-formed or not: none of them
raises.
"""

from __future__ import annotations

from pegboard.core.schemas.output_shape import (
    format_field_outline,
    format_result_shape,
    list_output_fields,
    relax_output_schema,
)
from pegboard.core.schemas.parameter_docs import (
    ParameterDocs,
    describe_parameters,
    list_parameters,
)
from pegboard.core.schemas.repairs import Repair, repair_schema, strip_generated_titles
from pegboard.core.schemas.schema_view import unwrap_root
from pegboard.core.schemas.signatures import format_brief_signature, format_signature

__all__ = [
    "ParameterDocs",
    "Repair",
    "describe_parameters",
    "format_brief_signature",
    "format_field_outline",
    "format_result_shape",
    "format_signature",
    "list_output_fields",
    "list_parameters",
    "relax_output_schema",
    "repair_schema",
    "strip_generated_titles",
    "unwrap_root",
]
