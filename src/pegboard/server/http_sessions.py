"""Which HTTP requests and legacy sessions a process admits, before anything is parsed or retained.

A session of the older protocol is retained until its client ends it or is silent for half an hour,
together with the client's info and capabilities. So a request that opens one is small, counts
against the caller's rate limit, and replaces the caller's least recently used session when there
are too many. Requests of any kind have a bounded number of values: parsing runs on the event loop,
and many empty lists take far longer than one long text of the same size.

Among replicas, a session lives in the process that opened it, because the SDK cannot move one. Each
replica records the sessions that it opened in the shared store, and a request for a session of
another replica is refused with the reason, instead of as if the session had never existed. Only the
principal who opened the session gets that reason.
"""

from __future__ import annotations

import json
import re
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pegboard.core import defaults
from pegboard.core.caches import BoundedCache
from pegboard.core.json import Json
from pegboard.errors import Busy, StoreError
from pegboard.ports import Store

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


MAX_OPENING_BYTES = 64 * 1024
"""Size of a request that opens a session; client info and capabilities take a few hundred bytes."""
MAX_VALUES = 250_000
"""Values in one request."""
MAX_BYTES = 4 * 1024 * 1024
"""The SDK refuses larger requests."""
_SESSION_HEADER = b"mcp-session-id"
_VERSION_HEADER = b"mcp-protocol-version"
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)

Admit: TypeAlias = Callable[["Scope"], Awaitable[None]]
"""Raises `Busy` where the caller has exceeded a rate limit."""


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How many sessions may be open."""

    in_all: int = defaults.MAX_SESSIONS
    per_principal: int = defaults.MAX_SESSIONS_PER_PRINCIPAL


@dataclass(slots=True)
class _Session:
    principal: str
    in_flight: int = 0


class OpenSessions:
    """The sessions that this process holds, least recently used first."""

    def __init__(self, limits: SessionLimits) -> None:
        self._limits = limits
        self._open: OrderedDict[str, _Session] = OrderedDict()
        self._opening: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, session: str) -> None:
        """Count a request of a session as in flight."""
        if session in self._open:
            self._open.move_to_end(session)
            self._open[session].in_flight += 1

    def end(self, session: str) -> None:
        """Count a request of a session as answered."""
        if session in self._open:
            self._open[session].in_flight -= 1

    def forget(self, session: str) -> None:
        self._open.pop(session, None)

    def reserve(self, principal: str, exists: Callable[[str], bool]) -> str | None:
        """Reserve a place for a session; returns one that has to end for it, if any.

        Raises:
            Busy: There are too many, and all of them are in use.
        """
        # Without authentication everybody is the same principal: only the total limit applies.
        most = self._limits.per_principal if principal else self._limits.in_all
        held = Counter(one.principal for one in self._open.values()) + self._opening
        replaced = None
        if held[principal] >= most or held.total() >= self._limits.in_all:
            for session in [one for one in self._open if not exists(one)]:
                self.forget(session)  # the SDK has ended it after a timeout
            held = Counter(one.principal for one in self._open.values()) + self._opening
        if held[principal] >= most:
            replaced = self._evict_idle(principal)
        elif held.total() >= self._limits.in_all:
            # The principal with the most sessions loses one, so that nobody can lock others out.
            largest, count = held.most_common(1)[0]
            replaced = self._evict_idle(largest if count > held[principal] else principal)
        self._opening[principal] += 1
        return replaced

    def _evict_idle(self, principal: str) -> str:
        for session, one in self._open.items():
            if one.principal == principal and not one.in_flight:
                self.forget(session)
                return session
        raise Busy("Too many sessions are open: end one, or try again later.", retry_after=30.0)

    def opened(self, principal: str, session: str | None) -> None:
        """Turn a reserved place into an open session, or release it when none was opened."""
        self._opening[principal] -= 1
        if session is not None:
            self._open[session] = _Session(principal)


class Admission:
    """ASGI middleware that bounds requests and sessions of the protocol.

    Args:
        app: The application behind it.
        sessions: The open sessions; `None` if legacy clients get none.
        exists: Whether the SDK still has a session.
        end_session: Ends a session.
        legacy: Versions of the protocol that have sessions, as in the header.
        admit: The caller's rate limit.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        sessions: OpenSessions | None,
        exists: Callable[[str], bool],
        end_session: Callable[[str], Awaitable[None]],
        legacy: Sequence[str],
        admit: Admit | None = None,
    ) -> None:
        self._app = app
        self._sessions = sessions
        self._exists = exists
        self._end_session = end_session
        self._legacy = frozenset(version.encode() for version in legacy)
        self._admit = admit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_protocol(scope):
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        session = headers.get(_SESSION_HEADER, b"").decode("latin-1")
        is_legacy = headers.get(_VERSION_HEADER) is None or headers[_VERSION_HEADER] in self._legacy
        is_opening = scope["method"] == "POST" and not session and is_legacy
        bounded = is_opening and self._sessions is not None
        if scope["method"] == "POST":
            messages, body = await read_body(receive, MAX_OPENING_BYTES if bounded else MAX_BYTES)
            if (problem := _find_problem(body, opens=bounded)) is not None:
                await _refuse(send, 413, problem)
                return
            receive = replay_messages(messages, receive)
        sessions = self._sessions
        if sessions is None:
            await self._app(scope, receive, send)
            return
        if is_opening:
            await self._open(sessions, scope, receive, send)
            return
        sessions.begin(session)
        try:
            await self._app(scope, receive, send)
        finally:
            sessions.end(session)
            if scope["method"] == "DELETE" and not self._exists(session):
                sessions.forget(session)

    async def _open(
        self, sessions: OpenSessions, scope: Scope, receive: Receive, send: Send
    ) -> None:
        principal = principal_from_scope(scope)
        try:
            if self._admit is not None:
                await self._admit(scope)
            replaced = sessions.reserve(principal, self._exists)
        except Busy as exc:
            await _refuse(send, 429, exc.message, exc.details.get("retry_after"))
            return
        opened: str | None = None

        async def send_and_watch(message: Message) -> None:
            nonlocal opened
            if message["type"] == "http.response.start" and message["status"] < 400:
                header = dict(message.get("headers") or ()).get(_SESSION_HEADER, b"")
                opened = header.decode("latin-1") or None
            await send(message)

        try:
            if replaced is not None:
                await self._end_session(replaced)
            await self._app(scope, receive, send_and_watch)
        finally:
            sessions.opened(principal, opened)


