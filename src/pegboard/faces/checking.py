"""Arguments of meta-tools: read forgivingly, then checked against the meta-tool's own schema."""

from __future__ import annotations

from pegboard.core.json import Json, JsonObject
from pegboard.core.validation import Validators, understood
from pegboard.faces.face import MetaTool

_VALIDATORS = Validators(64)


def checked_arguments(meta_tool: MetaTool, given: Json) -> JsonObject:
    """The arguments of a meta-tool, or an error that says what would be right."""
    validator = _VALIDATORS.of(meta_tool.name, meta_tool.accepts or meta_tool.parameters)
    arguments = understood(meta_tool.name, given, validator)
    validator.check(arguments, meta_tool.name)
    return arguments
