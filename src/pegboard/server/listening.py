"""Serving HTTP until told to stop: an address that is taken is said plainly, and streams are ended.

A page that is open and a client that waits for news each hold a response that never ends by itself.
When the server stops, those that were only ever meant to last (`GET`) are ended at once, and those
that may still carry an answer a little later. Whoever listens sees a stream that is complete.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import anyio
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pegboard.errors import ConfigError
from pegboard.server.connections import (
    ACCEPTED_AT_ONCE,
    WAITING_CLIENTS,
    ConnectionLimits,
    protocol_of,
)

GRACE = 1.0
"""Seconds that answers under way are given when the server stops."""
_LAST_RESORT = 3
"""Seconds after which uvicorn ends by force what is still there, and complains of it."""


class Streams:
    """An application whose event streams can be ended from outside."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._lasting: set[anyio.CancelScope] = set()
        self._answering: set[anyio.CancelScope] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and see it through when it is ended."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        kind = self._lasting if scope["method"] == "GET" else self._answering
        with anyio.CancelScope() as whole:

            async def sent(message: Message) -> None:
                if _begins_stream(message):
                    kind.add(whole)
                await send(message)

            try:
                await self._app(scope, receive, sent)
            finally:
                kind.discard(whole)
        if whole.cancel_called:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def end_lasting(self) -> None:
        """End the streams that carry no answer."""
        _cancel(self._lasting)

    def end(self) -> None:
        """End all streams."""
        _cancel(self._lasting | self._answering)


def _cancel(scopes: set[anyio.CancelScope]) -> None:
    for scope in tuple(scopes):
        scope.cancel()


def _begins_stream(message: Message) -> bool:
    if message["type"] != "http.response.start":
        return False
    kinds = [value for name, value in message.get("headers", ()) if name.lower() == b"content-type"]
    return any(kind.startswith(b"text/event-stream") for kind in kinds)


class HttpServer(uvicorn.Server):
    """Ends the streams of its application when it stops."""

    def __init__(
        self, app: ASGIApp, *, keep_alive: int = 5, limits: ConnectionLimits | None = None
    ) -> None:
        self._streams = Streams(app)
        super().__init__(
            uvicorn.Config(
                self._streams,
                http=protocol_of(limits or ConnectionLimits()),
                backlog=ACCEPTED_AT_ONCE,
                log_level="warning",
                timeout_keep_alive=keep_alive,
                timeout_graceful_shutdown=_LAST_RESORT,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and let many clients wait to be accepted."""
        await super().startup(sockets)
        for one in sockets or ():
            with suppress(OSError):
                one.listen(WAITING_CLIENTS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more requests, end what does not end by itself, and then the application."""
        self._streams.end_lasting()
        later = asyncio.get_running_loop().call_later(GRACE, self._streams.end)
        await super().shutdown(sockets)
        later.cancel()


def bound(host: str, port: int) -> list[socket.socket]:
    """Sockets that have the address to themselves and do not listen yet.

    Raises:
        ConfigError: There is no such address here, or somebody else has it.
    """
    made: list[socket.socket] = []
    try:
        kinds = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in dict.fromkeys(kinds):
            made.append(_bound(socket.socket(family, kind, protocol), address))
    except OSError as exc:
        for one in made:
            one.close()
        raise ConfigError(
            f"Cannot listen on {host}:{port}: {exc.strerror or exc}. Choose another address, or "
            f"end what listens there."
        ) from exc
    return made


def _bound(made: socket.socket, address: object) -> socket.socket:
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if made.family == socket.AF_INET6:
        with suppress(OSError):
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        made.bind(address)  # pyright: ignore[reportArgumentType] as `getaddrinfo` gives it
    except OSError:
        made.close()
        raise
    return made
