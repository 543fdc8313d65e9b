"""Receives the redirect of a browser on this machine (RFC 8252, section 7.3).

A tiny HTTP server on a loopback address, for as long as a login takes. It answers one path and
passes the address on; whether it belongs to the login is checked by the login itself.
"""

from __future__ import annotations

import html
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream

from pegboard.oauth.http_requests import OAuthError
from pegboard.oauth.login_options import REDIRECT_PATH

Receive: TypeAlias = Callable[[str], Awaitable[None]]
"""Takes the address of a redirect; raises `OAuthError` when it is refused."""

_LOOPBACK: Final = "127.0.0.1"
_MAX_HEAD: Final = 16_384
_HEAD_TIMEOUT: Final = 10.0
_PAGE_TIMEOUT: Final = 2.0
"""Seconds for sending the last page to the browser."""
_PAGE: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Pegboard</title>
<style>body{{font:16px/1.5 system-ui;margin:15vh auto;max-width:32em;padding:0 1em}}</style>
<h1>{title}</h1><p>{text}</p></html>"""


class RedirectListener:
    """Where redirects arrive: the address, and the sockets that listen there."""

    def __init__(self, redirect_uri: str, path: str) -> None:
        self.redirect_uri = redirect_uri
        self._path = path
        self.receive: Receive | None = None
        """Takes redirects; set once the login has begun."""
        self._answering = 0
        self._idle = anyio.Event()

    async def wait_until_idle(self) -> None:
        """Return when no request is being answered."""
        while self._answering:
            await self._idle.wait()

    async def handle(self, stream: SocketStream) -> None:
        """Answer one request of a browser."""
        async with stream:
            # A connection that has sent nothing, as browsers open in advance, is not waited for.
            head = b""
            with anyio.move_on_after(_HEAD_TIMEOUT):
                try:
                    while b"\r\n\r\n" not in head and len(head) < _MAX_HEAD:
                        head += await stream.receive()
                    await self._reply(stream, head)
                except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return  # browsers open connections that they do not use

    async def _reply(self, stream: SocketStream, head: bytes) -> None:
        self._answering += 1
        try:
            await stream.send(_build_response(*await self._answer(head)))
        finally:
            self._answering -= 1
            self._idle.set()
            self._idle = anyio.Event()

    async def _answer(self, head: bytes) -> tuple[str, str, str]:
        method, _, rest = head.decode("latin-1").partition(" ")
        target = rest.partition(" ")[0]
        # Not parsed as a URL: any web page can have a browser request `//[`, which is not a valid
        # one.
        if method != "GET" or target.partition("?")[0] != self._path:
            return "404 Not Found", "Not found", "There is nothing here."
        if self.receive is None:
            return "400 Bad Request", "Not signed in", "No login is in progress."
        try:
            # Shielded from the time limit of the connection: a code can be redeemed only once.
            with anyio.CancelScope(shield=True):
                await self.receive(target)
        except OAuthError as exc:
            return "400 Bad Request", "Not signed in", str(exc)
        return "200 OK", "Signed in", "You can close this window."


def _build_response(status: str, title: str, text: str) -> bytes:
    body = _PAGE.format(title=html.escape(title), text=html.escape(text)).encode()
    head = (
        f"HTTP/1.1 {status}",
        "Content-Type: text/html; charset=utf-8",
        f"Content-Length: {len(body)}",
        # The address in the browser holds a code: it is not stored, nor sent on as a referrer.
        "Cache-Control: no-store",
        "Referrer-Policy: no-referrer",
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'",
        "Connection: close",
    )
    return "\r\n".join((*head, "", "")).encode("latin-1") + body


@asynccontextmanager
async def listen_for_redirect(
    configured: str | None, preferred: str | None = None
) -> AsyncGenerator[RedirectListener]:
    """Listen for a redirect on this machine.

    Args:
        configured: The redirect address that must be used, if there is one.
        preferred: The address of an earlier login, whose registration is valid only for it.

    Raises:
        OAuthError: The configured address cannot be listened on.
    """
    wanted = configured or preferred
    parts = urlsplit(wanted or f"http://{_LOOPBACK}{REDIRECT_PATH}")
    is_local = parts.hostname in (_LOOPBACK, "localhost", "::1") and parts.scheme == "http"
    if not is_local:
        if configured:
            raise OAuthError(
                f"the `redirect` address {configured} is not on this machine: it must start with "
                f"http://127.0.0.1 or http://localhost"
            )
        parts = urlsplit(f"http://{_LOOPBACK}{REDIRECT_PATH}")
    host = parts.hostname or _LOOPBACK
    try:
        listener = await anyio.create_tcp_listener(local_host=host, local_port=parts.port or 0)
    except OSError as exc:
        if configured:
            raise OAuthError(
                f"port {parts.port} of the `redirect` address is in use by another program: stop "
                f"that program, or register another port"
            ) from exc
        listener = await anyio.create_tcp_listener(local_host=host, local_port=0)
    port = listener.extra(SocketAttribute.local_port)
    path = parts.path or "/"
    shown = f"[{host}]" if ":" in host else host
    redirects = RedirectListener(f"http://{shown}:{port}{path}", path)
    failure: Exception | None = None
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, redirects.handle)
        try:
            yield redirects
        except Exception as exc:  # raised below, where the task group does not wrap it
            failure = exc
        # The login may be over before its page has been sent.
        with anyio.move_on_after(_PAGE_TIMEOUT):
            await redirects.wait_until_idle()
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
