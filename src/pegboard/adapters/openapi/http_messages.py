"""A call as an HTTP request, and the HTTP response as the result of the call.

Argument values come from a model, and none of them can leave its place: in a path everything but
letters, digits and a few marks is escaped and `.` and `..` are rejected, headers take no line
breaks, and what the configuration sends in every request cannot be overwritten or sent twice.
Credentials go to the configured address or to where the document came from, and nowhere else.

A success is its content. A refusal (4xx, and 500, which says that the API itself failed) is a
result with `isError`, status and body, since the model may fix its request. That the API cannot be
reached (502, 503, 504, no connection, no answer in time) is an error of the upstream, which
circuit breakers count.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote, urlencode

from pegboard.adapters.openapi.document import OpenApiSpec, strip_credentials
from pegboard.adapters.openapi.operations import Body, Operation, Parameter, is_configured
from pegboard.core.calls import CallResult
from pegboard.core.json import Json, JsonObject, compact, whole_number
from pegboard.core.redaction import Redactor
from pegboard.core.sanitization import sanitize_text
from pegboard.errors import ConfigError, InvalidArguments, UpstreamUnavailable

_DELIMITERS = {"spaceDelimited": " ", "pipeDelimited": "|"}


@dataclass(frozen=True, slots=True)
class Request:
    """What goes out. The address may carry credentials and is not for logs."""

    method: str
    url: str = field(repr=False)
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    content: bytes | None = field(default=None, repr=False)


def build_request(operation: Operation, arguments: JsonObject, spec: OpenApiSpec) -> Request:
    """The request that a call stands for.

    Raises:
        InvalidArguments: A value cannot be written where it belongs.
        ConfigError: Neither the document nor the configuration says where the API is.
    """
    if not operation.base_url or not operation.base_url.startswith(("http://", "https://")):
        raise ConfigError(
            f"{spec.name}: the document does not say where the API is "
            f"({strip_credentials(operation.base_url or '')!r}). Set `base_url` for this source.",
            source=spec.name,
        )
    if reason := credential_problem(operation, spec):
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
    content = _encode_body(operation, arguments, headers, spec)
    headers = {"Accept": "application/json, */*;q=0.5", **headers, **spec.headers}
    if cookies := {**cookies, **spec.cookies}:
        headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
    url = operation.base_url.rstrip("/") + "/" + path.lstrip("/")
    text = urlencode([*query, *spec.query.items()], quote_via=quote)
    return Request(operation.method.upper(), f"{url}?{text}" if text else url, headers, content)


def credential_problem(operation: Operation, spec: OpenApiSpec) -> str | None:
    """Why the credentials of a source must not go where an operation goes; `None` if they may."""
    if not spec.has_credentials or spec.trusts(operation.base_url or ""):
        return None
    target = strip_credentials(operation.base_url or "")
    return (
        f"{operation.method.upper()} {operation.path} goes to {target}, "
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


def _encode_body(
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


SHOWN_OF_A_REFUSAL = 4000
_UNAVAILABLE = (502, 503, 504)


@dataclass(frozen=True, slots=True)
class Response:
    """What came back, read to its end."""

    status: int
    media_type: str
    charset: str
    body: bytes = field(repr=False)
    location: str | None = None
    retry_after: str | None = None
    """Seconds, or a date, as the header says it."""

    @property
    def text(self) -> str:
        try:
            return self.body.decode(self.charset, errors="replace")
        except LookupError:
            return self.body.decode("utf-8", errors="replace")

    @property
    def said(self) -> str:
        """Status and what it is called."""
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return str(self.status)


def response_to_result(
    response: Response, *, asked: str, source: str, uri: str, redactor: Redactor
) -> CallResult:
    """The result of a call; `asked` is the request in words, `uri` names a file that came back.

    A refusal may repeat what was sent to it, so `redactor` removes the credentials.

    Raises:
        UpstreamUnavailable: The API says that it is not there.
    """
    if response.status in _UNAVAILABLE:
        raise UpstreamUnavailable(
            f"{source} is not available: {asked} was answered with {response.said}.",
            server=source,
            status=response.status,
            retry_after=_seconds(response.retry_after),
        )
    if not 200 <= response.status < 300:
        return _refusal(response, asked, source, redactor)
    if not response.body:
        return CallResult.text(response.said)
    return _success_result(response, uri)


def _success_result(response: Response, uri: str) -> CallResult:
    kind = response.media_type
    if kind.endswith(("/json", "+json")):
        try:
            return CallResult.json(_object(json.loads(response.body)))
        except (ValueError, RecursionError):
            return CallResult.text(response.text)
    if kind.startswith("text/") or kind.endswith(("/xml", "+xml", "/yaml", "/javascript")):
        return CallResult.text(response.text)
    data = base64.b64encode(response.body).decode()
    for block in ("image", "audio"):
        if kind.startswith(f"{block}/"):
            return CallResult({"content": [{"type": block, "data": data, "mimeType": kind}]})
    resource = {"uri": uri, "mimeType": kind or "application/octet-stream", "blob": data}
    return CallResult({"content": [{"type": "resource", "resource": resource}]})


def _object(value: Json) -> JsonObject:
    """Structured content is an object; everything else travels inside one."""
    return value if isinstance(value, dict) else {"result": value}


def _refusal(response: Response, asked: str, source: str, redactor: Redactor) -> CallResult:
    whole = response.text.strip()
    text = sanitize_text(redactor.message(whole[: 2 * SHOWN_OF_A_REFUSAL]))
    more = len(whole) - SHOWN_OF_A_REFUSAL
    shown = f"{text[:SHOWN_OF_A_REFUSAL]} … ({more} more characters)" if more > 0 else text
    message = f"{asked} was answered with {response.said}."
    if response.location:
        location = sanitize_text(redactor.message(response.location[:SHOWN_OF_A_REFUSAL]))
        message += f" It points to {location}; redirects are not followed."
    error: JsonObject = {"kind": "upstream_error", "message": message, "status": response.status}
    if (retry_after := _seconds(response.retry_after)) is not None:
        error["retry_after"] = retry_after
    details = {"error": {**error, "server": source, "body": _body(shown, more)}}
    said = f"{message}\n{shown}" if shown else message
    return CallResult.text(said, structured=details, is_error=True)


def _body(shown: str, more: int) -> Json:
    """The refusal's body as the JSON it is, where it is whole and JSON."""
    try:
        return json.loads(shown) if more <= 0 else shown
    except ValueError:
        return shown


def _seconds(header: str | None) -> float | None:
    return None if (seconds := whole_number(header)) is None else float(seconds)
