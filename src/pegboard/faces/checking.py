"""Arguments of meta-tools: read forgivingly, then checked against the meta-tool's own schema."""

from __future__ import annotations

from pegboard.core.json import Json, JsonObject
from pegboard.core.validation import Validators, understood
from pegboard.faces.face import MetaTool

_VALIDATORS = Validators(64)
_OPEN_TO_STRAY = ("call_tool", "call_write_tool", "call_destructive_tool")
"""They say themselves where a tool's own parameters belong that were put beside `name`."""


def checked_arguments(meta_tool: MetaTool, given: Json) -> JsonObject:
    """The arguments of a meta-tool, or an error that says what would be right."""
    schema = meta_tool.parameters
    if meta_tool.name in _OPEN_TO_STRAY:
        schema = {**schema, "additionalProperties": True}
    validator = _VALIDATORS.of(meta_tool.name, schema)
    arguments = understood(meta_tool.name, given, validator)
    validator.check(arguments, meta_tool.name)
    return arguments
