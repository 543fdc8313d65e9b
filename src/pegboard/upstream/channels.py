"""Requests that are relayed, and the answers to them, as they are: nothing inside is modelled.

The SDK's dispatcher has all that a session needs: it validates, queues, and starts a task or two
for each message. A relayed request needs less: its JSON goes out and the answer's comes back. So
requests go past it where the wire allows that; what a server sends by itself does not.

Every exchange raises `MCPError`: the server's own error, or `CONNECTION_CLOSED` when no answer can
come any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Protocol

import anyio
import anyio.lowlevel

from pegboard.core.json import Json, JsonObject, whole_number
from pegboard.upstream.client_sdk import (
    CONNECTION_CLOSED,
    CallOptions,
    MCPError,
    RelayDispatcher,
    trace_request,
)
from pegboard.wire.lines import extract_error, serialize_message
from pegboard.wire.message_streams import PIPE_CLOSED_ERRORS, MessageWriter

FIRST_REQUEST_ID: Final = 1_000_000
"""Our requests are numbered from here; the SDK numbers its own, a few per connection, from 1."""
_CANCEL_TIMEOUT: Final = 5.0
"""Seconds for telling a server that nobody waits for its answer any more."""


class RequestChannel(Protocol):
    """A way for requests to a server."""

    async def send(
        self, method: str, params: JsonObject, headers: Mapping[str, str] | None
    ) -> JsonObject:
        """The server's result; `headers` go with it over HTTP. Raises `MCPError`."""
        ...

    def end(self) -> None:
        """Tell whoever waits that no answer will come."""
        ...


class SdkChannel:
    """By the SDK's dispatcher, which ends what is under way itself."""

    def __init__(self, dispatcher: RelayDispatcher) -> None:
        self._dispatcher = dispatcher

    async def send(
        self, method: str, params: JsonObject, headers: Mapping[str, str] | None
    ) -> JsonObject:
        options: CallOptions | None = {"headers": dict(headers)} if headers else None
        return await self._dispatcher.inner.send_raw_request(method, params, options)

    def end(self) -> None: ...


class StdioChannel:
    """Over a pair of pipes: one line out, one line back. The reader hands it its answers."""

    def __init__(self, writer: MessageWriter) -> None:
        self._writer = writer
        self._waiting: dict[int, asyncio.Future[JsonObject | None]] = {}
        self._number = FIRST_REQUEST_ID
        self._is_over = False

    async def send(
        self, method: str, params: JsonObject, headers: Mapping[str, str] | None
    ) -> JsonObject:
        if self._is_over:
            raise connection_closed()
        # A request that was never sent must not be cancelled at the server.
        await anyio.lowlevel.checkpoint_if_cancelled()
        self._number += 1
        number = self._number
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            with trace_request(method, params) as sent:
                await self._write(build_request(number, method, sent))
                return extract_result(await answer)
        except asyncio.CancelledError:
            await self._abandon(number)
            raise
        finally:
            del self._waiting[number]

    def wants(self, message: JsonObject) -> bool:
        """Whether this is the answer to a request of ours."""
        return "method" not in message and _response_id(message) in self._waiting

    def take(self, message: JsonObject) -> None:
        """Give an answer to who waits for it."""
        waiting = self._waiting.get(_response_id(message))
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    async def ended(self) -> None:
        """Tell whoever waits that no answer will come: the server has closed its pipe."""
        self.end()

    def end(self) -> None:
        self._is_over = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(None)

    async def _write(self, message: JsonObject) -> None:
        try:
            await self._writer.write(serialize_message(message) + b"\n")
        except PIPE_CLOSED_ERRORS as exc:
            raise connection_closed() from exc

    async def _abandon(self, number: int) -> None:
        params = {"requestId": number, "reason": "caller cancelled"}
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        with anyio.move_on_after(_CANCEL_TIMEOUT, shield=True), suppress(MCPError):
            await self._write(cancelled)


def build_request(number: int, method: str, params: JsonObject) -> JsonObject:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def extract_result(answer: JsonObject | None) -> JsonObject:
    """The result that an answer brings. Raises `MCPError` when it brings none."""
    if answer is None:
        raise connection_closed()
    result: Json = answer.get("result")
    if isinstance(result, dict):
        return result
    error = extract_error(answer)
    raise MCPError(error.code, error.message, error.data)


def connection_closed(why: str = "Connection closed") -> MCPError:
    """What the SDK says when no answer can come any more."""
    return MCPError(CONNECTION_CLOSED, why)


def _response_id(answer: JsonObject) -> int:
    """The number that an answer names; some servers send it back as a text."""
    number: Json = answer.get("id")
    if isinstance(number, str):
        return whole_number(number) or 0
    return number if isinstance(number, int) else 0
