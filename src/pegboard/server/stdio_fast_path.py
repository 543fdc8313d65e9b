r"""Calls of tools on a pipe, past the SDK's dispatcher.

    pipe -> MessageReader -> lane        tools/call, once the SDK has served a request
                         \-> dispatcher  everything else, and the first request of all

The dispatcher has all that a session needs: queues, a task or two for each message. A call needs
less, and a client makes many. What answers it is the same: the server's middleware and handlers,
run by the SDK.

The lane learns from what the SDK serves, as a middleware. It takes a call only where the SDK has
accepted one like it, on the same connection and with the same envelope, and where nothing that the
client sent before is still on its way through the dispatcher: no call overtakes a notification.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal, Self

import anyio
from anyio.abc import ByteSendStream, TaskGroup
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import Server
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCResponse, RequestId

from pegboard.core.json import Json, JsonObject
from pegboard.server import mcp_private
from pegboard.wire.message_streams import PIPE_CLOSED_ERRORS, MessageWriter, serialize_message

_CALL = "tools/call"
_CANCELLED = "notifications/cancelled"
_GOODBYE_SECONDS = 1.0
"""Seconds for telling the client of a call that is not answered any more."""
_DRAIN_SECONDS = 5.0
"""Seconds for a client that has left to read the answers that are being written."""
_log = logging.getLogger(__name__)


class _Call:
    """One call under way."""

    __slots__ = ("asked", "ended_by", "is_answered", "scope")

    def __init__(self, asked: mcp_private.DirectRequest) -> None:
        self.asked = asked
        self.scope = anyio.CancelScope()
        self.ended_by: Literal["client", "server"] | None = None
        self.is_answered = False

    def end(self, by: Literal["client", "server"]) -> None:
        """Give it up, unless its answer is being written: half a line would be none."""
        self.ended_by = self.ended_by or by
        self.asked.give_up()
        if not self.is_answered:
            self.scope.cancel()


class StdioFastPath:
    """Answers the calls that a client sends on a pipe, each in a task of its own."""

    def __init__(self, server: Server[Any], pipe: ByteSendStream, tasks: TaskGroup) -> None:
        self.writer = MessageWriter(pipe, self._answered)
        """What the SDK is to write to."""
        self._server = server
        self._tasks = tasks
        self._served: mcp_private.DirectConnection | None = None
        self._calls: dict[RequestId, _Call] = {}
        self._running: set[_Call] = set()
        self._idle = anyio.Event()
        self._requests_ahead: set[RequestId] = set()
        self._notifications_ahead = 0

    @classmethod
    @asynccontextmanager
    async def beside(cls, server: Server[Any], pipe: ByteSendStream) -> AsyncGenerator[Self]:
        """A lane beside the dispatcher of a server, for as long as the block runs."""
        async with anyio.create_task_group() as tasks:
            lane = cls(server, pipe, tasks)
            server.middleware.insert(0, lane)
            try:
                yield lane
            finally:
                server.middleware.remove(lane)
                tasks.cancel_scope.cancel()

    # What the SDK serves -----------------------------------------------------------------------

    async def __call__(self, ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        """Learn from what passes the SDK; for `Server.middleware`."""
        if ctx.request_id is None:
            self._notifications_ahead = max(0, self._notifications_ahead - 1)
            return await call_next(ctx)
        self._requests_ahead.discard(_normalize_id(ctx.request_id))
        result = await call_next(ctx)
        if self._served is None or self._served.envelope != mcp_private.get_envelope(
            ctx.params or {}
        ):
            self._served = mcp_private.open_direct_connection(self._server, ctx) or self._served
        return result

    def _answered(self, item: SessionMessage) -> None:
        """The SDK answers a request, which it may have refused before anybody could see it."""
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._requests_ahead.discard(_normalize_id(item.message.id))

    # What comes from the pipe ------------------------------------------------------------------

    def wants(self, message: JsonObject) -> bool:
        """Whether this is a call for the lane, or the end of one; what is not goes elsewhere."""
        method, number, params = message.get("method"), message.get("id"), message.get("params")
        if method == _CANCELLED and isinstance(params, dict) and _is_id(params.get("requestId")):
            if _normalize_id(params["requestId"]) in self._calls:
                return True
        elif method == _CALL and _is_id(number) and isinstance(params, dict):
            served = self._served
            is_free = not self._requests_ahead and not self._notifications_ahead
            if (
                served is not None
                and is_free
                and mcp_private.get_envelope(params) == served.envelope
            ):
                return True
        if isinstance(method, str):
            self._note_ahead(number)
        return False

    def _note_ahead(self, number: Json) -> None:
        if _is_id(number):
            self._requests_ahead.add(_normalize_id(number))
        else:
            self._notifications_ahead += 1

    def take(self, message: JsonObject) -> None:
        """Answer a call, or give it up."""
        params: JsonObject = message["params"]
        if message["method"] == _CANCELLED:
            self._calls.pop(_normalize_id(params["requestId"])).end("client")
            return
        assert self._served is not None
        number: RequestId = message["id"]
        call = self._calls[_normalize_id(number)] = _Call(self._served.asked(_CALL, number, params))
        self._running.add(call)
        self._tasks.start_soon(self._run, call, number)

    async def on_end(self) -> None:
        """Give up what is under way, before the SDK lets go of what it needs: the client left."""
        for call in self._running:
            call.end("server")
        with anyio.move_on_after(_DRAIN_SECONDS):
            await self._finished()
        for call in self._running:
            call.scope.cancel()
        await self._finished()

    async def _finished(self) -> None:
        while self._running:
            self._idle = anyio.Event()
            await self._idle.wait()

    # What goes to it ---------------------------------------------------------------------------

    async def _run(self, call: _Call, number: RequestId) -> None:
        try:
            with call.scope:
                await self._answer(call, number)
            if call.ended_by == "server":
                await self._say_goodbye(call, number)
        except anyio.get_cancelled_exc_class():
            await self._say_goodbye(call, number)
            raise
        finally:
            self._running.discard(call)
            if self._calls.get(_normalize_id(number)) is call:
                del self._calls[_normalize_id(number)]
            if not self._running:
                self._idle.set()

    async def _answer(self, call: _Call, number: RequestId) -> None:
        try:
            line = _encode_line(number, "result", await call.asked.result())
        except Exception as exc:
            line = _encode_failure(number, exc)
        if call.ended_by is None:  # a handler may end in its own way though it was given up
            await self._write(call, line)

    async def _say_goodbye(self, call: _Call, number: RequestId) -> None:
        if not call.is_answered and call.ended_by != "client":
            with anyio.move_on_after(_GOODBYE_SECONDS, shield=True):
                await self._write(call, _error_line(number, mcp_private.connection_closed()))

    async def _write(self, call: _Call, line: bytes) -> None:
        call.is_answered = True  # a write that is interrupted may have arrived
        with suppress(*PIPE_CLOSED_ERRORS):
            await self.writer.write(line)


def _encode_line(number: RequestId, kind: str, value: JsonObject) -> bytes:
    return serialize_message({"jsonrpc": "2.0", "id": number, kind: value}) + b"\n"


def _error_line(number: RequestId, error: ErrorData) -> bytes:
    return _encode_line(
        number, "error", error.model_dump(by_alias=True, mode="json", exclude_none=True)
    )


def _encode_failure(number: RequestId, exc: Exception) -> bytes:
    """What a client is told of a call that failed; nothing, where that is nobody's business."""
    with suppress(Exception):  # an error may hold what cannot be written
        if (error := mcp_private.to_error_data(exc)) is not None:
            return _error_line(number, error)
    _log.error("A call failed", exc_info=exc)
    return _error_line(number, mcp_private.internal_error().error)


def _is_id(value: Json) -> bool:
    return isinstance(value, (int, str)) and not isinstance(value, bool)


def _normalize_id(number: Json) -> RequestId:
    """By what a request is found again: a client may send its number back as a text."""
    return coerce_request_id(number) if _is_id(number) else ""
