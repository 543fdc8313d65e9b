"""Arguments of meta-tools: read forgivingly, then checked against the meta-tool's own schema."""

from __future__ import annotations

from pegboard.core.json import Json, JsonObject
from pegboard.core.validation import understood
from pegboard.faces.face import MetaTool


def checked_arguments(meta_tool: MetaTool, given: Json) -> JsonObject:
    """The arguments of a meta-tool, or an error that says what would be right."""
    return understood(meta_tool.name, given, meta_tool.parameters)
