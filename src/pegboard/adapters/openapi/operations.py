"""The operations of a document: what each takes, where it goes, and the tool that stands for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pegboard.adapters.openapi.arguments import (
    Body,
    Parameter,
    Unusable,
    body_of,
    kind_of,
    parameters_of,
    text_at,
)
from pegboard.adapters.openapi.document import ApiDocument, BadReference
from pegboard.adapters.openapi.schemas import Converter, output_schema
from pegboard.adapters.openapi.spec import OpenApiSpec
from pegboard.core.details import section_name
from pegboard.core.json import Json, JsonObject
from pegboard.core.tools import Risk, Schemas, Tool, derive_summary

METHODS = ("get", "head", "options", "post", "put", "patch", "delete")
_READS = ("get", "head", "options")


@dataclass(frozen=True, slots=True)
class OperationProblem:
    """An operation that is left out, and why."""

    source: str
    operation: str
    message: str

    def __str__(self) -> str:
        return f"{self.source}: {self.operation}: {self.message}"


@dataclass(frozen=True)
class Operation:
    """One operation, ready to be called; its schemas are made when they are asked for."""

    name: str
    method: str
    path: str
    base_url: str | None
    parameters: tuple[Parameter, ...]
    body: Body | None
    document: ApiDocument = field(repr=False)
    raw: JsonObject = field(repr=False)

    def definition(self) -> Schemas:
        """What it takes and what it gives."""
        return self._schemas

    @cached_property
    def _schemas(self) -> Schemas:
        return Schemas(_input(self), _output(self))


def operations(
    document: ApiDocument, spec: OpenApiSpec
) -> tuple[list[Operation], list[OperationProblem]]:
    """The operations that can be tools and are to be shown, and why others cannot."""
    found: dict[str, Operation] = {}
    problems: list[OperationProblem] = []
    for method, path, raw, item in _listed(document, spec, problems):
        name = _name(raw, method, path)
        if name in found:
            name = _unique(f"{name}_{method}", found)
        if not spec.shows(name):
            continue
        try:
            found[name] = _operation(document, spec, name, method, path, raw, item)
        except (BadReference, Unusable) as exc:
            message = f"{method.upper()} {path} is left out: {exc}."
            problems.append(OperationProblem(spec.name, name, message))
    return list(found.values()), problems


def tool_of(operation: Operation, spec: OpenApiSpec) -> Tool:
    """The tool that stands for an operation."""
    raw = operation.raw
    tags = tuple(str(tag) for tag in _list(raw, "tags"))
    summary, description = text_at(raw, "summary"), text_at(raw, "description")
    deprecated = "The API marks this operation as deprecated." if raw.get("deprecated") else None
    return Tool(
        name=operation.name,
        definition=operation.definition,
        id=f"{spec.name}.{operation.name}",
        server=spec.name,
        category=spec.category or spec.name,
        section=section_name(tags[0]) if tags else None,
        summary=derive_summary(summary or description or _spoken(operation)),
        description=_description(summary, description) or _spoken(operation),
        title=summary or None,
        tags=tags,
        deprecated=deprecated,
        annotations=_annotations(operation.method),
        risk=risk_of_method(operation.method),
        risk_source="annotated",
        timeout=spec.timeout,
    )


def risk_of_method(method: str) -> Risk:
    """What a call of this method may do, as HTTP means it."""
    if method in _READS:
        return "read"
    return "destructive" if method == "delete" else "write"


# --- reading --------------------------------------------------------------------------------------


def _listed(
    document: ApiDocument, spec: OpenApiSpec, problems: list[OperationProblem]
) -> Iterator[tuple[str, str, JsonObject, JsonObject]]:
    for path, item in (document.value.get("paths") or {}).items():
        try:
            item = document.follow(item)
        except BadReference as exc:
            problems.append(OperationProblem(spec.name, str(path), f"it is left out: {exc}."))
            continue
        for method in METHODS:
            if isinstance(raw := item.get(method), dict):
                yield method, str(path), raw, item


def _operation(
    document: ApiDocument,
    spec: OpenApiSpec,
    name: str,
    method: str,
    path: str,
    raw: JsonObject,
    item: JsonObject,
) -> Operation:
    parameters = parameters_of(
        document, spec, [*_list(item, "parameters"), *_list(raw, "parameters")]
    )
    missing = set(re.findall(r"\{([^{}]+)\}", path)) - {
        p.name for p in parameters if p.place == "path"
    }
    if missing:
        raise Unusable(f"no parameter says what {', '.join(sorted(missing))} in its path is")
    body = body_of(document, raw, {p.argument for p in parameters})
    base_url = spec.base_url or document.server_url(raw, item)
    document.check([p.schema for p in parameters])
    document.check(body.schema if body else None)
    return Operation(name, method, path, base_url, parameters, body, document, raw)


# --- schemas --------------------------------------------------------------------------------------


def _input(operation: Operation) -> JsonObject:
    converter = Converter(operation.document, "input")
    properties: JsonObject = {}
    required: list[str] = []
    for parameter in operation.parameters:
        properties[parameter.argument] = _described(converter, parameter)
        if parameter.required:
            required.append(parameter.argument)
    if body := operation.body:
        _add_body(converter, operation, body, properties, required)
    schema: JsonObject = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return converter.standing_alone({**schema, "additionalProperties": False})


def _add_body(
    converter: Converter,
    operation: Operation,
    body: Body,
    properties: JsonObject,
    required: list[str],
) -> None:
    if body.properties is None:
        properties[body.argument] = converter.convert(body.schema)
        if body.required:
            required.append(body.argument)
        return
    whole = converter.convert(operation.document.follow(body.schema))
    properties.update({name: whole["properties"][name] for name in body.properties})
    if body.required:
        required.extend(n for n in whole.get("required", []) if n in body.properties)


def _described(converter: Converter, parameter: Parameter) -> Json:
    schema = converter.convert(parameter.schema)
    if parameter.description and isinstance(schema, dict) and "description" not in schema:
        return {**schema, "description": parameter.description}
    return schema


def _output(operation: Operation) -> JsonObject | None:
    """The schema of the answer, where every documented success has the same JSON."""
    document = operation.document
    responses = operation.raw.get("responses")
    schemas: list[Json] = []
    try:
        for status, response in (responses if isinstance(responses, dict) else {}).items():
            if str(status).startswith("2"):
                content = document.follow(response).get("content")
                if not isinstance(content, dict) or not content:
                    return None
                media = [m for kind, m in content.items() if kind_of(str(kind)) == "json"]
                if len(media) != len(content):
                    return None
                schemas.append(document.follow(media[0]).get("schema"))
        if not schemas or any(schema != schemas[0] for schema in schemas):
            return None
        return output_schema(document, schemas[0])
    except BadReference:
        return None


# --- words ----------------------------------------------------------------------------------------


def _name(raw: JsonObject, method: str, path: str) -> str:
    given = text_at(raw, "operationId") or f"{method} {path}"
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", given).strip("_")
    return name or method


def _unique(name: str, taken: dict[str, Operation]) -> str:
    number = 2
    while name in taken:
        name = f"{name.rstrip('0123456789')}{number}"
        number += 1
    return name


def _spoken(operation: Operation) -> str:
    return f"{operation.method.upper()} {operation.path}"


def _description(summary: str, description: str) -> str:
    if not description or description.startswith(summary):
        return description or summary
    return f"{summary.rstrip('.')}. {description}" if summary else description


def _annotations(method: str) -> JsonObject:
    hints: JsonObject = {"readOnlyHint": method in _READS}
    if method not in _READS:
        hints["destructiveHint"] = method == "delete"
        hints["idempotentHint"] = method in ("put", "delete")
    return {**hints, "openWorldHint": True}


def _list(raw: JsonObject, key: str) -> list[Any]:
    value = raw.get(key)
    return value if isinstance(value, list) else []
