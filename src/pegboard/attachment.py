"""`attach`: adds Pegboard's modes to an existing server, in one line.

    client -> SDK -> AttachedMiddleware -> our tool methods
                                              │  tools/list, tools/call of the server itself
                                              └─> call_next -> the server's own handlers

The catalog is what that server lists, requested through its own handlers; a call is passed on to
them unchanged. Nothing about the server itself is changed except its middleware.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeVar, Unpack

from mcp.server.context import CallNext, HandlerResult
from pydantic import BaseModel

from pegboard.core.caches import BoundedCache
from pegboard.core.calls import LOCAL_CALLER, Caller, CallResult, ToolCall
from pegboard.core.json import JsonObject, digest
from pegboard.core.options import ModeName, Options, make_options
from pegboard.core.policy import ALLOW_ALL, Policy
from pegboard.core.risk import any_risk_declared, apply_risk_rules
from pegboard.core.sanitization import sanitize_tool
from pegboard.core.search import SearchIndex
from pegboard.core.tool_parser import tool_from_wire
from pegboard.core.tools import Catalog
from pegboard.dispatch.learned_searches import LearnedSearches
from pegboard.dispatch.learned_shapes import SHAPES_FOLDER, LearnedShapes
from pegboard.dispatch.permissions import check_permissions
from pegboard.embed.live_index import LiveIndex, open_index_files, open_vectorizer
from pegboard.errors import ConfigError, UpstreamError
from pegboard.modes.auto import choose_mode
from pegboard.modes.mode import View, ViewRequest
from pegboard.pipeline import Dispatcher, Parts, build_pipeline
from pegboard.ports import Handler, Store
from pegboard.private_files import home_folder
from pegboard.server import mcp_private
from pegboard.server.environment import merge_pins
from pegboard.server.middleware import PegboardMiddleware
from pegboard.server.serving import install_middleware, spill_capabilities
from pegboard.store.memory import MemoryStore

logger = logging.getLogger(__name__)

S = TypeVar("S")

LISTING_TTL = 2.0
"""Seconds for which a listing of the attached server counts as current."""
MAX_PAGES = 1_000
MAX_LISTINGS = 256
_NO_TOOLS = Catalog([])
_SOURCE_HASH = "source"

_server_request: ContextVar[tuple[mcp_private.Context, CallNext]] = ContextVar("pegboard_behind")
"""The current request, and how to pass one on to the attached server's own handlers."""


def attach(
    server: S,
    mode: str = "auto",
    pins: Sequence[str] = (),
    risk: str = "auto",
    policy: Policy = ALLOW_ALL,
    **options: Any,
) -> S:
    """Add modes to a low-level `Server`, an `MCPServer` or a FastMCP 4 server, and return it.

    Args:
        server: The server whose tools are shown.
        mode: `eager`, `stub`, `index`, `hierarchy`, `proxy`, `dynamic`, or `auto`.
        pins: Names of tools that every mode lists directly.
        risk: `split`, `single` or `auto`, as of a `Pegboard`.
        policy: Who may see and call what, by the identity that the server's own authentication
            establishes.
        options: Any further field of `Options`.

    Raises:
        ConfigError: It is another kind of object, is attached already, or an option is wrong.
    """
    inner = mcp_private.get_lowlevel_server(server)
    if any(isinstance(m, PegboardMiddleware) for m in inner.middleware):
        raise ConfigError("This server has a Pegboard already.")
    if inner.get_request_handler("tools/list") is None:
        raise ConfigError("This server lists no tools: register them before you attach.")
    all_pins = merge_pins(os.environ, pins)
    store = MemoryStore()
    shown = make_options(mode=mode, pins=all_pins, risk=risk, **options)
    board = AttachedBoard(shown, store, policy)
    install_middleware(board, inner, store, os.environ, kind=AttachedMiddleware)
    mcp_private.advertise_capabilities(inner, lambda: spill_capabilities(board.options))
    if inner.get_tool_input_schema is None:
        # Without this the SDK lists all tools before every modern HTTP call, to check its headers.
        inner.get_tool_input_schema = board.input_schema
    return server


