"""How relayed requests reach a server and their answers come back, as raw JSON.

The SDK's dispatcher does everything that a session needs: it validates, queues, and starts a task
or two for each message. A relayed request needs less: its JSON goes out and the answer's comes
back. So requests bypass the dispatcher where the transport allows that; messages that a server
sends on its own do not.

    StdioChannel   one line out, one line back
    HttpChannel    a modern server over HTTP: one POST each, made by the calling task. The answer
                   is the body of the response, or comes last in its event stream, after
                   notifications about this request. Closing the stream cancels the request.
    SdkChannel     everything else, through the SDK's dispatcher

Every channel raises `MCPError`: the server's own error, or `CONNECTION_CLOSED` when no answer can
come any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import Final, Protocol

import anyio
import anyio.lowlevel
import httpx2

from pegboard.core.json import Json, JsonObject, whole_number
from pegboard.upstream.client_sdk import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    CallOptions,
    HttpStatusError,
    MCPError,
    trace_request,
)
from pegboard.upstream.handshake import InboundHandler, RelayDispatcher
from pegboard.wire.message_filters import MessageTooLarge
from pegboard.wire.message_streams import (
    PIPE_CLOSED_ERRORS,
    MessageWriter,
    decode_json,
    extract_error,
    serialize_message,
)

FIRST_REQUEST_ID: Final = 1_000_000
"""Our requests are numbered from here; the SDK numbers its own, a few per connection, from 1."""
_CANCEL_TIMEOUT: Final = 5.0
"""Seconds for telling a server that nobody waits for its answer any more."""
_HEADERS: Final = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}
_log = logging.getLogger(__name__)


class RequestChannel(Protocol):
    """A way for requests to a server."""

    async def send(
        self, method: str, params: JsonObject, headers: Mapping[str, str] | None
    ) -> JsonObject:
        """The server's result; `headers` go with it over HTTP. Raises `MCPError`."""
        ...

    def end(self) -> None:
        """Fail the requests that wait: no answer will come."""
        ...


class SdkChannel:
    """Through the SDK's dispatcher, which fails what waits by itself."""

    def __init__(self, dispatcher: RelayDispatcher) -> None:
        self._dispatcher = dispatcher

    async def send(
        self, method: str, params: JsonObject, headers: Mapping[str, str] | None
    ) -> JsonObject:
        options: CallOptions | None = {"headers": dict(headers)} if headers else None
        return await self._dispatcher.inner.send_raw_request(method, params, options)

    def end(self) -> None: ...


class StdioChannel:
    """Over a pair of pipes.

    It is also the `MessageInterceptor` of the reader, which hands it the answers to its requests.
    """

    def __init__(self, writer: MessageWriter) -> None:
        self._writer = writer
        self._waiting: dict[int, asyncio.Future[JsonObject | None]] = {}
        self._last_number = FIRST_REQUEST_ID
        self._has_ended = False

    async def send(
        self, method: str, params: JsonObject, headers: Mapping[str, str] | None
    ) -> JsonObject:
        if self._has_ended:
            raise build_closed_error()
        # A request that was never sent must not be canceled at the server.
        await anyio.lowlevel.checkpoint_if_cancelled()
        self._last_number += 1
        number = self._last_number
        # A future, not an anyio event and a variable: this is the hottest path of a stdio gateway.
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            with trace_request(method, params) as traced:
                await self._write(build_jsonrpc_request(number, method, traced))
                return extract_result(await answer)
        except asyncio.CancelledError:
            # The caller gave up or ran out of time. The server is notified, even in a scope that
            # is canceled, so that it does not go on working for nobody.
            reason = {"requestId": number, "reason": "caller cancelled"}
            message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": reason}
            with anyio.move_on_after(_CANCEL_TIMEOUT, shield=True), suppress(MCPError):
                await self._write(message)
            raise
        finally:
            del self._waiting[number]

    def wants(self, message: JsonObject) -> bool:
        """Whether this is the answer to a request of ours."""
        return "method" not in message and _response_id(message) in self._waiting

    def take(self, message: JsonObject) -> None:
        """Give an answer to the request that waits for it."""
        answer = self._waiting.get(_response_id(message))
        if answer is not None and not answer.done():
            answer.set_result(message)

    async def on_end(self) -> None:
        """The server has closed its pipe."""
        self.end()

    def end(self) -> None:
        self._has_ended = True
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(None)

    async def _write(self, message: JsonObject) -> None:
        try:
            await self._writer.write(serialize_message(message) + b"\n")
        except PIPE_CLOSED_ERRORS as exc:
            raise build_closed_error() from exc


@dataclass(frozen=True, slots=True)
class HttpEndpoint:
    """Where a server's messages are posted to."""

    url: str
    client: httpx2.AsyncClient
    max_event_size: int | None = None

    def disable_cookies(self) -> None:
        """Store no cookies from now on: one person's would be sent with another's request."""
        self.client.cookies.clear()
        self.client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))


