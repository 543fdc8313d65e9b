"""The operations of a document: their parameters, body and URL, and the tool of each.

    path item, operation  ->  Operation(parameters, body)  ->  Tool

Schemas are converted when a tool is first described: most of a large API never is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from pegboard.adapters.openapi.document import (
    ApiDocument,
    BadReference,
    OpenApiSpec,
    SchemaConverter,
    convert_output_schema,
)
from pegboard.core.json import Json, JsonObject
from pegboard.core.tool_parser import normalize_section
from pegboard.core.tools import Risk, Schemas, Tool, derive_summary

Place: TypeAlias = Literal["path", "query", "header", "cookie"]
BodyKind: TypeAlias = Literal["json", "form", "text"]

_PLACES: tuple[Place, ...] = ("path", "query", "header", "cookie")
_NOT_PARAMETERS = {"accept", "content-type", "authorization"}
"""OpenAPI requires that header parameters with these names are ignored."""
_FORBIDDEN_HEADERS = {
    "connection", "content-length", "cookie", "expect", "host", "keep-alive", "te", "trailer",
    "transfer-encoding", "upgrade",
}  # fmt: skip
"""Headers that determine where a request goes, where it ends, or who sends it."""
_FORBIDDEN_PREFIXES = ("proxy-", "sec-")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_PLAIN_OBJECT = {"type", "properties", "required", "additionalProperties", "title", "description"}


class UnsupportedOperation(Exception):
    """Why an operation cannot be a tool."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `argument` is its name for callers, `name` the one of the API."""

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
    """The parameters that a caller sets, path first, each with a unique argument name."""
    raw: dict[tuple[str, str], JsonObject] = {}
    for entry in listed:
        parameter = document.follow(entry)
        # Parameters of the operation come later and replace those of its path.
        raw[str(parameter.get("in")), str(parameter.get("name"))] = parameter
    found: list[Parameter] = []
    used: set[str] = set()
    for place in _PLACES:
        for (where, name), parameter in raw.items():
            if where != place or _is_hidden(spec, place, name):
                continue
            built = _build_parameter(document, parameter, name, place)
            # A path and a query parameter may have the same name, and a tool has one set of
            # arguments.
            if built.argument in used:
                built = replace(built, argument=f"{place}_{built.argument}")
            while built.argument in used:
                built = replace(built, argument=f"{built.argument}_")
            used.add(built.argument)
            found.append(built)
    return tuple(found)


def _build_parameter(document: ApiDocument, raw: JsonObject, name: str, place: Place) -> Parameter:
    style = str(raw.get("style", "form" if place in ("query", "cookie") else "simple"))
    # `matrix` and `label` are not implemented: a wrong spelling would call another resource.
    if style not in ("form", "simple", "spaceDelimited", "pipeDelimited", "deepObject"):
        raise UnsupportedOperation(f"its parameter {name!r} has the style {style!r}")
    schema: Json = raw.get("schema", {})
    content = raw.get("content")
    # `content` in place of `schema`: the parameter is a document of its own, serialized as that
    # type.
    as_json = isinstance(content, dict) and bool(content)
    if isinstance(content, dict) and content:
        media_type, media = next(iter(content.items()))
        if "json" not in str(media_type):
            raise UnsupportedOperation(f"its parameter {name!r} is {media_type}")
        schema = document.follow(media).get("schema", {})
    return Parameter(
        # Model providers accept letters, digits, `_` and `-`, and at most 64 of them.
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
    """Whether callers neither see nor set this parameter: we set it, or nobody may."""
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
    """Whether an API may read a name as one that the configuration sets.

    Frameworks read `Api.Key` and `api_key[]` as `api_key`.
    """
    return _framework_name(name) in {_framework_name(other) for other in configured}


def _framework_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "_", name.partition("[")[0].strip().casefold())


