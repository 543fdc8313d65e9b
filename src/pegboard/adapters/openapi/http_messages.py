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
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote, urlencode

from pegboard.adapters.openapi.document import OpenApiSpec, strip_credentials
from pegboard.adapters.openapi.operations import Operation, Parameter, is_configured
from pegboard.core.calls import CallResult
from pegboard.core.json import Json, JsonObject, compact, whole_number
from pegboard.core.redaction import Redactor
from pegboard.core.sanitization import sanitize_text
from pegboard.errors import ConfigError, InvalidArguments, UpstreamUnavailable

_DELIMITERS = {"spaceDelimited": " ", "pipeDelimited": "|"}
MAX_ERROR_BODY = 4000
"""Characters of the body of an error response that the model gets."""
_UNAVAILABLE = (502, 503, 504)


# --- requests -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request. The URL may contain credentials and must not be logged."""

    method: str
    url: str = field(repr=False)
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    content: bytes | None = field(default=None, repr=False)


def build_request(operation: Operation, arguments: JsonObject, spec: OpenApiSpec) -> Request:
    """The request of a call.

    Raises:
        InvalidArguments: A required value is missing, or one cannot be written in its place.
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
        argument = parameter.argument
        value = arguments.get(argument)
        if value is None and parameter.required:
            raise InvalidArguments(
                f"{argument!r} is required.", tool=operation.name, field=argument
            )
        if value is None:
            continue
        text = _join_value(parameter, value)
        match parameter.place:
            case "path":
                if text in ("", ".", ".."):  # these would lead to another path
                    raise InvalidArguments(
                        f"{argument!r} cannot be {text!r} in a path.", field=argument
                    )
                escaped = quote(text, safe=",")  # a comma separates the items of a list
                path = path.replace("{" + parameter.name + "}", escaped)
            case "query":
                query.extend(_check_pairs(_query_pairs(parameter, value), argument, spec))
            case "header":
                if not text.isprintable() or not text.isascii():
                    raise InvalidArguments(
                        f"{argument!r} goes into a header: only ASCII text on one line is allowed.",
                        field=argument,
                    )
                headers[parameter.name] = text
            case "cookie":
                cookies[parameter.name] = quote(text, safe="")
    content = _encode_body(operation, arguments, headers, spec)
    # The configuration comes last, so that no argument can replace a credential.
    headers = {"Accept": "application/json, */*;q=0.5", **headers, **spec.headers}
    if cookies := {**cookies, **spec.cookies}:
        headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
    url = operation.base_url.rstrip("/") + "/" + path.lstrip("/")
    encoded = urlencode([*query, *spec.query.items()], quote_via=quote)
    url = f"{url}?{encoded}" if encoded else url
    return Request(operation.method.upper(), url, headers, content)


def credential_problem(operation: Operation, spec: OpenApiSpec) -> str | None:
    """Why the credentials must not be sent to the URL of an operation; `None` if they may."""
    if not spec.has_credentials or spec.trusts(operation.base_url or ""):
        return None
    target = strip_credentials(operation.base_url or "")
    return (
        f"{operation.request_line} goes to {target}, which is not where the document came from. "
        "Set `base_url` for this source to allow it to get the configured credentials."
    )


def _check_pairs(
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


def _query_pairs(parameter: Parameter, value: Json) -> Iterator[tuple[str, str]]:
    name = parameter.name
    if parameter.as_json:
        yield name, compact(value)
    elif isinstance(value, dict) and parameter.style == "deepObject":
        for key, inner in value.items():
            yield f"{name}[{key}]", _to_text(inner)
    elif isinstance(value, dict) and parameter.explode:
        for key, inner in value.items():
            yield str(key), _to_text(inner)
    elif isinstance(value, list) and parameter.explode:
        for inner in value:
            yield name, _to_text(inner)
    else:
        yield name, _join_value(parameter, value)


def _join_value(parameter: Parameter, value: Json) -> str:
    """A value on one line: lists and objects with their delimiter."""
    if parameter.as_json:
        return compact(value)
    delimiter = _DELIMITERS.get(parameter.style, ",")
    if isinstance(value, list):
        return delimiter.join(_to_text(inner) for inner in value)
    if isinstance(value, dict):
        between = "=" if parameter.explode and parameter.place != "query" else delimiter
        return delimiter.join(f"{key}{between}{_to_text(inner)}" for key, inner in value.items())
    return _to_text(value)


def _to_text(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return compact(value)
    return "" if value is None else str(value)


def _encode_body(
    operation: Operation, arguments: JsonObject, headers: dict[str, str], spec: OpenApiSpec
) -> bytes | None:
    """The body as bytes, with its type added to `headers`; `None` if there is nothing to send."""
    body = operation.body
    if body is None:
        return None
    value: Json
    if body.properties is None:
        value = arguments.get(body.argument)
    else:
        given = {name: arguments[name] for name in body.properties if name in arguments}
        value = given if given or body.required else None
    if value is None:
        return None
    headers["Content-Type"] = "application/json" if body.media_type == "*/*" else body.media_type
    if body.kind == "text":
        return _to_text(value).encode()
    if body.kind == "form" and isinstance(value, dict):
        # Some frameworks read form fields and query parameters as one.
        pairs = ((name, _to_text(inner)) for name, inner in value.items())
        return urlencode(list(_check_pairs(pairs, body.argument, spec))).encode()
    return json.dumps(value, ensure_ascii=False).encode()


# --- responses ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response, read to its end."""

    status: int
    media_type: str
    charset: str
    body: bytes = field(repr=False)
    location: str | None = None
    retry_after: str | None = None
    """Seconds or a date, as the header has it."""

    @property
    def text(self) -> str:
        try:
            return self.body.decode(self.charset, errors="replace")
        except LookupError:  # an unknown charset
            return self.body.decode("utf-8", errors="replace")

    @property
    def status_line(self) -> str:
        """The status code and its name."""
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return str(self.status)

    @property
    def retry_seconds(self) -> float | None:
        return None if (seconds := whole_number(self.retry_after)) is None else float(seconds)


