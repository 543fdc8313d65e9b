"""The operations of a document: parameters, body, URL, and the tool that stands for each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from pegboard.adapters.openapi.document import ApiDocument, BadReference, OpenApiSpec
from pegboard.adapters.openapi.schema_conversion import SchemaConverter, convert_output_schema
from pegboard.core.json import Json, JsonObject
from pegboard.core.tool_parser import normalize_section
from pegboard.core.tools import Risk, Schemas, Tool, derive_summary

Place: TypeAlias = Literal["path", "query", "header", "cookie"]
BodyKind: TypeAlias = Literal["json", "form", "text"]

_PLACES: tuple[Place, ...] = ("path", "query", "header", "cookie")
_NOT_PARAMETERS = {"accept", "content-type", "authorization"}
"""Header parameters of these names are to be ignored, says OpenAPI."""
_FORBIDDEN_HEADERS = {
    "connection", "content-length", "cookie", "expect", "host", "keep-alive", "te", "trailer",
    "transfer-encoding", "upgrade",
}  # fmt: skip
"""Headers that decide where a request goes, where it ends, or whose it is."""
_FORBIDDEN_PREFIXES = ("proxy-", "sec-")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_PLAIN_OBJECT = {"type", "properties", "required", "additionalProperties", "title", "description"}


class UnsupportedOperation(Exception):
    """Why an operation cannot be a tool."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `argument` is what a caller calls it, `name` what the API does."""

    argument: str
    name: str
    place: Place
    schema: Json = field(repr=False)
    required: bool = False
    description: str = ""
    style: str = "form"
    explode: bool = True
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """A request body: one argument `body`, or one for each property of a plain object."""

    kind: BodyKind
    media_type: str
    schema: Json = field(repr=False)
    required: bool = False
    properties: tuple[str, ...] | None = None
    argument: str = "body"


def parse_parameters(
    document: ApiDocument, spec: OpenApiSpec, listed: list[Any]
) -> tuple[Parameter, ...]:
    """The parameters that a caller fills in, path first, each with an argument name of its own."""
    raw: dict[tuple[str, str], JsonObject] = {}
    for entry in listed:
        parameter = document.follow(entry)
        # One of the operation itself comes later and replaces one of its path.
        raw[str(parameter.get("in")), str(parameter.get("name"))] = parameter
    found: list[Parameter] = []
    used: set[str] = set()
    for place in _PLACES:
        for (where, name), parameter in raw.items():
            if where != place or _is_hidden(spec, place, name):
                continue
            made = _parameter(document, parameter, name, place)
            if made.argument in used:
                made = replace(made, argument=f"{place}_{made.argument}")
            while made.argument in used:
                made = replace(made, argument=f"{made.argument}_")
            used.add(made.argument)
            found.append(made)
    return tuple(found)


def _parameter(document: ApiDocument, raw: JsonObject, name: str, place: Place) -> Parameter:
    style = str(raw.get("style", "form" if place in ("query", "cookie") else "simple"))
    if style not in ("form", "simple", "spaceDelimited", "pipeDelimited", "deepObject"):
        raise UnsupportedOperation(f"its parameter {name!r} is written in the style {style!r}")
    schema: Json = raw.get("schema", {})
    content = raw.get("content")
    as_json = isinstance(content, dict) and bool(content)
    if isinstance(content, dict) and content:
        media_type, media = next(iter(content.items()))
        if "json" not in str(media_type):
            raise UnsupportedOperation(f"its parameter {name!r} is {media_type}")
        schema = document.follow(media).get("schema", {})
    return Parameter(
        argument=re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:64] or "value",
        name=name,
        place=place,
        schema=schema,
        required=place == "path" or raw.get("required") is True,
        description=get_text(raw, "description"),
        style=style,
        explode=bool(raw.get("explode", style == "form")),
        as_json=as_json,
    )


def _is_hidden(spec: OpenApiSpec, place: Place, name: str) -> bool:
    """Whether callers neither see nor set this parameter: we fill it, or nobody may."""
    if place == "header":
        lower = name.lower()
        return (
            lower in {header.lower() for header in spec.headers} | _NOT_PARAMETERS
            or lower in _FORBIDDEN_HEADERS
            or lower.startswith(_FORBIDDEN_PREFIXES)
            or _TOKEN.fullmatch(name) is None
        )
    if place == "cookie":
        return is_configured(name, spec.cookies) or _TOKEN.fullmatch(name) is None
    return place == "query" and is_configured(name, spec.query)


def is_configured(name: str, configured: Mapping[str, str]) -> bool:
    """Whether an API may take a name for one that the configuration fills.

    Frameworks read `Api.Key` and `api_key[]` as `api_key`.
    """
    return _as_read(name) in {_as_read(other) for other in configured}


def _as_read(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "_", name.partition("[")[0].strip().casefold())