def parse_body(document: ApiDocument, raw: JsonObject, used: set[str]) -> Body | None:
    """The body that a caller sets, in the first media type that we can write."""
    if "requestBody" not in raw:
        return None
    body = document.follow(raw["requestBody"])
    content = body.get("content")
    offered = {str(k): v for k, v in content.items()} if isinstance(content, dict) else {}
    required = body.get("required") is True
    argument = "body" if "body" not in used else "request_body"
    # An API that takes several is sent the type that says the most about its fields.
    preference = ("json", "form", "text", None)
    for media_type in sorted(offered, key=lambda offer: preference.index(body_kind(offer))):
        if kind := body_kind(media_type):
            schema = document.follow(offered[media_type]).get("schema", {})
            properties = _plain_properties(document, schema, used) if kind != "text" else None
            return Body(kind, media_type, schema, required, properties, argument)
    if required:
        raise UnsupportedOperation(f"its body is {', '.join(offered) or 'of no stated type'}")
    return None


def body_kind(media_type: str) -> BodyKind | None:
    """How a body of this media type is written; `None` if we cannot."""
    plain = media_type.partition(";")[0].strip().lower()
    if plain == "application/json" or plain.endswith("+json") or plain == "*/*":
        return "json"
    if plain == "application/x-www-form-urlencoded":
        return "form"
    return "text" if plain.startswith("text/") or plain.endswith("/xml") else None


def _plain_properties(
    document: ApiDocument, schema: Json, used: set[str]
) -> tuple[str, ...] | None:
    """The properties of a body if each can be an argument; `None` if it must stay whole."""
    whole = document.follow(schema) if isinstance(schema, dict) else {}
    properties = whole.get("properties")
    if not isinstance(properties, dict) or whole.get("type", "object") != "object":
        return None
    # Anything that combines or opens the object (`allOf`, `oneOf`, ...) needs the whole body.
    if set(whole) - _PLAIN_OBJECT - {"example", "examples", "xml"} or whole.get(
        "additionalProperties", False
    ):
        return None
    # Read-only properties are set by the API, and may be required in its responses anyway.
    names = [n for n, p in properties.items() if not (isinstance(p, dict) and p.get("readOnly"))]
    legal = all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", str(name)) for name in names)
    return tuple(names) if legal and not used & set(names) else None


def get_text(raw: JsonObject, key: str) -> str:
    """The text under a key; empty if there is none."""
    value = raw.get(key)
    return value.strip() if isinstance(value, str) else ""


METHODS = ("get", "head", "options", "post", "put", "patch", "delete")
_READS = ("get", "head", "options")


@dataclass(frozen=True, slots=True)
class OperationProblem:
    """An operation that was skipped, and why."""

    source: str
    operation: str
    message: str

    def __str__(self) -> str:
        return f"{self.source}: {self.operation}: {self.message}"


@dataclass(frozen=True)
class Operation:
    """One operation, ready to be called; its schemas are converted on first access."""

    name: str
    method: str
    path: str
    base_url: str | None
    parameters: tuple[Parameter, ...]
    body: Body | None
    document: ApiDocument = field(repr=False)
    raw: JsonObject = field(repr=False)

    def definition(self) -> Schemas:
        """Its input and output schemas."""
        return self.schemas

    @cached_property
    def schemas(self) -> Schemas:
        return Schemas(_convert_input(self), _convert_output(self))

    @property
    def request_line(self) -> str:
        """Method and path, for messages and where the document has no description."""
        return f"{self.method.upper()} {self.path}"


def parse_operations(
    document: ApiDocument, spec: OpenApiSpec
) -> tuple[list[Operation], list[OperationProblem]]:
    """The operations that can be tools and pass the filter, and the problems of others."""
    found: dict[str, Operation] = {}
    problems: list[OperationProblem] = []
    for path, item in (document.value.get("paths") or {}).items():
        try:
            item = document.follow(item)
        except BadReference as exc:
            problems.append(OperationProblem(spec.name, str(path), f"it is skipped: {exc}."))
            continue
        for method in METHODS:
            if not isinstance(raw := item.get(method), dict):
                continue
            given = get_text(raw, "operationId") or f"{method} {path}"
            name = re.sub(r"[^A-Za-z0-9_-]+", "_", given).strip("_") or method
            if name in found:  # not unique, or no longer once it is written as a tool's name
                name, number = f"{name}_{method}", 2
                while name in found:
                    name = f"{name.rstrip('0123456789')}{number}"
                    number += 1
            if not spec.shows(name):
                continue
            try:
                found[name] = _build_operation(document, spec, name, method, str(path), item)
            except (BadReference, UnsupportedOperation) as exc:
                message = f"{method.upper()} {path} is skipped: {exc}."
                problems.append(OperationProblem(spec.name, name, message))
    return list(found.values()), problems


