r"""The handshake with a server: which era of the protocol it speaks, and what both sides can do.

A modern server (2026-07-28) answers `server/discover`; a legacy one is greeted by `initialize`. The
SDK's `ClientSession` knows both and tries the modern way first. `RelayDispatcher` stands between
that session and the transport and changes three things:

- The server gets the capabilities of the gateway's client; the session only knows our own.
- Servers on old SDKs never answer a request that comes before `initialize`, and the SDK waits ten
  seconds for them. Here a silent server is sent `initialize` as well, and the first answer counts:

      server/discover ──> silence for PROBE_TIMEOUT ──> initialize
            └ result: modern                               └ result: legacy
            └ error: the session falls back to `initialize`, or uses the answer that is here already

  A server that is merely slow to start reads both and answers in order, so the race is safe.
- Messages that the server sends on its own go to an `InboundHandler`, not to the session.

The era is stored with the catalog of a server (`catalog_cache`). A known legacy server is sent
`initialize` at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import anyio
from anyio.abc import TaskStatus
from mcp.shared.dispatcher import (
    CallOptions,
    DispatchContext,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    REQUEST_TIMEOUT,
    UNSUPPORTED_PROTOCOL_VERSION,
    Implementation,
)
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from pegboard.core.calls import Era
from pegboard.core.json import Json, JsonObject
from pegboard.upstream.client_sdk import CLIENT_INFO, ClientSession, MCPError, negotiate_auto

PROBE_TIMEOUT: Final = 1.0
"""Seconds to wait for an answer to `server/discover` before `initialize` is sent too."""


class InboundHandler(Protocol):
    """Receives what a server sends on its own."""

    async def on_request(self, method: str, params: Mapping[str, Json] | None) -> JsonObject: ...

    async def on_notify(self, method: str, params: Mapping[str, Json] | None) -> None: ...


class RelayDispatcher:
    """The dispatcher that a `ClientSession` gets: it negotiates, and passes on incoming messages.

    Only the session uses `send_raw_request` of this class; relayed requests go to `inner` directly.

    Args:
        inner: The SDK's own dispatcher, over the transport's streams.
        inbound: Receives what the server sends on its own.
        capabilities: The client capabilities that the server is given.
        probe_timeout: Seconds of silence until `initialize` is sent beside `server/discover`;
            `None` waits as the SDK does, for transports where each request has its own response.
    """

    def __init__(
        self,
        inner: JSONRPCDispatcher[TransportContext],
        inbound: InboundHandler,
        capabilities: JsonObject,
        *,
        probe_timeout: float | None = None,
    ) -> None:
        self.inner = inner
        self.ended = anyio.Event()
        self.handshake_result: JsonObject = {}
        self._inbound = inbound
        self._capabilities = capabilities
        self._probe_timeout = probe_timeout
        self._early_answer: JsonObject | MCPError | None = None

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if method not in ("initialize", "server/discover"):
            return await self.inner.send_raw_request(method, params, opts)
        declared = dict(params or {})
        if method == "initialize":
            declared["capabilities"] = self._capabilities
        else:
            meta = dict(declared.get("_meta") or {})
            declared["_meta"] = {**meta, CLIENT_CAPABILITIES_META_KEY: self._capabilities}
        if method == "initialize" and self._early_answer is not None:
            # It was sent beside `server/discover` already; a second one would confuse some servers.
            result, self._early_answer = self._early_answer, None
            if isinstance(result, MCPError):
                raise result
        elif method == "server/discover" and self._probe_timeout is not None:
            result = await self._discover(declared, opts, self._probe_timeout)
        else:
            result = await self.inner.send_raw_request(method, declared, opts)
        self.handshake_result = result
        return result

    async def _discover(
        self, params: JsonObject, opts: CallOptions | None, probe_timeout: float
    ) -> JsonObject:
        """The answer to `server/discover`, or an error once `initialize` was answered instead."""
        sent, answered = anyio.Event(), anyio.Event()
        outcome: JsonObject | MCPError | None = None

        async def initialize_if_silent() -> None:
            await anyio.sleep(probe_timeout)
            sent.set()
            declared: JsonObject = {
                "protocolVersion": LATEST_HANDSHAKE_VERSION,
                "capabilities": self._capabilities,
                "clientInfo": CLIENT_INFO,
            }
            try:
                # Abandoning this request must not cancel it at the server: the session is about
                # to use its answer.
                self._early_answer = await self.inner.send_raw_request(
                    "initialize", declared, {"cancel_on_abandon": False}
                )
                tasks.cancel_scope.cancel()
            except MCPError as exc:
                # A modern server refuses it; its answer to `server/discover` is on the way.
                self._early_answer = exc
            answered.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(initialize_if_silent)
            try:
                outcome = await self.inner.send_raw_request("server/discover", params, opts)
            except MCPError as exc:
                outcome = exc
                # The session now sends `initialize`. If one was already sent, its answer must
                # arrive first, or the server would get the request twice.
                if sent.is_set():
                    await answered.wait()
            tasks.cancel_scope.cancel()
        if isinstance(outcome, dict):
            self._early_answer = None
            return outcome
        raise outcome or MCPError(REQUEST_TIMEOUT, "server/discover was not answered")

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        await self.inner.notify(method, params, opts)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        # The session's own handlers are left out: it would answer requests that are the client's.
        async def handle_request(
            context: DispatchContext[TransportContext],
            method: str,
            params: Mapping[str, Any] | None,
        ) -> dict[str, Any]:
            return await self._inbound.on_request(method, params)

        async def handle_notification(
            context: DispatchContext[TransportContext],
            method: str,
            params: Mapping[str, Any] | None,
        ) -> None:
            await self._inbound.on_notify(method, params)

        try:
            await self.inner.run(
                handle_request, handle_notification, on_notify_intercept, task_status=task_status
            )
        finally:
            self.ended.set()


def open_session(dispatcher: RelayDispatcher) -> ClientSession:
    """A session over the dispatcher, to be entered."""
    info = Implementation.model_validate(CLIENT_INFO)
    return ClientSession(dispatcher=dispatcher, client_info=info)


async def negotiate(session: ClientSession, hint: Era | None) -> str:
    """Agree on a protocol version: the modern one where possible.

    Args:
        session: An entered session that has not negotiated yet.
        hint: The server's era, where it is known; a legacy server gets `initialize` at once.

    Raises:
        MCPError: The server refused, or the connection closed.
    """
    try:
        if hint == "legacy":
            await session.initialize()
    except MCPError as exc:
        # The server was upgraded since and speaks only the modern protocol now.
        if exc.code != UNSUPPORTED_PROTOCOL_VERSION:
            raise
    if session.protocol_version is None:
        await negotiate_auto(session)
    return session.protocol_version or ""