def response_to_result(
    response: Response, *, request_line: str, source: str, uri: str, redactor: Redactor
) -> CallResult:
    """The result of a call; `request_line` is for messages, `uri` is the name of a file.

    An error response may repeat what was sent to it, so `redactor` removes the credentials.

    Raises:
        UpstreamUnavailable: The API says that it is unavailable.
    """
    if response.status in _UNAVAILABLE:
        raise UpstreamUnavailable(
            f"{source} is unavailable: {request_line} was answered with {response.status_line}.",
            server=source,
            status=response.status,
            retry_after=response.retry_seconds,
        )
    if not 200 <= response.status < 300:
        return _error_result(response, request_line, source, redactor)
    kind = response.media_type
    if not response.body:
        return CallResult.text(response.status_line)
    if kind.endswith(("/json", "+json")):
        try:
            value = json.loads(response.body)
        except (ValueError, RecursionError):
            return CallResult.text(response.text)
        # Structured content must be an object: other values are wrapped.
        return CallResult.json(value if isinstance(value, dict) else {"result": value})
    if kind.startswith("text/") or kind.endswith(("/xml", "+xml", "/yaml", "/javascript")):
        return CallResult.text(response.text)
    data = base64.b64encode(response.body).decode()
    for block in ("image", "audio"):
        if kind.startswith(f"{block}/"):
            return CallResult({"content": [{"type": block, "data": data, "mimeType": kind}]})
    resource = {"uri": uri, "mimeType": kind or "application/octet-stream", "blob": data}
    return CallResult({"content": [{"type": "resource", "resource": resource}]})


def _error_result(
    response: Response, request_line: str, source: str, redactor: Redactor
) -> CallResult:
    whole = response.text.strip()
    # Redacted before it is cut: half of a credential would not be recognized.
    text = sanitize_text(redactor.message(whole[: 2 * MAX_ERROR_BODY]))
    more = len(whole) - MAX_ERROR_BODY
    shown = f"{text[:MAX_ERROR_BODY]} … ({more} more characters)" if more > 0 else text
    message = f"{request_line} was answered with {response.status_line}."
    if response.location:
        location = sanitize_text(redactor.message(response.location[:MAX_ERROR_BODY]))
        message += f" It points to {location}; redirects are not followed."
    error: JsonObject = {"kind": "upstream_error", "message": message, "status": response.status}
    if response.retry_seconds is not None:
        error["retry_after"] = response.retry_seconds
    body: Json = shown
    with suppress(ValueError):  # as JSON, if it is JSON and was not cut
        body = json.loads(shown) if more <= 0 else shown
    details = {"error": {**error, "server": source, "body": body}}
    return CallResult.text(
        f"{message}\n{shown}" if shown else message, structured=details, is_error=True
    )
