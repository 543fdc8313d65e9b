r"""The one middleware: every request passes here, in both eras, on every kind of server.

    client -> SDK -> PegboardMiddleware -> `ToolMethods`    tools/list, tools/call, tools/describe
                                       \-> the server's own handlers             everything else

The middleware knows the SDK and the connection; `ToolMethods` knows boards and modes. Between them
goes a `ToolRequest`: the method, its parameters, and who sent it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Protocol

from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import Server
from pydantic import ValidationError
from pydantic_core import to_json

from pegboard.core.calls import Caller
from pegboard.core.json import JsonObject
from pegboard.core.options import ModeName, check_mode
from pegboard.core.results.blob_links import uri_to_handle
from pegboard.errors import ConfigError
from pegboard.modes.instructions import build_instructions
from pegboard.ports import Store
from pegboard.server import mcp_private
from pegboard.server.list_changed import ListChangedNotifier, StoredSessionTools
from pegboard.server.replies import InvalidParams
from pegboard.server.tool_methods import ToolMethods, ToolRequest, ViewProvider

logger = logging.getLogger(__name__)

TOOL_METHODS = frozenset(
    {"tools/list", "tools/call", "tools/describe", "tools/describe_batch", "tools/manifest"}
)
GREETINGS = frozenset({"initialize", "server/discover"})
READ_RESOURCE = "resources/read"
_CALLER_KEY = "pegboard/caller"
_EMPTY_LISTS = {"resources/list": "resources", "resources/templates/list": "resourceTemplates"}


class ServedBoard(ViewProvider, Protocol):
    """A board that clients connect to."""

    def expected_mode(self, caller: Caller) -> ModeName | None:
        """The mode that a caller will get, determined without waiting; `None` if not known yet."""
        ...


class PegboardMiddleware:
    """Answers the tool methods of one server from a board."""

    def __init__(
        self,
        board: ServedBoard,
        server: Server[Any],
        store: Store,
        *,
        forced_mode: str | None = None,
        changes: ListChangedNotifier | None = None,
    ) -> None:
        self.board = board
        self.methods = ToolMethods(board)
        self.server = server
        self.changes = changes or ListChangedNotifier()
        self._store = store
        self._forced_mode = forced_mode
        self.profiles: Callable[[], Collection[str]] = tuple[str]
        """The names of the profiles that a request can choose; a board has none."""

    async def __call__(self, ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        if ctx.method in GREETINGS:
            return await self.greet(ctx, call_next)
        # Notifications, and requests before the handshake, are left to the SDK.
        if ctx.request_id is None or not mcp_private.is_initialized(ctx):
            return await call_next(ctx)
        if self.answers_tools(ctx):
            return await self.answer_tools(ctx)
        empty = self.answer_empty_list(ctx)
        return await call_next(ctx) if empty is None else empty

    async def greet(self, ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        """The answer to the first request of a client, with how to work with its mode."""
        result = await call_next(ctx)
        try:
            caller = self.read_caller(ctx)
            if caller.client is None:  # `initialize` is what introduces a legacy client
                client = (ctx.params or {}).get("clientInfo")
                name = client.get("name") if isinstance(client, dict) else None
                caller = replace(caller, client=name if isinstance(name, str) else None)
            mode = self.board.expected_mode(caller)
        except mcp_private.MCPError:  # a mode that does not exist: the list will say so
            return result
        if not isinstance(result, dict):
            return result
        return {**result, "instructions": build_instructions(result.get("instructions"), mode)}

    def answers_tools(self, ctx: mcp_private.Context) -> bool:
        """Whether a request is about tools, or about a result that was stored for being large."""
        if ctx.method in TOOL_METHODS:
            return True
        # Other resources are the server's own.
        is_read = ctx.method == READ_RESOURCE
        return is_read and uri_to_handle((ctx.params or {}).get("uri")) is not None

    async def answer_tools(self, ctx: mcp_private.Context) -> HandlerResult:
        """The answer to one of our methods, with what the era requires."""
        try:
            with mcp_private.relay_upstream_errors():
                caller, params = self.caller(ctx), ctx.params or {}
                try:
                    to_json(params)  # an answer that quotes them would fail
                except (ValueError, RecursionError) as exc:
                    message = "The parameters are not valid Unicode, or nested too deep."
                    raise InvalidParams(message) from exc
                session = None
                if caller.session:
                    cap = self.board.options.session_cap
                    session = StoredSessionTools(self._store, ctx, caller.session, cap)
                request = ToolRequest(ctx.method, params, caller, session, ctx)
                result = await self.methods.answer(request)
        except InvalidParams as exc:
            raise mcp_private.invalid_params(exc.message, exc.data) from exc
        except ConfigError as exc:
            raise mcp_private.invalid_params(exc.message, exc.details or None) from exc
        except (mcp_private.MCPError, ValidationError):
            raise  # from the attached server: raised unchanged
        except Exception as exc:
            # A bug of ours: the log has the details, and the client learns nothing about them.
            logger.exception("%s failed", ctx.method)
            raise mcp_private.internal_error() from exc
        assert result is not None, ctx.method
        return mcp_private.stamp_result(self.server, ctx, result)

    def answer_empty_list(self, ctx: mcp_private.Context) -> HandlerResult:
        """An empty list of resources, on a server whose only resources are stored results."""
        if ctx.method not in _EMPTY_LISTS or self.server.get_request_handler(ctx.method):
            return None
        # We advertise `resources` for stored results, and clients then request both lists.
        result: JsonObject = {_EMPTY_LISTS[ctx.method]: []}
        if mcp_private.get_era(ctx) == "modern":
            result |= {"ttlMs": 0, "cacheScope": "private"}
        return mcp_private.stamp_result(self.server, ctx, result)

    def caller(self, ctx: mcp_private.Context) -> Caller:
        """Who sent a request; a legacy connection is notified of changed lists from then on."""
        connection = mcp_private.get_connection(ctx)
        if ctx.request is None:
            # On a pipe only the connection tells who it is: read once per handshake, not per call.
            hello = ctx.session.client_params
            cached: tuple[object, Caller] | None = connection.state.get(_CALLER_KEY)
            if cached is not None and cached[0] is hello:
                return cached[1]
            caller = self.read_caller(ctx)
            connection.state[_CALLER_KEY] = (hello, caller)
        else:
            caller = self.read_caller(ctx)
        if caller.era == "legacy":
            self.changes.listen(connection)
        return caller

    def read_caller(self, ctx: mcp_private.Context) -> Caller:
        """Who sent a request, as far as the connection and the request tell."""
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
            profile=self._requested_profile(ctx.request),
            token=identity.token,
        )

    def _requested_profile(self, request: Any) -> str | None:
        """The profile that an HTTP request asks for: by path, by query, or by header."""
        if request is None:
            return None
        path: Mapping[str, str] = request.path_params
        name = path.get("profile") or request.query_params.get("profile")
        name = name or request.headers.get("pegboard-profile")
        if name and name not in self.profiles():
            known = ", ".join(self.profiles()) or "none"
            message = f"There is no profile {name!r}. Profiles: {known}."
            raise mcp_private.invalid_params(message, {"profile": name})
        return name or None


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
