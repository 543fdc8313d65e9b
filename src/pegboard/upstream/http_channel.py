"""Requests to a modern server over HTTP: each is one POST, made by whoever asks.

2026-07-28 keeps nothing between requests, so nothing has to stand between them either: the answer
is the response's body, or comes last in its event stream, after notifications that are about this
request. Leaving the stream is how a request is cancelled.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import Final

import anyio
import httpx2

from pegboard.core.json import Json, JsonObject
from pegboard.upstream.channels import (
    FIRST_REQUEST_ID,
    RequestChannel,
    build_request,
    connection_closed,
    extract_result,
)
from pegboard.upstream.client_sdk import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    InboundHandler,
    MCPError,
    build_http_error,
    trace_request,
)
from pegboard.wire.lines import parse_json, serialize_message
from pegboard.wire.response_filters import MessageTooLarge

_HEADERS: Final = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HttpEndpoint:
    """Where a server is posted to."""

    url: str
    client: httpx2.AsyncClient
    max_event_size: int | None = None

    def refuse_cookies(self) -> None:
        """Keep no cookies from now on: one person's would be sent with the next one's request."""
        self.client.cookies.clear()
        self.client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))


class HttpChannel:
    """By one POST each; `otherwise` follows redirects, of which there are rules."""

    def __init__(
        self, endpoint: HttpEndpoint, inbox: InboundHandler, otherwise: RequestChannel
    ) -> None:
        self._url = httpx2.URL(endpoint.url)
        self._client = endpoint.client
        self._max_event_size = endpoint.max_event_size
        self._inbox = inbox
        self._otherwise = otherwise
        self._number = FIRST_REQUEST_ID
        self._under_way: set[anyio.CancelScope] = set()

    async def send(
        self, method: str, params: JsonObject, headers: Mapping[str, str] | None
    ) -> JsonObject:
        """The server's result.

        Raises:
            MCPError: its own error, or there is no answer.
            httpx2.HTTPError: the server cannot be reached.
        """
        with anyio.CancelScope() as scope:
            self._under_way.add(scope)
            try:
                with trace_request(method, params) as sent:
                    answer = await self._post(method, sent, headers)
            finally:
                self._under_way.discard(scope)
            if answer is None:
                return await self._otherwise.send(method, params, headers)
            return extract_result(answer)
        raise connection_closed()

    def end(self) -> None:
        for scope in self._under_way:
            scope.cancel()

    async def _post(
        self, method: str, params: JsonObject, headers: Mapping[str, str] | None
    ) -> JsonObject | None:
        """The answer, an object with a result or an error; `None` when it is to be had elsewhere.

        A server that points elsewhere has not looked at the request.
        """
        self._number += 1
        made = self._client.build_request(
            "POST",
            self._url,
            content=serialize_message(build_request(self._number, method, params)),
            headers={**_HEADERS, **(headers or {})},
        )
        response = await self._client.send(made, stream=True, follow_redirects=False)
        try:
            return None if response.has_redirect_location else await self._answer(response)
        except MessageTooLarge as exc:
            raise MCPError(PARSE_ERROR, str(exc)) from exc
        finally:
            await response.aclose()

    async def _answer(self, response: httpx2.Response) -> JsonObject:
        status = response.status_code
        kind = response.headers.get("content-type", "").lower()
        if status >= 400:
            return _parse_error_response(status, await response.aread())
        if status == 202:
            raise MCPError(INVALID_REQUEST, "server answered a request with 202 Accepted")
        if kind.startswith("application/json"):
            return _parse_object(await response.aread())
        if kind.startswith("text/event-stream"):
            return await self._last_event(response)
        raise MCPError(INVALID_REQUEST, f"Unexpected content type: {kind}")

    async def _last_event(self, response: httpx2.Response) -> JsonObject:
        try:
            async for event in httpx2.EventSource(response, max_event_size=self._max_event_size):
                if event.event == "message" and event.data:
                    value = _parse_object(event.data)
                    if "method" not in value:
                        return value
                    await self._tell(value)
        except httpx2.SSEError as exc:
            raise connection_closed(f"SSE stream failed: {exc}") from exc
        except httpx2.HTTPError as exc:
            _log.debug("an event stream broke", exc_info=exc)
        raise connection_closed("SSE stream ended without a response")

    async def _tell(self, message: JsonObject) -> None:
        """Pass a notification on; a modern server sends no requests."""
        if "id" in message:
            return
        try:
            await self._inbox.on_notify(str(message["method"]), message.get("params"))
        except Exception:  # what becomes of the news is no matter of the request
            _log.exception("the notification %r could not be passed on", message["method"])


def _parse_object(text: bytes | str) -> JsonObject:
    try:
        value = parse_json(text)
    except ValueError as exc:
        raise MCPError(PARSE_ERROR, f"Failed to parse JSON response: {exc}") from exc
    if isinstance(value, dict):
        return value
    raise MCPError(PARSE_ERROR, "Failed to parse JSON response: it is no object")


def _parse_error_response(status: int, body: bytes) -> JsonObject:
    """The error that came with a status of 400 or more, or what the status says."""
    try:
        value: Json = parse_json(body)
    except ValueError:
        value = None
    if isinstance(value, dict) and isinstance(value.get("error"), dict):
        return {"error": value["error"]}
    if status == 404:
        raise MCPError(METHOD_NOT_FOUND, "Not Found")
    raise build_http_error()
