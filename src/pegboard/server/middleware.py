r"""The one middleware: every request passes here, in both eras, on every kind of server.

client -> SDK -> middleware -> Answers (ours)         tools/list, tools/call, tools/describe, ...
\-> the server's own       everything else
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import Server
from pydantic import ValidationError

from pegboard.core.blobs import handle_in
from pegboard.core.calls import Caller
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.options import checked_face
from pegboard.core.sessions import Session, SessionPolicy
from pegboard.errors import ConfigError
from pegboard.ports import Store
from pegboard.server import sdk
from pegboard.server.answers import Answers, Request, Shown
from pegboard.server.changes import ListChanges
from pegboard.server.replies import Misuse

logger = logging.getLogger(__name__)

OURS = frozenset(
    {"tools/list", "tools/call", "tools/describe", "tools/describe_batch", "tools/manifest"}
)
READ = "resources/read"
_CALLER_KEY = "pegboard/caller"
_NOTHING = {"resources/list": "resources", "resources/templates/list": "resourceTemplates"}


class PegboardMiddleware:
    """Answers the tool methods of one server from a board."""

    def __init__(
        self,
        board: Shown,
        server: Server[Any],
        store: Store,
        *,
        forced_face: str | None = None,
        changes: ListChanges | None = None,
    ) -> None:
        self.board = board
        self.answers = Answers(board)
        self.server = server
        self._store = store
        self._forced_face = forced_face
        self.changes = changes or ListChanges()

    async def __call__(self, ctx: sdk.Context, call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None or not sdk.is_open(ctx):
            return await call_next(ctx)
        if self.is_ours(ctx):
            return await self.answered(ctx)
        if ctx.method in _NOTHING and self.server.get_request_handler(ctx.method) is None:
            return self._nothing(ctx)
        return await call_next(ctx)

    def is_ours(self, ctx: sdk.Context) -> bool:
        """Whether a request is about tools, or about a result that was kept."""
        if ctx.method in OURS:
            return True
        return ctx.method == READ and handle_in((ctx.params or {}).get("uri")) is not None

    def _nothing(self, ctx: sdk.Context) -> HandlerResult:
        """An empty list, on a server whose only resources are results that were kept."""
        result: JsonObject = {_NOTHING[ctx.method]: []}
        if sdk.era_of(ctx) == "modern":
            result |= {"ttlMs": 0, "cacheScope": "private"}
        return sdk.stamped(self.server, ctx, result)

    async def answered(self, ctx: sdk.Context) -> HandlerResult:
        """The answer to one of our methods, with what the era requires."""
        try:
            with sdk.relayed_errors():
                result = await self.answers.answer(self._request(ctx))
        except Misuse as exc:
            raise sdk.invalid_params(exc.message, exc.data) from exc
        except ConfigError as exc:
            raise sdk.invalid_params(exc.message, exc.details or None) from exc
        except (sdk.MCPError, ValidationError):
            raise  # of the server behind, as it answered without us
        except Exception as exc:
            # Our own fault: the log has it, and a client learns nothing of our insides.
            logger.exception("%s failed", ctx.method)
            raise sdk.internal_error() from exc
        assert result is not None, ctx.method
        return sdk.stamped(self.server, ctx, result)

    def _request(self, ctx: sdk.Context) -> Request:
        caller = self.caller(ctx)
        if caller.era == "legacy":
            self.changes.listen(sdk.connection_of(ctx))
        _check_text(ctx.params)
        cap = self.board.options.session_cap
        door = _Door(self._store, ctx, caller.session, cap) if caller.session else None
        return Request(ctx.method, ctx.params or {}, caller, door, ctx)

    def caller(self, ctx: sdk.Context) -> Caller:
        """Who asks, as far as the connection and the request tell."""
        if ctx.request is not None:
            return self._caller(ctx)
        # On a pipe, nothing but the connection tells: the same, until it shakes hands anew.
        said, state = ctx.session.client_params, sdk.connection_of(ctx).state
        kept: tuple[object, Caller] | None = state.get(_CALLER_KEY)
        if kept is not None and kept[0] is said:
            return kept[1]
        caller = self._caller(ctx)
        state[_CALLER_KEY] = (said, caller)
        return caller

    def _caller(self, ctx: sdk.Context) -> Caller:
        client, version = sdk.client_of(ctx)
        identity = sdk.identity_of(ctx)
        return Caller(
            principal=identity.principal,
            era=sdk.era_of(ctx),
            session=sdk.session_of(ctx),
            client=client,
            client_version=version,
            face=self._forced_face or _asked_face(ctx.request),
            scopes=identity.scopes,
            groups=identity.groups,
        )


SESSION_TTL = 24 * 3600.0
"""Seconds after its last search for which a session's enabled tools are kept."""


class _Door:
    """The enabled tools of a legacy session, kept in the store."""

    def __init__(self, store: Store, ctx: sdk.Context, session: str, cap: int) -> None:
        self._store = store
        self._ctx = ctx
        self._key = f"session/{session}"
        self._policy = SessionPolicy(cap=cap)

    async def enabled(self) -> Collection[str]:
        return Session.from_json(await self._store.get(self._key)).enabled

    async def enable(self, tool_ids: Sequence[str]) -> None:
        before = set(await self.enabled())
        now = time.time()

        def change(kept: Json) -> Json:
            return Session.from_json(kept).enable(tool_ids, self._policy, now).to_json()

        after = await self._store.update(self._key, change, ttl=SESSION_TTL)
        if set(Session.from_json(after).enabled) != before:
            # Before the result returns, so that a client sees the tools when it goes on.
            await sdk.announce_tools(self._ctx)

    async def used(self, tool_id: str) -> None:
        if tool_id not in await self.enabled():
            return
        now = time.time()

        def change(kept: Json) -> Json:
            return Session.from_json(kept).used(tool_id, now).to_json()

        await self._store.update(self._key, change, ttl=SESSION_TTL)


def _check_text(params: Json) -> None:
    """Refuse what cannot be written down again: an answer that quotes it could not be sent."""
    try:
        compact(params).encode()
    except (UnicodeEncodeError, RecursionError) as exc:
        raise Misuse("The parameters are not valid Unicode, or nested too deep.") from exc


def _asked_face(request: Any) -> str | None:
    """The face that an HTTP request asks for: by path, by query, or by header, in this order."""
    if request is None:
        return None
    path: Mapping[str, str] = request.path_params
    face = (
        path.get("face") or request.query_params.get("face") or request.headers.get("pegboard-face")
    )
    try:
        return checked_face(face) if face else None
    except ConfigError as exc:
        raise sdk.invalid_params(exc.message, exc.details or None) from exc
