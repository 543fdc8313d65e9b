"""HTTP answers as results of a tool call.

A success is its content. A refusal (4xx, and 500, which says that the API itself went wrong) is a
result with `isError`, status and body, since the model may mend what it asked for. That the API
cannot be reached (502, 503, 504, no connection, no answer in time) is an error of the upstream,
which breakers count.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from http import HTTPStatus

from pegboard.core.calls import CallResult
from pegboard.core.cleaning import clean
from pegboard.core.json import Json, JsonObject, whole_number
from pegboard.core.redaction import Redactor
from pegboard.errors import UpstreamUnavailable

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


def result_of(
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
    return _content(response, uri)


def _content(response: Response, uri: str) -> CallResult:
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
    text = clean(redactor.message(whole[: 2 * SHOWN_OF_A_REFUSAL]))
    more = len(whole) - SHOWN_OF_A_REFUSAL
    shown = f"{text[:SHOWN_OF_A_REFUSAL]} … ({more} more characters)" if more > 0 else text
    message = f"{asked} was answered with {response.said}."
    if response.location:
        location = clean(redactor.message(response.location[:SHOWN_OF_A_REFUSAL]))
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
