"""Arguments that fit a schema, made the same way each time: the least that is required."""

from __future__ import annotations

from typing import Any

import jsonschema_rs

_FORMATS = {
    "uri": "https://example.com/a",
    "url": "https://example.com/a",
    "date": "2026-01-02",
    "date-time": "2026-01-02T03:04:05Z",
    "email": "a@example.com",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def arguments_for(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Arguments that the schema accepts, or none where this simple way does not find any."""
    try:
        made = _value(schema, schema, 0)
        fits = isinstance(made, dict) and jsonschema_rs.validator_for(schema).is_valid(made)
    except (ValueError, KeyError, RecursionError, TypeError, jsonschema_rs.ValidationError):
        return None
    return made if fits else None


def fits(schema: dict[str, Any], arguments: Any) -> bool:
    return jsonschema_rs.validator_for(schema).is_valid(arguments)


def _value(schema: Any, root: dict[str, Any], depth: int) -> Any:
    if not isinstance(schema, dict) or depth > 8:
        return "text"
    if "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return _value(target, root, depth + 1)
    for key in ("const", "default"):
        if key in schema and depth:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return _value(schema[key][0], root, depth + 1)
    return _of_type(schema, root, depth)


def _of_type(schema: dict[str, Any], root: dict[str, Any], depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema or not depth else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        parts = schema.get("properties") or {}
        return {
            name: _value(parts.get(name), root, depth + 1) for name in schema.get("required") or ()
        }
    if kind == "array":
        count = max(1, schema.get("minItems", 1))
        return [_value(schema.get("items"), root, depth + 1) for _ in range(count)]
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        return low if isinstance(low, int | float) else 1
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    text = _FORMATS.get(schema.get("format", ""), "text")
    return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", 200)]
