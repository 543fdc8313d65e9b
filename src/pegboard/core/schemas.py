"""Reading JSON Schemas: signatures, output fields, repairs."""

from __future__ import annotations

from collections.abc import Iterator

from pegboard.core.json import JsonObject


def unwrap_root(schema: JsonObject) -> JsonObject:
    """The schema behind a `$ref` at the root."""
    return schema


def signature(name: str, schema: JsonObject) -> str:
    """How to call a tool, on one line."""
    return f"{name}({', '.join(schema.get('properties', {}))})"


def output_fields(schema: JsonObject) -> Iterator[str]:
    """The dotted paths of a result."""
    yield from schema.get("properties", {})


def parameters_text(schema: JsonObject) -> tuple[str, bool]:
    return "", False


def parameter_table(schema: JsonObject) -> JsonObject:
    return schema.get("properties", {})


def repaired(schema: JsonObject) -> JsonObject:
    return schema


def relaxed_output(schema: JsonObject) -> JsonObject:
    return schema
