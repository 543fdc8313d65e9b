"""Arguments of meta-tools: read forgivingly, then checked against the meta-tool's own schema."""

from __future__ import annotations

from pegboard.core.json import Json, JsonObject
from pegboard.core.tools import Tool
from pegboard.core.validation import Validators, coerce_arguments
from pegboard.errors import InvalidArguments
from pegboard.modes.mode import MetaTool

_VALIDATORS = Validators(64)

CALL_PROPERTIES: JsonObject = {
    "name": {"type": "string"},
    "arguments": {"type": "object"},
    "include_fields": {"type": "array", "items": {"type": "string"}},
}
_CALL_KEYS = {*CALL_PROPERTIES, "select", "raw", "max_tokens", "category"}


def check_arguments(meta_tool: MetaTool, given: Json) -> JsonObject:
    """The arguments of a meta-tool, or an error that says what would be right."""
    validator = _VALIDATORS.get(meta_tool.name, meta_tool.accepts or meta_tool.parameters)
    arguments = coerce_arguments(meta_tool.name, given, validator)
    validator.check(arguments, meta_tool.name)
    return arguments


def extract_tool_arguments(tool: Tool, given: JsonObject) -> JsonObject:
    """The tool's own arguments out of a call meta-tool's.

    Weak models put them beside `name` instead of inside `arguments`; where that is unmistakable it
    is understood, and otherwise the error says where they belong.
    """
    inner = given.get("arguments")
    stray = {k: v for k, v in given.items() if k not in _CALL_KEYS}
    if not stray:
        return inner if inner is not None else {}
    own = tool.input_schema.get("properties", {})
    if not inner and all(key in own for key in stray):
        return stray
    names = ", ".join(sorted(stray))
    raise InvalidArguments(
        f"Unknown: {names}. Put the parameters of {tool.name} inside `arguments`.",
        tool=tool.name,
        field=names,
        signature=tool.signature,
    )
