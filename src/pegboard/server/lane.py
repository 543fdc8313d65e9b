r"""Calls of tools on a pipe, past the SDK's dispatcher.

    pipe -> MessageReader -> lane        tools/call, once the SDK has served a request
                         \-> dispatcher  everything else, and the first request of all

The dispatcher has all that a session needs: queues, a task and a scope for each message. A call
needs less, and a client makes many. What answers it is the same: the server's middleware and
handlers, run by the SDK.

The lane learns from the requests that the SDK serves, as a middleware, and takes only what the SDK
has accepted before: calls on a connection that is open, with the same envelope.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import Server
from mcp.shared.dispatcher import coerce_request_id
from mcp_types import ErrorData, RequestId

from pegboard.core.json import Json, JsonObject
from pegboard.server import sdk
from pegboard.upstream.lines import written
from pegboard.upstream.messages import GONE, MessageWriter

_CALL = "tools/call"
_CANCELLED = "notifications/cancelled"
_GOODBYE = 1.0
"""Seconds for telling the client of calls that are not answered any more."""
_log = logging.getLogger(__name__)


class CallLane:
    """Answers the calls that a client sends on a pipe, each in a task of its own."""

    def __init__(self, server: Server[Any], writer: MessageWriter) -> None:
        self._server = server
        self._writer = writer
        self._served: sdk.Served | None = None
        self._calls: dict[RequestId, anyio.CancelScope] = {}

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        self._server.middleware.insert(0, self)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self._server.middleware.remove(self)
        self._tasks.cancel_scope.cancel()
        return await self._tasks.__aexit__(exc_type, exc, traceback)

    async def __call__(self, ctx: sdk.Context, call_next: CallNext) -> HandlerResult:
        """Learn from a request on its way through the SDK; for `Server.middleware`."""
        result = await call_next(ctx)
        is_new = self._served is None or self._served.envelope != sdk.envelope_of(ctx.params or {})
        if is_new and ctx.request_id is not None and sdk.is_open(ctx):
            self._served = sdk.Served(self._server, ctx)
        return result

    def wants(self, value: Json) -> bool:
        """Whether this is a call, or the end of one that was taken."""
        if not isinstance(value, dict) or self._served is None:
            return False
        params = value.get("params")
        if not isinstance(params, dict):
            return False
        if value.get("method") == _CALL:
            return _is_id(value.get("id")) and sdk.envelope_of(params) == self._served.envelope
        return value.get("method") == _CANCELLED and _key(params.get("requestId")) in self._calls

    def take(self, message: JsonObject) -> None:
        """Answer a call, or give it up."""
        params: JsonObject = message["params"]
        if message["method"] == _CANCELLED:
            self._calls.pop(_key(params["requestId"])).cancel()
            return
        scope = self._calls[_key(message["id"])] = anyio.CancelScope()
        self._tasks.start_soon(self._run, scope, message["id"], params)

    async def _run(self, scope: anyio.CancelScope, number: RequestId, params: JsonObject) -> None:
        def is_awaited() -> bool:
            """Whether the client still waits, and not for another call of the same number."""
            return self._calls.get(_key(number)) is scope

        try:
            with scope:
                await self._answer(number, params)
        except anyio.get_cancelled_exc_class():
            if is_awaited():  # it is not the client who gave it up: serving ends
                with anyio.move_on_after(_GOODBYE, shield=True):
                    await self._write_error(number, sdk.connection_closed())
            raise
        finally:
            if is_awaited():
                del self._calls[_key(number)]

    async def _answer(self, number: RequestId, params: JsonObject) -> None:
        assert self._served is not None
        try:
            result = await self._served.result(_CALL, number, params)
        except Exception as exc:
            error = sdk.error_of(exc)
            if error is None:
                _log.exception("A call failed")
            await self._write_error(number, error or sdk.internal_error().error)
        else:
            await self._write(number, "result", result)

    async def _write_error(self, number: RequestId, error: ErrorData) -> None:
        told = error.model_dump(by_alias=True, mode="json", exclude_none=True)
        await self._write(number, "error", told)

    async def _write(self, number: RequestId, kind: str, value: JsonObject) -> None:
        with suppress(*GONE):
            await self._writer.write(written({"jsonrpc": "2.0", "id": number, kind: value}) + b"\n")


def _is_id(value: Json) -> bool:
    return isinstance(value, (int, str)) and not isinstance(value, bool)


def _key(number: Json) -> RequestId:
    """By what a call is found again: a client may send its number back as a text."""
    return coerce_request_id(number) if _is_id(number) else ""
