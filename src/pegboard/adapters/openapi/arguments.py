"""What an operation takes: its parameters and its body, as arguments of a tool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from pegboard.adapters.openapi.document import ApiDocument
from pegboard.adapters.openapi.spec import OpenApiSpec
from pegboard.core.json import Json, JsonObject

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


class Unusable(Exception):
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


def parameters_of(
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
            if where != place or _is_ours(spec, place, name):
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
        raise Unusable(f"its parameter {name!r} is written in the style {style!r}")
    schema: Json = raw.get("schema", {})
    content = raw.get("content")
    as_json = isinstance(content, dict) and bool(content)
    if isinstance(content, dict) and content:
        media_type, media = next(iter(content.items()))
        if "json" not in str(media_type):
            raise Unusable(f"its parameter {name!r} is {media_type}")
        schema = document.follow(media).get("schema", {})
    return Parameter(
        argument=re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:64] or "value",
        name=name,
        place=place,
        schema=schema,
        required=place == "path" or raw.get("required") is True,
        description=text_at(raw, "description"),
        style=style,
        explode=bool(raw.get("explode", style == "form")),
        as_json=as_json,
    )


def _is_ours(spec: OpenApiSpec, place: Place, name: str) -> bool:
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


def body_of(document: ApiDocument, raw: JsonObject, used: set[str]) -> Body | None:
    """The body that a caller fills in, in the first form that we can write."""
    if "requestBody" not in raw:
        return None
    body = document.follow(raw["requestBody"])
    content = body.get("content")
    offered = {str(k): v for k, v in content.items()} if isinstance(content, dict) else {}
    required = body.get("required") is True
    argument = "body" if "body" not in used else "request_body"
    for media_type in sorted(offered, key=_preference):
        if kind := kind_of(media_type):
            schema = document.follow(offered[media_type]).get("schema", {})
            properties = _plain_properties(document, schema, used) if kind != "text" else None
            return Body(kind, media_type, schema, required, properties, argument)
    if required:
        raise Unusable(f"its body is {', '.join(offered) or 'of no stated type'}")
    return None


def _preference(media_type: str) -> int:
    kind = kind_of(media_type)
    return ("json", "form", "text", None).index(kind)


def kind_of(media_type: str) -> BodyKind | None:
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


def text_at(raw: JsonObject, key: str) -> str:
    """The text under a key; empty where there is none."""
    value = raw.get(key)
    return value.strip() if isinstance(value, str) else ""
