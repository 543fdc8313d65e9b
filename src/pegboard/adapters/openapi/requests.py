"""Arguments of a call as an HTTP request: each value in its place, written as the document says.

Values come from a model. None of them can leave its place: in a path everything but letters, digits
and a few marks is escaped and `.` and `..` are refused, headers take no line breaks, and what the
configuration sends in every request cannot be overwritten or sent a second time. What it sends goes
to the configured address or to where the document came from, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from pegboard.adapters.openapi.arguments import Body, Parameter, is_configured
from pegboard.adapters.openapi.operations import Operation
from pegboard.adapters.openapi.spec import OpenApiSpec, public
from pegboard.core.json import Json, JsonObject, compact
from pegboard.errors import ConfigError, InvalidArguments

_DELIMITERS = {"spaceDelimited": " ", "pipeDelimited": "|"}


@dataclass(frozen=True, slots=True)
class Request:
    """What goes out. The address may carry credentials and is not for logs."""

    method: str
    url: str = field(repr=False)
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    content: bytes | None = field(default=None, repr=False)


def request_of(operation: Operation, arguments: JsonObject, spec: OpenApiSpec) -> Request:
    """The request that a call stands for.

    Raises:
        InvalidArguments: A value cannot be written where it belongs.
        ConfigError: Neither the document nor the configuration says where the API is.
    """
    if not operation.base_url or not operation.base_url.startswith(("http://", "https://")):
        raise ConfigError(
            f"{spec.name}: the document does not say where the API is "
            f"({public(operation.base_url or '')!r}). Set `base_url` for this source.",
            source=spec.name,
        )
    if reason := untrusted(operation, spec):
        raise ConfigError(f"{spec.name}: {reason}", source=spec.name)
    path = operation.path
    query: list[tuple[str, str]] = []
    headers: dict[str, str] = {}
    cookies: dict[str, str] = {}
    for parameter in operation.parameters:
        value = arguments.get(parameter.argument)
        if value is None:
            _require(parameter, operation)
            continue
        match parameter.place:
            case "path":
                path = path.replace("{" + parameter.name + "}", _in_path(parameter, value))
            case "query":
                query.extend(_checked(_in_query(parameter, value), parameter.argument, spec))
            case "header":
                headers[parameter.name] = _in_header(parameter, value)
            case "cookie":
                cookies[parameter.name] = quote(_joined(parameter, value), safe="")
    content = _content(operation, arguments, headers, spec)
    headers = {"Accept": "application/json, */*;q=0.5", **headers, **spec.headers}
    if cookies := {**cookies, **spec.cookies}:
        headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
    url = operation.base_url.rstrip("/") + "/" + path.lstrip("/")
    text = urlencode([*query, *spec.query.items()], quote_via=quote)
    return Request(operation.method.upper(), f"{url}?{text}" if text else url, headers, content)


def untrusted(operation: Operation, spec: OpenApiSpec) -> str | None:
    """Why the credentials of a source must not go where an operation goes; `None` if they may."""
    if not spec.has_credentials or spec.trusts(operation.base_url or ""):
        return None
    return (
        f"{operation.method.upper()} {operation.path} goes to {public(operation.base_url or '')}, "
        f"which is not where the document came from. Set `base_url` for this source to allow it to "
        f"have the configured credentials."
    )


def _checked(
    pairs: Iterable[tuple[str, str]], argument: str, spec: OpenApiSpec
) -> Iterator[tuple[str, str]]:
    """The pairs, unless one has a name that the configuration sends itself."""
    for name, value in pairs:
        if is_configured(name, spec.query):
            raise InvalidArguments(
                f"{argument!r} cannot set {name!r}: the configuration of {spec.name} sends it.",
                field=argument,
            )
        yield name, value


def _require(parameter: Parameter, operation: Operation) -> None:
    if parameter.required:
        raise InvalidArguments(
            f"{parameter.argument!r} is required.", tool=operation.name, field=parameter.argument
        )


def _in_path(parameter: Parameter, value: Json) -> str:
    text = _joined(parameter, value)
    if text in ("", ".", ".."):
        raise InvalidArguments(
            f"{parameter.argument!r} cannot be {text!r} in a path.", field=parameter.argument
        )
    return quote(text, safe=",")


def _in_header(parameter: Parameter, value: Json) -> str:
    text = _joined(parameter, value)
    if not text.isprintable() or not text.isascii():
        raise InvalidArguments(
            f"{parameter.argument!r} goes into a header, where only plain text on one line fits.",
            field=parameter.argument,
        )
    return text


def _in_query(parameter: Parameter, value: Json) -> Iterator[tuple[str, str]]:
    name = parameter.name
    if parameter.as_json:
        yield name, compact(value)
    elif isinstance(value, dict) and parameter.style == "deepObject":
        for key, inner in value.items():
            yield f"{name}[{key}]", _plain(inner)
    elif isinstance(value, dict) and parameter.explode:
        for key, inner in value.items():
            yield str(key), _plain(inner)
    elif isinstance(value, list) and parameter.explode:
        for inner in value:
            yield name, _plain(inner)
    else:
        yield name, _joined(parameter, value)


def _joined(parameter: Parameter, value: Json) -> str:
    """A value on one line: lists and objects with their delimiter."""
    if parameter.as_json:
        return compact(value)
    delimiter = _DELIMITERS.get(parameter.style, ",")
    if isinstance(value, list):
        return delimiter.join(_plain(inner) for inner in value)
    if isinstance(value, dict):
        between = "=" if parameter.explode and parameter.place != "query" else delimiter
        return delimiter.join(f"{key}{between}{_plain(inner)}" for key, inner in value.items())
    return _plain(value)


def _plain(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return compact(value)
    return "" if value is None else str(value)


def _content(
    operation: Operation, arguments: JsonObject, headers: dict[str, str], spec: OpenApiSpec
) -> bytes | None:
    body = operation.body
    if body is None:
        return None
    value = _body_value(body, arguments)
    if value is None:
        return None
    headers["Content-Type"] = "application/json" if body.media_type == "*/*" else body.media_type
    if body.kind == "text":
        return _plain(value).encode()
    if body.kind == "form" and isinstance(value, dict):
        # Some frameworks read forms and queries as one.
        pairs = ((name, _plain(inner)) for name, inner in value.items())
        return urlencode(list(_checked(pairs, body.argument, spec))).encode()
    return json.dumps(value, ensure_ascii=False).encode()


def _body_value(body: Body, arguments: JsonObject) -> Json:
    """The body as a value; `None` when nothing is to be sent."""
    if body.properties is None:
        return arguments.get(body.argument)
    given = {name: arguments[name] for name in body.properties if name in arguments}
    return given if given or body.required else None