def principal_from_scope(scope: Scope) -> str:
    """The principal of a request; empty without authentication."""
    token = getattr(scope.get("user"), "access_token", None)
    return "" if token is None else str(token.subject or token.client_id)


def _is_protocol(scope: Scope) -> bool:
    """Whether a request is for the protocol, and authenticated where that is required."""
    path: str = scope["path"]
    if path != "/mcp" and not path.startswith("/mcp/"):
        return False
    user = scope.get("user")
    return user is None or user.is_authenticated  # otherwise refused before its body is read


async def read_body(receive: Receive, most: int) -> tuple[list[Message], bytes]:
    """The messages of a body, up to its end or just past the limit, and their content."""
    messages: list[Message] = []
    size = 0
    while True:
        message = await receive()
        messages.append(message)
        if message["type"] != "http.request":
            break
        size += len(message.get("body", b""))
        if size > most or not message.get("more_body", False):
            break
    return messages, b"".join(message.get("body", b"") for message in messages)


def replay_messages(messages: list[Message], receive: Receive) -> Receive:
    waiting = iter(messages)

    async def replay() -> Message:
        message = next(waiting, None)
        return message if message is not None else await receive()

    return replay


def _find_problem(body: bytes, *, opens: bool) -> str | None:
    """Which limit a request exceeds, if any."""
    if opens and len(body) > MAX_OPENING_BYTES:
        return f"A request that opens a session may have at most {MAX_OPENING_BYTES:,} bytes."
    # Most bodies pass the first, cheap count, which also counts separators inside strings.
    if _count_values(body) > MAX_VALUES and _count_values(_STRING.sub(b"", body)) > MAX_VALUES:
        return f"A request may have at most {MAX_VALUES:,} values."
    return None


def _count_values(body: bytes) -> int:
    """About how many values a JSON text has, by its separators; without parsing it."""
    return body.count(b",") + body.count(b"[") + body.count(b"{")


async def _refuse(send: Send, status: int, message: str, retry_after: Any = None) -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message}}
    headers = [(b"content-type", b"application/json")]
    if status != 404:
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    if retry_after is not None:
        headers.append((b"retry-after", str(max(1, round(retry_after))).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(error).encode()})


OWNER_TTL = 6 * 3600.0
"""Seconds for which the store knows which replica holds a session."""
_MAX_OWN = 100_000
_MAX_ID_LENGTH = 128
ELSEWHERE = (
    "This session is held by another replica. Route requests of one `Mcp-Session-Id` to one "
    'replica, set `legacy = "stateless"` under [http], or use a client of MCP 2026-07-28.'
)


class SessionOwners:
    """ASGI middleware that records which replica opened a session, and refuses those of others."""

    def __init__(self, app: ASGIApp, store: Store, replica: str) -> None:
        self._app = app
        self._store = store
        self._replica = replica
        self._own: BoundedCache[str, bool] = BoundedCache(_MAX_OWN)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        principal = principal_from_scope(scope)
        session = _parse_session_id(dict(scope["headers"]).get(_SESSION_HEADER))
        if session is not None and session not in self._own:
            owner: Json = None
            with suppress(StoreError):  # then the SDK answers that the session is unknown
                owner = await self._store.get(f"owner/{session}")
            if owner and owner["replica"] != self._replica and owner["principal"] == principal:
                await _refuse(send, 404, ELSEWHERE)
                return

        async def send_and_record(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                opened = _parse_session_id(dict(message.get("headers") or ()).get(_SESSION_HEADER))
                if opened is not None and opened not in self._own:
                    self._own.put(opened, True)
                    record = {"replica": self._replica, "principal": principal}
                    # Without the store, other replicas answer that the session is unknown.
                    with suppress(StoreError):
                        await self._store.update(
                            f"owner/{opened}", lambda stored: record, ttl=OWNER_TTL
                        )
            await send(message)

        await self._app(scope, receive, send_and_record)


def _parse_session_id(value: bytes | None) -> str | None:
    """A session id of the form that the SDK generates; nothing else is looked up in the store."""
    if value is None or len(value) > _MAX_ID_LENGTH or not value.isalnum():
        return None
    return value.decode("ascii")
