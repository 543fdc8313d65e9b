"""Schemas of an OpenAPI document as self-contained JSON Schema 2020-12.

OpenAPI 3.0 has a dialect of its own (`nullable`, boolean `exclusiveMinimum`); 3.1 is JSON Schema.
In both, schemas refer to other parts of the document. These are copied to `$defs`, each once, which
also keeps recursive schemas finite.

What a caller sends and what it gets are not the same: read-only properties are not part of an input
and write-only ones not part of an output. APIs return less and more than they document, and a
client rejects a result that does not match its advertised schema. So an output schema describes
shapes, and neither requires nor forbids properties.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

from pegboard.adapters.openapi.document import ApiDocument
from pegboard.core.json import Json, JsonObject

Direction: TypeAlias = Literal["input", "output"]

_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE = frozenset(
    {
        "items",
        "additionalProperties",
        "not",
        "if",
        "then",
        "else",
        "contains",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_DROPPED = frozenset(
    {"xml", "externalDocs", "discriminator", "example", "nullable", "$schema", "$ref"}
)
_HIDDEN: dict[Direction, str] = {"input": "readOnly", "output": "writeOnly"}


class SchemaConverter:
    """Converts schemas of one tool in one direction; they share their `$defs`."""

    def __init__(self, document: ApiDocument, direction: Direction) -> None:
        self._document = document
        self._direction: Direction = direction
        self._names: dict[str, str] = {}
        self._pending: list[tuple[str, Json]] = []
        self.definitions: JsonObject = {}

    def convert(self, schema: Json) -> Json:
        """The schema as JSON Schema, with references to `$defs`."""
        converted = self._convert(schema)
        while self._pending:  # not by recursion: chains of references can be long
            name, target = self._pending.pop()
            self.definitions[name] = self._convert(target)
        return converted

    def _convert(self, schema: Json) -> Json:
        if not isinstance(schema, dict):
            return schema if isinstance(schema, bool) else {}  # malformed: accept anything
        if isinstance(schema.get("$ref"), str):
            return self._reference(schema)
        converted = {k: self._value(k, v) for k, v in schema.items() if k not in _DROPPED}
        self._remove_hidden(schema, converted)
        if "example" in schema and "examples" not in schema:
            converted["examples"] = [schema["example"]]
        if self._document.is_3_0:
            converted = _from_3_0(schema, converted)
        return converted

    def with_definitions(self, schema: JsonObject) -> JsonObject:
        """The schema with the definitions that the converted schemas refer to."""
        return {**schema, "$defs": self.definitions} if self.definitions else schema

    def _value(self, key: str, value: Json) -> Json:
        if key in _MAPS and isinstance(value, dict):
            return {name: self._convert(child) for name, child in value.items()}
        if key in _LISTS and isinstance(value, list):
            return [self._convert(child) for child in value]
        return self._convert(value) if key in _SINGLE else value

    def _reference(self, schema: JsonObject) -> JsonObject:
        pointer = str(schema["$ref"])
        name = self._names.get(pointer)
        if name is None:
            last = pointer.rpartition("/")[2]
            name = re.sub(r"[^A-Za-z0-9_.-]", "_", last) or "schema"
            while name in self.definitions:
                name += "_"
            self._names[pointer] = name
            self.definitions[name] = {}  # reserves the name, also for a recursive reference
            self._pending.append((name, self._document.at(pointer)))
        # OpenAPI 3.0 ignores everything beside a `$ref`; JSON Schema does not.
        beside = {} if self._document.is_3_0 else {k: v for k, v in schema.items() if k != "$ref"}
        return {"$ref": f"#/$defs/{name}", **{k: self._value(k, v) for k, v in beside.items()}}

    def _remove_hidden(self, schema: JsonObject, converted: JsonObject) -> None:
        """Remove properties of the other direction, and constraints that outputs do not keep."""
        properties = schema.get("properties")
        hidden: set[str] = set()
        if isinstance(properties, dict):
            mark = _HIDDEN[self._direction]
            hidden = {n for n, p in properties.items() if isinstance(p, dict) and p.get(mark)}
            kept = converted["properties"].items()
            converted["properties"] = {n: p for n, p in kept if n not in hidden}
        required = converted.pop("required", None)
        if isinstance(required, list) and self._direction == "input":
            names = [n for n in required if isinstance(n, str) and n not in hidden]
            converted |= {"required": names} if names else {}
        if self._direction == "output" and converted.get("additionalProperties") is False:
            del converted["additionalProperties"]


def _from_3_0(schema: JsonObject, converted: JsonObject) -> JsonObject:
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if not isinstance(converted.get(exclusive), bool):
            continue
        if converted.pop(exclusive) and bound in converted:
            converted[exclusive] = converted.pop(bound)
    if schema.get("nullable") is not True:
        return converted
    if isinstance(converted.get("enum"), list) and None not in converted["enum"]:
        converted["enum"] = [*converted["enum"], None]
    kind: Any = converted.get("type")
    if isinstance(kind, str):
        return {**converted, "type": [kind, "null"]}
    return {"anyOf": [converted, {"type": "null"}]}


def convert_output_schema(document: ApiDocument, schema: Json) -> JsonObject | None:
    """The schema of the structured content of a tool; `None` if the type is not clear.

    Structured content is an object. A list or a plain value is wrapped as `{"result": ...}`.
    """
    converter = SchemaConverter(document, "output")
    root = converter.convert(schema)
    whole = root
    if isinstance(root, dict) and "$ref" in root:
        whole = converter.definitions[root["$ref"].rpartition("/")[2]]
    if not isinstance(whole, dict):
        return None
    kind = whole.get("type", "object" if "properties" in whole else None)
    if kind == "object":
        return converter.with_definitions({"type": "object", **whole})
    if kind in ("array", "string", "number", "integer", "boolean"):
        wrapped = {"type": "object", "properties": {"result": root}}
        return converter.with_definitions(wrapped)
    return None
