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

from pegboard.core.calls import Caller
from pegboard.core.enabled_tools import EnabledTools, EnabledToolsPolicy
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.options import check_mode
from pegboard.core.results.blob_links import uri_to_handle
from pegboard.errors import ConfigError
from pegboard.ports import Store
from pegboard.server import mcp_private
from pegboard.server.list_changed import ListChangedNotifier
from pegboard.server.replies import InvalidParams
from pegboard.server.tool_methods import Request, ToolMethods, ViewProvider

logger = logging.getLogger(__name__)

TOOL_METHODS = frozenset(
    {"tools/list", "tools/call", "tools/describe", "tools/describe_batch", "tools/manifest"}
)
READ_RESOURCE = "resources/read"
_CALLER_KEY = "pegboard/caller"
_EMPTY_LISTS = {"resources/list": "resources", "resources/templates/list": "resourceTemplates"}


class PegboardMiddleware:
    """Answers the tool methods of one server from a board."""

    def __init__(
        self,
        board: ViewProvider,
        server: Server[Any],
        store: Store,
        *,
        forced_mode: str | None = None,
        changes: ListChangedNotifier | None = None,
    ) -> None:
        self.board = board
        self.answers = ToolMethods(board)
        self.server = server
        self._store = store
        self._forced_mode = forced_mode
        self.changes = changes or ListChangedNotifier()

    async def __call__(self, ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None or not mcp_private.is_initialized(ctx):
            return await call_next(ctx)
        if self.is_ours(ctx):
            return await self.answered(ctx)
        if ctx.method in _EMPTY_LISTS and self.server.get_request_handler(ctx.method) is None:
            return self._nothing(ctx)
        return await call_next(ctx)

    def is_ours(self, ctx: mcp_private.Context) -> bool:
        """Whether a request is about tools, or about a result that was kept."""
        if ctx.method in TOOL_METHODS:
            return True
        return (
            ctx.method == READ_RESOURCE and uri_to_handle((ctx.params or {}).get("uri")) is not None
        )

    def _nothing(self, ctx: mcp_private.Context) -> HandlerResult:
        """An empty list, on a server whose only resources are results that were kept."""
        result: JsonObject = {_EMPTY_LISTS[ctx.method]: []}
        if mcp_private.get_era(ctx) == "modern":
            result |= {"ttlMs": 0, "cacheScope": "private"}
        return mcp_private.stamp_result(self.server, ctx, result)

    async def answered(self, ctx: mcp_private.Context) -> HandlerResult:
        """The answer to one of our methods, with what the era requires."""
        try:
            with mcp_private.relay_upstream_errors():
                result = await self.answers.answer(self._request(ctx))
        except InvalidParams as exc:
            raise mcp_private.invalid_params(exc.message, exc.data) from exc
        except ConfigError as exc:
            raise mcp_private.invalid_params(exc.message, exc.details or None) from exc
        except (mcp_private.MCPError, ValidationError):
            raise  # of the server behind, as it answered without us
        except Exception as exc:
            # Our own fault: the log has it, and a client learns nothing of our insides.
            logger.exception("%s failed", ctx.method)
            raise mcp_private.internal_error() from exc
        assert result is not None, ctx.method
        return mcp_private.stamp_result(self.server, ctx, result)

    def _request(self, ctx: mcp_private.Context) -> Request:
        caller = self.caller(ctx)
        if caller.era == "legacy":
            self.changes.listen(mcp_private.get_connection(ctx))
        _check_text(ctx.params)
        cap = self.board.options.session_cap
        door = SessionTools(self._store, ctx, caller.session, cap) if caller.session else None
        return Request(ctx.method, ctx.params or {}, caller, door, ctx)

    def caller(self, ctx: mcp_private.Context) -> Caller:
        """Who asks, as far as the connection and the request tell."""
        if ctx.request is not None:
            return self._caller(ctx)
        # On a pipe, nothing but the connection tells: the same, until it shakes hands anew.
        said, state = ctx.session.client_params, mcp_private.get_connection(ctx).state
        kept: tuple[object, Caller] | None = state.get(_CALLER_KEY)
        if kept is not None and kept[0] is said:
            return kept[1]
        caller = self._caller(ctx)
        state[_CALLER_KEY] = (said, caller)
        return caller

    def _caller(self, ctx: mcp_private.Context) -> Caller:
        client, version = mcp_private.get_client_info(ctx)
        identity = mcp_private.identity_from_context(ctx)
        return Caller(
            principal=identity.principal,
            era=mcp_private.get_era(ctx),
            session=mcp_private.get_session_id(ctx),
            client=client,
            client_version=version,
            mode=self._forced_mode or _requested_mode(ctx.request),
            scopes=identity.scopes,
            groups=identity.groups,
        )


SESSION_TTL = 24 * 3600.0
"""Seconds after its last search for which a session's enabled tools are kept."""


class SessionTools:
    """The enabled tools of a legacy session, kept in the store."""

    def __init__(self, store: Store, ctx: mcp_private.Context, session: str, cap: int) -> None:
        self._store = store
        self._ctx = ctx
        self._key = f"session/{session}"
        self._policy = EnabledToolsPolicy(cap=cap)

    async def enabled(self) -> Collection[str]:
        return EnabledTools.from_json(await self._store.get(self._key)).enabled

    async def enable(self, tool_ids: Sequence[str]) -> None:
        before = set(await self.enabled())
        now = time.time()

        def change(kept: Json) -> Json:
            return EnabledTools.from_json(kept).enable(tool_ids, self._policy, now).to_json()

        after = await self._store.update(self._key, change, ttl=SESSION_TTL)
        if set(EnabledTools.from_json(after).enabled) != before:
            # Before the result returns, so that a client sees the tools when it goes on.
            await mcp_private.notify_tools_changed(self._ctx)

    async def used(self, tool_id: str) -> None:
        if tool_id not in await self.enabled():
            return
        now = time.time()

        def change(kept: Json) -> Json:
            return EnabledTools.from_json(kept).used(tool_id, now).to_json()

        await self._store.update(self._key, change, ttl=SESSION_TTL)


def _check_text(params: Json) -> None:
    """Refuse what cannot be written down again: an answer that quotes it could not be sent."""
    try:
        compact(params).encode()
    except (UnicodeEncodeError, RecursionError) as exc:
        raise InvalidParams("The parameters are not valid Unicode, or nested too deep.") from exc


def _requested_mode(request: Any) -> str | None:
    """The mode that an HTTP request asks for: by path, by query, or by header, in this order."""
    if request is None:
        return None
    path: Mapping[str, str] = request.path_params
    mode = (
        path.get("mode") or request.query_params.get("mode") or request.headers.get("pegboard-mode")
    )
    try:
        return check_mode(mode) if mode else None
    except ConfigError as exc:
        raise mcp_private.invalid_params(exc.message, exc.details or None) from exc