def _build_operation(
    document: ApiDocument, spec: OpenApiSpec, name: str, method: str, path: str, item: JsonObject
) -> Operation:
    raw: JsonObject = item[method]
    parameters = parse_parameters(
        document, spec, [*_list(item, "parameters"), *_list(raw, "parameters")]
    )
    described = {p.name for p in parameters if p.place == "path"}
    # A placeholder that nobody fills would be sent as it is, and reach another resource.
    missing = set(re.findall(r"\{([^{}]+)\}", path)) - described
    if missing:
        raise UnsupportedOperation(
            f"no parameter describes {', '.join(sorted(missing))} in its path"
        )
    body = parse_body(document, raw, {p.argument for p in parameters})
    base_url = spec.base_url or document.server_url(raw, item)
    # Now, and not when the schemas are first read: a tool that cannot be described is not listed.
    document.check([p.schema for p in parameters])
    document.check(body.schema if body else None)
    return Operation(name, method, path, base_url, parameters, body, document, raw)


def operation_to_tool(operation: Operation, spec: OpenApiSpec) -> Tool:
    """The tool of an operation."""
    raw, method = operation.raw, operation.method
    tags = tuple(str(tag) for tag in _list(raw, "tags"))
    summary, description = get_text(raw, "summary"), get_text(raw, "description")
    whole = description or summary
    if summary and description and not description.startswith(summary):
        whole = f"{summary.rstrip('.')}. {description}"
    annotations: JsonObject = {"readOnlyHint": method in _READS}
    if method not in _READS:
        annotations["destructiveHint"] = method == "delete"
        annotations["idempotentHint"] = method in ("put", "delete")
    return Tool(
        name=operation.name,
        definition=operation.definition,
        id=f"{spec.name}.{operation.name}",
        server=spec.name,
        category=spec.category or spec.name,
        section=normalize_section(tags[0]) if tags else None,
        summary=derive_summary(summary or description or operation.request_line),
        description=whole or operation.request_line,
        title=summary or None,
        tags=tags,
        deprecated=(
            "The API marks this operation as deprecated." if raw.get("deprecated") else None
        ),
        annotations={**annotations, "openWorldHint": True},
        risk=risk_of_method(method),
        risk_source="annotated",
        timeout=spec.timeout,
    )


def risk_of_method(method: str) -> Risk:
    """The risk of a call of this method, as HTTP defines it."""
    if method in _READS:
        return "read"
    return "destructive" if method == "delete" else "write"


def _convert_input(operation: Operation) -> JsonObject:
    converter = SchemaConverter(operation.document, "input")
    properties: JsonObject = {}
    required: list[str] = []
    for parameter in operation.parameters:
        schema = converter.convert(parameter.schema)
        if parameter.description and isinstance(schema, dict) and "description" not in schema:
            schema = {**schema, "description": parameter.description}
        properties[parameter.argument] = schema
        if parameter.required:
            required.append(parameter.argument)
    body = operation.body
    if body is not None and body.properties is None:
        properties[body.argument] = converter.convert(body.schema)
        required += [body.argument] if body.required else []
    elif body is not None:
        whole = converter.convert(operation.document.follow(body.schema))
        properties.update({name: whole["properties"][name] for name in body.properties or ()})
        if body.required:
            required += [n for n in whole.get("required", []) if n in (body.properties or ())]
    converted: JsonObject = {"type": "object", "properties": properties}
    if required:
        converted["required"] = required
    return converter.with_definitions({**converted, "additionalProperties": False})


def _convert_output(operation: Operation) -> JsonObject | None:
    """The schema of the response, if every documented success has the same JSON."""
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


def _list(raw: JsonObject, key: str) -> list[Any]:
    value = raw.get(key)
    return value if isinstance(value, list) else []