class HttpChannel:
    """By one POST for each request, to a modern server.

    Args:
        endpoint: Where to.
        inbound: Receives the notifications that come before an answer.
        redirected: Sends a request that the server redirects: the SDK has rules for redirects.
    """

    def __init__(
        self, endpoint: HttpEndpoint, inbound: InboundHandler, redirected: RequestChannel
    ) -> None:
        self._url = httpx2.URL(endpoint.url)
        self._client = endpoint.client
        self._max_event_size = endpoint.max_event_size
        self._inbound = inbound
        self._redirected = redirected
        self._last_number = FIRST_REQUEST_ID
        self._waiting: set[anyio.CancelScope] = set()

    async def send(
        self, method: str, params: JsonObject, headers: Mapping[str, str] | None
    ) -> JsonObject:
        """The server's result.

        Raises:
            MCPError: The server's own error, or there is no answer.
            httpx2.HTTPError: The server cannot be reached.
        """
        # A scope for each request, so that `end` can fail those that wait for a response.
        with anyio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                with trace_request(method, params) as traced:
                    answer = await self._post(method, traced, headers)
            finally:
                self._waiting.discard(scope)
            if answer is None:
                return await self._redirected.send(method, params, headers)
            return extract_result(answer)
        # Only `end` leads here.
        raise build_closed_error()

    def end(self) -> None:
        for scope in self._waiting:
            scope.cancel()

    async def _post(
        self, method: str, params: JsonObject, headers: Mapping[str, str] | None
    ) -> JsonObject | None:
        """The answer, an object with a result or an error; `None` when the server redirects."""
        self._last_number += 1
        request = self._client.build_request(
            "POST",
            self._url,
            content=serialize_message(build_jsonrpc_request(self._last_number, method, params)),
            headers={**_HEADERS, **(headers or {})},
        )
        response = await self._client.send(request, stream=True, follow_redirects=False)
        try:
            if response.has_redirect_location:
                return None  # a server that redirects has not looked at the request
            status = response.status_code
            kind = response.headers.get("content-type", "").lower()
            if status >= 400:
                return _parse_error_response(response, await response.aread())
            if status == 202:  # for notifications only: no answer would ever come
                raise MCPError(INVALID_REQUEST, "server answered a request with 202 Accepted")
            if kind.startswith("application/json"):
                return _parse_object(await response.aread())
            if kind.startswith("text/event-stream"):
                return await self._read_events(response)
            raise MCPError(INVALID_REQUEST, f"Unexpected content type: {kind}")
        except MessageTooLarge as exc:
            raise MCPError(PARSE_ERROR, str(exc)) from exc
        finally:
            await response.aclose()

    async def _read_events(self, response: httpx2.Response) -> JsonObject:
        """The answer at the end of an event stream; notifications before it are passed on."""
        try:
            async for event in httpx2.EventSource(response, max_event_size=self._max_event_size):
                if event.event != "message" or not event.data:
                    continue
                message = _parse_object(event.data)
                if "method" not in message:
                    return message
                if "id" in message:
                    continue  # a request, which a modern server does not send
                try:
                    await self._inbound.on_notify(str(message["method"]), message.get("params"))
                except Exception:  # a failed notification must not fail the request
                    _log.exception("the notification %r could not be passed on", message["method"])
        except httpx2.SSEError as exc:
            raise build_closed_error(f"SSE stream failed: {exc}") from exc
        except httpx2.HTTPError as exc:
            _log.debug("an event stream broke", exc_info=exc)
        raise build_closed_error("SSE stream ended without a response")


def build_jsonrpc_request(number: int, method: str, params: JsonObject) -> JsonObject:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def extract_result(answer: JsonObject | None) -> JsonObject:
    """The result of an answer. Raises `MCPError` when it has none."""
    if answer is None:
        raise build_closed_error()
    result: Json = answer.get("result")
    if isinstance(result, dict):
        return result
    error = extract_error(answer)
    raise MCPError(error.code, error.message, error.data)


def build_closed_error(message: str = "Connection closed") -> MCPError:
    """The SDK's error for a request that will not be answered any more."""
    return MCPError(CONNECTION_CLOSED, message)


def _response_id(answer: JsonObject) -> int:
    """The number of the request that an answer is for; 0 for none of ours."""
    number: Json = answer.get("id")
    if isinstance(number, str):  # some servers send it back as a text
        return whole_number(number) or 0
    return number if isinstance(number, int) else 0


def _parse_object(text: bytes | str) -> JsonObject:
    try:
        value = decode_json(text)
    except ValueError as exc:
        raise MCPError(PARSE_ERROR, f"Failed to parse JSON response: {exc}") from exc
    if isinstance(value, dict):
        return value
    raise MCPError(PARSE_ERROR, "Failed to parse JSON response: it is not an object")


def _parse_error_response(response: httpx2.Response, body: bytes) -> JsonObject:
    """The JSON-RPC error in a response with a status of 400 or more.

    Raises:
        MCPError: There is none; the message explains the status.
    """
    status, challenge = response.status_code, response.headers.get("www-authenticate")
    if status == 401 or (status == 403 and challenge):
        # It is about the credential of this request, also where the body is a JSON-RPC error.
        raise HttpStatusError(status, challenge)
    try:
        value: Json = decode_json(body)
    except ValueError:
        value = None
    if isinstance(value, dict) and isinstance(value.get("error"), dict):
        return {"error": value["error"]}
    if status == 404:
        raise MCPError(METHOD_NOT_FOUND, "Not Found")
    raise HttpStatusError(status)
