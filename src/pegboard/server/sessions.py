"""Legacy HTTP sessions among replicas: a session lives in the process that opened it.

The SDK cannot move one. So each replica leaves a note in the shared store of the sessions that it
opened, and a request for a session of another replica is refused with a word about why, instead of
as if the session had never been. Only whoever opened the session is told.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from pegboard.core.json import Json
from pegboard.errors import StoreError
from pegboard.ports import Store

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

NOTE_TTL = 6 * 3600.0
_HEADER = b"mcp-session-id"
_MOST_OWN = 100_000
_LONGEST = 128
ELSEWHERE = (
    "This session is held by another replica. Route requests of one `Mcp-Session-Id` to one "
    'replica, set `legacy = "stateless"` under [http], or use a client of MCP 2026-07-28.'
)


class SessionNotes:
    """ASGI middleware that notes sessions opened here and knows those opened elsewhere."""

    def __init__(self, app: ASGIApp, store: Store, replica: str) -> None:
        self._app = app
        self._store = store
        self._replica = replica
        self._own: OrderedDict[str, None] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        principal = _principal(scope)
        session = _text(dict(scope["headers"]).get(_HEADER))
        if session is not None and session not in self._own:
            note = await self._note(session)
            if note and note["replica"] != self._replica and note["principal"] == principal:
                await _refuse(scope, receive, send)
                return

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                opened = _text(dict(message.get("headers") or ()).get(_HEADER))
                if opened is not None and opened not in self._own:
                    await self._opened(opened, principal)
            await send(message)

        await self._app(scope, receive, noting)

    async def _note(self, session: str) -> Json:
        try:
            return await self._store.get(f"owner/{session}")
        except StoreError:
            return None

    async def _opened(self, session: str, principal: str) -> None:
        self._own[session] = None
        if len(self._own) > _MOST_OWN:
            self._own.popitem(last=False)
        note = {"replica": self._replica, "principal": principal}
        try:
            await self._store.update(f"owner/{session}", lambda kept: note, ttl=NOTE_TTL)
        except StoreError:
            return  # then others say that they do not know it


def _principal(scope: Scope) -> str:
    token = getattr(scope.get("user"), "access_token", None)
    return "" if token is None else str(token.subject or token.client_id)


def _text(value: bytes | None) -> str | None:
    """A session id as the SDK makes them; anything else is not looked up."""
    if value is None or len(value) > _LONGEST or not value.isalnum():
        return None
    return value.decode("ascii")


async def _refuse(scope: Any, receive: Any, send: Any) -> None:
    from starlette.responses import JSONResponse

    error = {"code": -32600, "message": ELSEWHERE}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    await JSONResponse(body, status_code=404)(scope, receive, send)