def parse_body(document: ApiDocument, raw: JsonObject, used: set[str]) -> Body | None:
    """The body that a caller fills in, in the first form that we can write."""
    if "requestBody" not in raw:
        return None
    body = document.follow(raw["requestBody"])
    content = body.get("content")
    offered = {str(k): v for k, v in content.items()} if isinstance(content, dict) else {}
    required = body.get("required") is True
    argument = "body" if "body" not in used else "request_body"
    for media_type in sorted(offered, key=_preference):
        if kind := body_kind(media_type):
            schema = document.follow(offered[media_type]).get("schema", {})
            properties = _plain_properties(document, schema, used) if kind != "text" else None
            return Body(kind, media_type, schema, required, properties, argument)
    if required:
        raise UnsupportedOperation(f"its body is {', '.join(offered) or 'of no stated type'}")
    return None


def _preference(media_type: str) -> int:
    kind = body_kind(media_type)
    return ("json", "form", "text", None).index(kind)


def body_kind(media_type: str) -> BodyKind | None:
    """How a body of this media type is written; `None` when it cannot be."""
    plain = media_type.partition(";")[0].strip().lower()
    if plain == "application/json" or plain.endswith("+json") or plain == "*/*":
        return "json"
    if plain == "application/x-www-form-urlencoded":
        return "form"
    return "text" if plain.startswith("text/") or plain.endswith("/xml") else None


def _plain_properties(
    document: ApiDocument, schema: Json, used: set[str]
) -> tuple[str, ...] | None:
    """The properties of a body that can each be an argument; `None` when it has to stay whole."""
    whole = document.follow(schema) if isinstance(schema, dict) else {}
    properties = whole.get("properties")
    if not isinstance(properties, dict) or whole.get("type", "object") != "object":
        return None
    if set(whole) - _PLAIN_OBJECT - {"example", "examples", "xml"} or whole.get(
        "additionalProperties", False
    ):
        return None
    names = [n for n, p in properties.items() if not (isinstance(p, dict) and p.get("readOnly"))]
    legal = all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", str(name)) for name in names)
    return tuple(names) if legal and not used & set(names) else None


def get_text(raw: JsonObject, key: str) -> str:
    """The text under a key; empty where there is none."""
    value = raw.get(key)
    return value.strip() if isinstance(value, str) else ""


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


def parse_operations(
    document: ApiDocument, spec: OpenApiSpec
) -> tuple[list[Operation], list[OperationProblem]]:
    """The operations that can be tools and are to be shown, and why others cannot."""
    found: dict[str, Operation] = {}
    problems: list[OperationProblem] = []
    for method, path, raw, item in _list_operations(document, spec, problems):
        name = _name(raw, method, path)
        if name in found:
            name = _unique(f"{name}_{method}", found)
        if not spec.shows(name):
            continue
        try:
            found[name] = _operation(document, spec, name, method, path, raw, item)
        except (BadReference, UnsupportedOperation) as exc:
            message = f"{method.upper()} {path} is left out: {exc}."
            problems.append(OperationProblem(spec.name, name, message))
    return list(found.values()), problems


def operation_to_tool(operation: Operation, spec: OpenApiSpec) -> Tool:
    """The tool that stands for an operation."""
    raw = operation.raw
    tags = tuple(str(tag) for tag in _list(raw, "tags"))
    summary, description = get_text(raw, "summary"), get_text(raw, "description")
    deprecated = "The API marks this operation as deprecated." if raw.get("deprecated") else None
    return Tool(
        name=operation.name,
        definition=operation.definition,
        id=f"{spec.name}.{operation.name}",
        server=spec.name,
        category=spec.category or spec.name,
        section=normalize_section(tags[0]) if tags else None,
        summary=derive_summary(summary or description or _request_line(operation)),
        description=_description(summary, description) or _request_line(operation),
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


def _list_operations(
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
    parameters = parse_parameters(
        document, spec, [*_list(item, "parameters"), *_list(raw, "parameters")]
    )
    missing = set(re.findall(r"\{([^{}]+)\}", path)) - {
        p.name for p in parameters if p.place == "path"
    }
    if missing:
        raise UnsupportedOperation(
            f"no parameter says what {', '.join(sorted(missing))} in its path is"
        )
    body = parse_body(document, raw, {p.argument for p in parameters})
    base_url = spec.base_url or document.server_url(raw, item)
    document.check([p.schema for p in parameters])
    document.check(body.schema if body else None)
    return Operation(name, method, path, base_url, parameters, body, document, raw)


# --- schemas --------------------------------------------------------------------------------------


def _input(operation: Operation) -> JsonObject:
    converter = SchemaConverter(operation.document, "input")
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
    converter: SchemaConverter,
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


def _described(converter: SchemaConverter, parameter: Parameter) -> Json:
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
                media = [m for kind, m in content.items() if body_kind(str(kind)) == "json"]
                if len(media) != len(content):
                    return None
                schemas.append(document.follow(media[0]).get("schema"))
        if not schemas or any(schema != schemas[0] for schema in schemas):
            return None
        return convert_output_schema(document, schemas[0])
    except BadReference:
        return None


# --- words ----------------------------------------------------------------------------------------


def _name(raw: JsonObject, method: str, path: str) -> str:
    given = get_text(raw, "operationId") or f"{method} {path}"
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", given).strip("_")
    return name or method


def _unique(name: str, taken: dict[str, Operation]) -> str:
    number = 2
    while name in taken:
        name = f"{name.rstrip('0123456789')}{number}"
        number += 1
    return name


def _request_line(operation: Operation) -> str:
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
