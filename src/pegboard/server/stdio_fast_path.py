r"""Tool calls on a pipe, which bypass the SDK's dispatcher.

    pipe -> MessageReader -> StdioFastPath   tools/call, once the SDK has served a request
                         \-> dispatcher      everything else, and the first request of all

The dispatcher provides everything that a session may need: queues, and a task or two per message. A
call needs less, and a client makes many of them. What answers a call is the same on both paths: the
server's middleware and handlers, run by the SDK.

The fast path learns from what the SDK serves, as a middleware. It takes a call only if

    - the SDK has accepted a request on this connection with the same envelope (what a modern
      request says about its client), so that every check of the SDK would pass again;
    - nothing that the client sent earlier is still in the dispatcher's queues, so that no call
      overtakes an earlier request or notification.
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
from pegboard.wire.message_streams import (
    PIPE_CLOSED_ERRORS,
    MessageWriter,
    is_request_id,
    serialize_message,
)

_CALL = "tools/call"
_CANCELLED = "notifications/cancelled"
_GOODBYE_SECONDS = 1.0
"""Seconds for notifying the client of a call that will not be answered."""
_DRAIN_SECONDS = 5.0
"""Seconds in which answers that are being written may still reach a client that is leaving."""
_log = logging.getLogger(__name__)


class _Call:
    """One call in flight."""

    __slots__ = ("ended_by", "is_answered", "request", "scope")

    def __init__(self, request: mcp_private.DirectRequest) -> None:
        self.request = request
        self.scope = anyio.CancelScope()
        self.ended_by: Literal["client", "server"] | None = None
        self.is_answered = False

    def end(self, by: Literal["client", "server"]) -> None:
        """Cancel it, unless its answer is being written: half a line would break the protocol."""
        self.ended_by = self.ended_by or by
        self.request.cancel()
        if not self.is_answered:
            self.scope.cancel()


class StdioFastPath:
    """Answers the calls that a client sends on a pipe, each in a task of its own."""

    def __init__(self, server: Server[Any], pipe: ByteSendStream, tasks: TaskGroup) -> None:
        self.writer = MessageWriter(pipe, self._on_written)
        """What the SDK writes to."""
        self._server = server
        self._tasks = tasks
        self._connection: mcp_private.DirectConnection | None = None
        self._calls: dict[RequestId, _Call] = {}
        self._running: set[_Call] = set()
        self._idle = anyio.Event()
        # What the client sent that is still on its way through the dispatcher.
        self._requests_ahead: set[RequestId] = set()
        self._notifications_ahead = 0

    @classmethod
    @asynccontextmanager
    async def beside(cls, server: Server[Any], pipe: ByteSendStream) -> AsyncGenerator[Self]:
        """A fast path next to the dispatcher of a server, for as long as the block runs."""
        async with anyio.create_task_group() as tasks:
            fast_path = cls(server, pipe, tasks)
            server.middleware.insert(0, fast_path)
            try:
                yield fast_path
            finally:
                server.middleware.remove(fast_path)
                tasks.cancel_scope.cancel()

    # What the SDK serves -----------------------------------------------------------------------

    async def __call__(self, ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        """Learn from what passes through the SDK; for `Server.middleware`."""
        if ctx.request_id is None:
            self._notifications_ahead = max(0, self._notifications_ahead - 1)
            return await call_next(ctx)
        self._requests_ahead.discard(_normalize_id(ctx.request_id))
        result = await call_next(ctx)
        envelope = mcp_private.get_envelope(ctx.params or {})
        if self._connection is None or self._connection.envelope != envelope:
            connection = mcp_private.open_direct_connection(self._server, ctx)
            self._connection = connection or self._connection
        return result

    def _on_written(self, item: SessionMessage) -> None:
        """Note that the SDK answers a request: it may have refused it before its middleware ran."""
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._requests_ahead.discard(_normalize_id(item.message.id))

    # What comes from the pipe ------------------------------------------------------------------

    def wants(self, message: JsonObject) -> bool:
        """Whether to take a message: a call, or the cancellation of one that was taken."""
        method, number, params = message.get("method"), message.get("id"), message.get("params")
        if not isinstance(method, str):
            return False
        if isinstance(params, dict):
            if method == _CALL and is_request_id(number) and self._accepts(params):
                return True
            if method == _CANCELLED and _normalize_id(params.get("requestId")) in self._calls:
                return True
        if is_request_id(number):
            self._requests_ahead.add(_normalize_id(number))
        else:
            self._notifications_ahead += 1
        return False

    def _accepts(self, params: JsonObject) -> bool:
        """Whether a call may take the fast path now."""
        if self._connection is None or self._requests_ahead or self._notifications_ahead:
            return False
        return mcp_private.get_envelope(params) == self._connection.envelope

    def take(self, message: JsonObject) -> None:
        """Answer a call, or cancel it."""
        params: JsonObject = message["params"]
        if message["method"] == _CANCELLED:
            self._calls.pop(_normalize_id(params["requestId"])).end("client")
            return
        assert self._connection is not None
        number: RequestId = message["id"]
        call = _Call(self._connection.open_request(_CALL, number, params))
        self._calls[_normalize_id(number)] = call
        self._running.add(call)
        self._tasks.start_soon(self._run, call, number)

    async def on_end(self) -> None:
        """Cancel what is in flight when the client has left.

        Before the SDK learns of it: it would tear down the connection that handlers still use.
        """
        for call in self._running:
            call.end("server")
        with anyio.move_on_after(_DRAIN_SECONDS):
            await self._wait_until_idle()
        for call in self._running:
            call.scope.cancel()
        await self._wait_until_idle()

    async def _wait_until_idle(self) -> None:
        while self._running:
            self._idle = anyio.Event()
            await self._idle.wait()

    # What goes to the pipe ---------------------------------------------------------------------

    async def _run(self, call: _Call, number: RequestId) -> None:
        try:
            with call.scope:
                try:
                    line = _encode_line(number, "result", await call.request.result())
                except Exception as exc:
                    line = _encode_failure(number, exc)
                if call.ended_by is None:  # a handler may catch the cancellation and return anyway
                    await self._write(call, line)
            if call.ended_by == "server":
                await self._say_goodbye(call, number)
        except anyio.get_cancelled_exc_class():
            await self._say_goodbye(call, number)
            raise
        finally:
            self._running.discard(call)
            # A client may use a number again as soon as it has the answer.
            if self._calls.get(_normalize_id(number)) is call:
                del self._calls[_normalize_id(number)]
            if not self._running:
                self._idle.set()

    async def _say_goodbye(self, call: _Call, number: RequestId) -> None:
        """Notify the client that a call will not be answered, unless it canceled the call."""
        if not call.is_answered and call.ended_by != "client":
            # Shielded: this runs while everything around it is being canceled.
            with anyio.move_on_after(_GOODBYE_SECONDS, shield=True):
                line = _encode_error(number, mcp_private.connection_closed())
                await self._write(call, line)

    async def _write(self, call: _Call, line: bytes) -> None:
        call.is_answered = True  # set first: an interrupted write may still have arrived
        with suppress(*PIPE_CLOSED_ERRORS):
            await self.writer.write(line)


def _encode_line(number: RequestId, kind: str, value: JsonObject) -> bytes:
    return serialize_message({"jsonrpc": "2.0", "id": number, kind: value}) + b"\n"


def _encode_error(number: RequestId, error: ErrorData) -> bytes:
    wire = error.model_dump(by_alias=True, mode="json", exclude_none=True)
    return _encode_line(number, "error", wire)


def _encode_failure(number: RequestId, exc: Exception) -> bytes:
    """The error of a call that failed; a bug of ours is logged, and the client gets no details."""
    with suppress(Exception):  # the data of an error may not be JSON
        if (error := mcp_private.to_error_data(exc)) is not None:
            return _encode_error(number, error)
    _log.error("A call failed", exc_info=exc)
    return _encode_error(number, mcp_private.internal_error().error)


def _normalize_id(number: Json) -> RequestId:
    """The key of a request: some clients cancel request 7 as "7"."""
    return coerce_request_id(number) if is_request_id(number) else ""