class AttachedMiddleware(PegboardMiddleware):
    """The middleware, which also remembers how to reach the attached server's own handlers."""

    async def __call__(self, ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        token = _server_request.set((ctx, call_next))
        try:
            return await super().__call__(ctx, call_next)
        finally:
            _server_request.reset(token)


@dataclass(slots=True)
class _Listing:
    """What the attached server lists for one principal, and what was built from it."""

    entries: list[JsonObject]
    catalog: Catalog
    listed_at: float
    live_index: LiveIndex

    def index_for(self, visible: Catalog) -> SearchIndex:
        """The search index of the tools that somebody may see."""
        self.live_index.start()
        source = self.catalog.memo.get(_SOURCE_HASH)
        if source is None:
            source = self.catalog.memo[_SOURCE_HASH] = digest(self.entries)
        return self.live_index.index(self.catalog, source).restricted_to(visible)


class AttachedBoard:
    """The catalog of an attached server, and its calls."""

    def __init__(self, options: Options, store: Store, policy: Policy = ALLOW_ALL) -> None:
        self.options = options
        self.policy = policy
        """Who may see and call what; may be replaced at any time."""
        # The server lists again for each principal, so there is no catalog for all of them.
        permissions = check_permissions(lambda: self.policy, lambda: _NO_TOOLS)
        home = home_folder(os.environ)
        # By principal, because the server itself knows who calls, and may answer each differently.
        shapes = LearnedShapes(
            lambda: home / SHAPES_FOLDER, owner=lambda tool, caller: caller.principal
        )
        searches = LearnedSearches(
            # In memory: nothing distinguishes the server from others in the same data folder.
            learning=lambda: options.learn_searches,
            stores_queries=lambda: options.store_queries,
        )
        parts = Parts(store=store, shapes=shapes, searches=searches, layers=(permissions,))
        handler = _convert_errors(build_pipeline(options, self._call, parts))
        self._dispatcher = Dispatcher(options, parts, handler)
        self._vectorizer, self._index_files = open_vectorizer(home), open_index_files(home)
        # By principal, because a server may list different tools to each.
        self._listings: BoundedCache[str, _Listing] = BoundedCache(MAX_LISTINGS)
        self._has_risk: bool | None = None

    async def view(self, caller: Caller, **request: Unpack[ViewRequest]) -> View:
        """The attached server as one caller sees it on one request."""
        listing = await self._current_listing(caller.principal)
        visible = self.policy.visible(listing.catalog, caller)
        if self._has_risk is None:
            # Once and for all, so that the list does not change with the server's tools.
            self._has_risk = any_risk_declared(listing.catalog, self.options.risk_rules)
        return self._dispatcher.view(
            visible,
            caller,
            request,
            options=self.options,
            index=lambda: listing.index_for(visible),
            has_risk=self._has_risk,
        )

    def expected_mode(self, caller: Caller) -> ModeName | None:
        """The mode that a caller will get; `None` while that depends on tools not listed yet."""
        wanted = caller.mode or self.options.mode
        listing = self._listings.get(caller.principal)
        if wanted == "auto" and listing is None:
            return None
        catalog = _NO_TOOLS if listing is None else self.policy.visible(listing.catalog, caller)
        return choose_mode(wanted, caller, catalog, self.options)

    def input_schema(self, name: str) -> JsonObject | None:
        """The schema of a tool that everybody can see; the SDK calls this with a name alone."""
        listing = self._listings.get(LOCAL_CALLER.principal)
        tool = listing.catalog.get(name) if listing else None
        who = mcp_private.current_identity()
        caller = Caller(who.principal, scopes=who.scopes, groups=who.groups)
        return tool.input_schema if tool and self.policy.allows(caller, tool) else None

    async def _current_listing(self, principal: str) -> _Listing:
        now = time.monotonic()
        listing = self._listings.get(principal)
        if listing is None:
            entries = await _list_tools()
            index = LiveIndex(self._vectorizer, self._index_files)
            listing = _Listing(entries, self._catalog(entries), now, index)
            self._listings.put(principal, listing)
            unknown = [name for name in self.options.pins if not listing.catalog.matching(name)]
            # Not before, because the tools were not known. Another principal may just not see them.
            if unknown and principal == LOCAL_CALLER.principal:
                logger.warning("These pins name no tool: %s.", ", ".join(unknown))
        elif now - listing.listed_at >= LISTING_TTL:
            entries = await _list_tools()
            if entries != listing.entries:
                listing.entries, listing.catalog = entries, self._catalog(entries)
            listing.listed_at = now
        return listing

    def _catalog(self, entries: list[JsonObject]) -> Catalog:
        rules, strict = self.options.risk_rules, self.options.strict_risk
        tools = [tool_from_wire(entry, tool_id=entry["name"]) for entry in entries]
        return Catalog(
            sanitize_tool(apply_risk_rules(tool, rules, strict=strict)) for tool in tools
        )

    async def _call(self, call: ToolCall) -> CallResult:
        ctx, call_next = _server_request.get()
        name = call.tool.raw_name or call.tool.id
        params = {**call.params, "name": name, "arguments": call.arguments}
        result = await call_next(replace(ctx, method="tools/call", params=params))
        return CallResult(_to_wire(result))


def _convert_errors(dispatch: Handler) -> Handler:
    """Raise the server's JSON-RPC errors as our own, which a meta-tool can turn into a result."""

    async def handle(call: ToolCall) -> CallResult:
        try:
            return await dispatch(call)
        except mcp_private.MCPError as exc:
            details = {"tool": call.tool.name, "code": exc.code, "data": exc.data}
            raise UpstreamError(exc.message, **details) from exc

    return handle


async def _list_tools() -> list[JsonObject]:
    """Every tool that the attached server lists, over all its pages."""
    ctx, call_next = _server_request.get()
    meta = (ctx.params or {}).get("_meta")
    params: JsonObject = {"_meta": meta} if meta else {}
    tools: list[JsonObject] = []
    for _ in range(MAX_PAGES):
        page = _to_wire(await call_next(replace(ctx, method="tools/list", params=params)))
        tools += page["tools"]
        if page.get("nextCursor") is None:
            return tools
        params = {**params, "cursor": page["nextCursor"]}
    raise ConfigError(f"The attached server's tools/list has not ended after {MAX_PAGES} pages.")


def _to_wire(result: HandlerResult) -> JsonObject:
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return result or {}
