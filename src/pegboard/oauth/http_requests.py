"""Requests to authorization servers, with limits on time and size.

They never use the HTTP client of the MCP server, whose headers are not for anybody else. An answer
is external input: at most `MAX_ANSWER_BYTES` of it are read, and what an error quotes of it is
short, has no hidden characters, and contains no secret that was sent.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import anyio
import httpx2

from pegboard.core.json import Json
from pegboard.core.redaction import Redactor
from pegboard.core.sanitization import sanitize_line

MAX_ANSWER_BYTES: Final = 1 << 20
REQUEST_TIMEOUT: Final = 20.0
"""Seconds for one request to an authorization server."""
_MAX_QUOTE_LENGTH = 300


class OAuthError(Exception):
    """A login or a refresh failed; the message says why, and how to fix it."""


class AuthorizationServerUnavailable(OAuthError):
    """The authorization server gave no usable answer: nothing is known about the grant."""


class AuthorizationRefused(OAuthError):
    """The authorization server refused; `error` is its OAuth error code."""

    def __init__(self, message: str, error: str) -> None:
        super().__init__(message)
        self.error = error


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, as far as it matters here."""

    url: str
    status: int
    body: bytes
    challenge: str | None = None
    """Its `WWW-Authenticate` header."""

    def json(self) -> Json:
        """Its value; `None` if it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


@asynccontextmanager
async def open_http() -> AsyncGenerator[httpx2.AsyncClient]:
    """A client for requests to authorization servers."""
    # Redirects are not followed: they could send a code or a secret to another host.
    async with httpx2.AsyncClient(timeout=REQUEST_TIMEOUT, follow_redirects=False) as http:
        yield http


async def send(
    http: httpx2.AsyncClient,
    request: httpx2.Request,
    *,
    with_body: bool = True,
    timeout: float = REQUEST_TIMEOUT,
) -> Answer:
    """The answer to a request; `with_body` is false for one that may never end.

    Raises:
        AuthorizationServerUnavailable: There is no answer in time, or it is too large.
    """
    url, body = str(request.url), bytearray()
    host = request.url.host
    try:
        # The client's own timeout applies to each read: an answer that trickles in would never
        # end, and the lock of a refresh would never be released.
        with anyio.fail_after(timeout):
            response = await http.send(request, stream=True)
            try:
                if with_body:
                    async for part in response.aiter_bytes():
                        body += part
                        if len(body) > MAX_ANSWER_BYTES:
                            message = f"{host} sent an answer that is too long"
                            raise AuthorizationServerUnavailable(message)
            finally:
                await response.aclose()
    except (httpx2.TimeoutException, TimeoutError) as exc:
        message = f"{host} did not answer within {timeout:g} s"
        raise AuthorizationServerUnavailable(message) from exc
    except httpx2.HTTPError as exc:
        reason = quote_text(str(exc)) or type(exc).__name__
        raise AuthorizationServerUnavailable(f"{host} cannot be reached: {reason}") from exc
    challenge = response.headers.get("www-authenticate")
    return Answer(url, response.status_code, bytes(body), challenge)


def check_endpoint(url: str, server_url: str) -> str:
    """The address, if requests may be sent to it.

    Raises:
        OAuthError: It is not HTTPS, although the server itself is.
    """
    allowed = ("https", "http") if urlsplit(server_url).scheme == "http" else ("https",)
    try:
        parts, host = urlsplit(url), httpx2.URL(url).host
        # A port of 99999 would only be noticed by the socket.
        is_usable = parts.scheme in allowed and bool(host) and parts.port != 0
    except (httpx2.InvalidURL, ValueError):
        is_usable = False
    if not is_usable:
        names, shown = " or ".join(allowed), quote_text(url)
        raise OAuthError(f"a URL of the authorization server is not {names}: {shown}")
    return url


def raise_for_refusal(answer: Answer, sent: Mapping[str, str]) -> None:
    """Raise the error that an answer contains.

    Args:
        answer: The answer of a token, registration or revocation endpoint.
        sent: What was sent, some of which is secret and might be quoted.

    Raises:
        AuthorizationRefused: It is an OAuth error.
        AuthorizationServerUnavailable: It is anything else, such as a page of a proxy.
    """
    host = urlsplit(answer.url).hostname
    match answer.json():
        # Only an answer in the form that the protocol prescribes is a refusal. A page of a proxy
        # in between says nothing about the grant, whichever status it has. GitHub refuses with
        # status 200.
        case {"error": str(error), **rest} if answer.status < 500 and answer.status != 429:
            redactor = Redactor(frozenset(value for value in sent.values() if len(value) >= 8))
            code = quote_text(redactor.message(error))
            detail = rest.get("error_description")
            text = f": {quote_text(redactor.message(detail))}" if isinstance(detail, str) else ""
            raise AuthorizationRefused(f"{host} answered {code}{text}", code)
        case _ if not 200 <= answer.status < 300:
            raise AuthorizationServerUnavailable(
                f"{host} answered with HTTP status {answer.status}"
            )
        case _:
            return


def quote_text(text: str) -> str:
    """Text from outside for a message: short, on one line, without hidden characters."""
    return sanitize_line(text, _MAX_QUOTE_LENGTH).rstrip(".")
