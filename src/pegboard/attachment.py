"""`attach`: makes a server that somebody else wrote lazy, in one line.

The board's catalogue is what that server lists, asked for through its own handlers; a call is
passed on to them as it came. Nothing of the server itself is changed but its middleware.
"""

from __future__ import annotations

import logging
import os
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeVar, Unpack

from mcp.server.context import CallNext, HandlerResult
from pydantic import BaseModel

from pegboard.core.calls import LOCAL_CALLER, Caller, CallResult, ToolCall
from pegboard.core.json import JsonObject, digest
from pegboard.core.options import Options, make_options
from pegboard.core.policy import ALLOW_ALL, Policy
from pegboard.core.risk import any_risk_declared, apply_risk_rules
from pegboard.core.sanitization import sanitize_tool
from pegboard.core.search import SearchIndex
from pegboard.core.tool_parser import tool_from_wire
from pegboard.core.tools import Catalog
from pegboard.dispatch.permissions import check_permissions
from pegboard.embed.live_index import LiveIndex, open_index_files, open_vectorizer
from pegboard.errors import ConfigError, UpstreamError
from pegboard.modes.mode import View, ViewRequest
from pegboard.pipeline import (
    Parts,
    build_fan_out,
    build_pipeline,
    build_resource_reader,
    build_result_reader,
)
from pegboard.ports import Handler, Store
from pegboard.private_files import home_folder
from pegboard.server import mcp_private
from pegboard.server.middleware import PegboardMiddleware
from pegboard.server.serving import install_middleware, merge_pins, spill_capabilities
from pegboard.store.memory import MemoryStore

logger = logging.getLogger(__name__)

S = TypeVar("S")

FRESH_FOR = 2.0
"""Seconds for which a listing of the attached server is taken as current."""
MOST_PAGES = 1_000
MOST_LISTINGS = 256
_EMPTY = Catalog([])
_SOURCE = "source"

_behind: ContextVar[tuple[mcp_private.Context, CallNext]] = ContextVar("pegboard_behind")
"""The request under way and the way to the attached server's own handlers."""


def attach(
    server: S,
    mode: str = "auto",
    pins: Sequence[str] = (),
    risk: str = "auto",
    policy: Policy = ALLOW_ALL,
    **options: Any,
) -> S:
    """Make a server lazy and give it back: low-level `Server`, `MCPServer` or FastMCP 4.

    Args:
        server: Whose tools are to be shown.
        mode: `eager`, `stub`, `index`, `hierarchy`, `proxy`, `dynamic`, or `auto`.
        pins: Names of tools that every mode lists as themselves.
        risk: `split`, `single` or `auto`, as of a `Pegboard`.
        policy: Who may see and call what, by whom the server's own authentication says they are.
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
    """The middleware, with the way behind it kept for the board."""

    async def __call__(self, ctx: mcp_private.Context, call_next: CallNext) -> HandlerResult:
        token = _behind.set((ctx, call_next))
        try:
            return await super().__call__(ctx, call_next)
        finally:
            _behind.reset(token)


@dataclass(slots=True)
class _Listing:
    """What the attached server lists for one principal, and what was made of it."""

    entries: list[JsonObject]
    catalog: Catalog
    listed_at: float
    finder: LiveIndex

    def indexed(self, seen: Catalog) -> SearchIndex:
        """The index of what somebody sees."""
        self.finder.start()
        source = self.catalog.memo.get(_SOURCE)
        if source is None:
            source = self.catalog.memo[_SOURCE] = digest(self.entries)
        return self.finder.index(self.catalog, source).among(seen)


class AttachedBoard:
    """The catalogue of an attached server, and its calls."""

    def __init__(self, options: Options, store: Store, policy: Policy = ALLOW_ALL) -> None:
        self.options = options
        self.policy = policy
        """Who may see and call what; may be replaced at any time."""
        allowed = check_permissions(lambda: self.policy, lambda: _EMPTY)
        self._parts = Parts(store=store, layers=(allowed,))
        self._dispatch = _with_our_errors(build_pipeline(options, self._call, self._parts))
        # By principal, because a server may list by who asks.
        home = home_folder(os.environ)
        self._meanings, self._kept = open_vectorizer(home), open_index_files(home)
        self._listings: OrderedDict[str, _Listing] = OrderedDict()
        self._splits_risk: bool | None = None

    async def view(self, caller: Caller, **asked: Unpack[ViewRequest]) -> View:
        listing = await self._current(caller.principal)
        seen = self.policy.visible(listing.catalog, caller)
        if self._splits_risk is None:  # once, so that the list stays as it is
            self._splits_risk = any_risk_declared(listing.catalog, self.options.risk_rules)
        return View(
            catalog=seen,
            options=self.options,
            index=lambda: listing.indexed(seen),
            dispatch=self._dispatch,
            fan_out=build_fan_out(self.options, self._dispatch, self._parts),
            read_result=build_result_reader(self.options, self._parts),
            read_resource=build_resource_reader(self.options, self._parts),
            session=asked.get("session"),
            splits_risk=self._splits_risk,
            observer=self._parts.observer,
            caller=caller,
            structured=asked.get("structured", False) or self.options.structured,
            params=asked.get("params") or {},
            request=asked.get("request"),
        )

    def input_schema(self, name: str) -> JsonObject | None:
        """The schema of a tool that everybody can see; runs before it is known who asks."""
        listing = self._listings.get(LOCAL_CALLER.principal)
        tool = listing.catalog.get(name) if listing else None
        who = mcp_private.current_identity()
        caller = Caller(who.principal, scopes=who.scopes, groups=who.groups)
        return tool.input_schema if tool and self.policy.allows(caller, tool) else None

    async def _current(self, principal: str) -> _Listing:
        now = time.monotonic()
        listing = self._listings.get(principal)
        if listing is None:
            entries = await _list_behind()
            listing = self._listings[principal] = _Listing(
                entries, self._catalog(entries), now, LiveIndex(self._meanings, self._kept)
            )
            self._warn_of_pins(principal, listing.catalog)
            if len(self._listings) > MOST_LISTINGS:
                self._listings.popitem(last=False)
        elif now - listing.listed_at >= FRESH_FOR:
            entries = await _list_behind()
            if entries != listing.entries:
                listing.entries, listing.catalog = entries, self._catalog(entries)
            listing.listed_at = now
        self._listings.move_to_end(principal)
        return listing

    def _catalog(self, entries: list[JsonObject]) -> Catalog:
        rules, strict = self.options.risk_rules, self.options.strict_risk
        tools = [tool_from_wire(entry, tool_id=entry["name"]) for entry in entries]
        return Catalog(
            sanitize_tool(apply_risk_rules(tool, rules, strict=strict)) for tool in tools
        )

    def _warn_of_pins(self, principal: str, catalog: Catalog) -> None:
        """Log the pins that name no tool: what the server lists is not known any earlier."""
        unknown = [name for name in self.options.pins if not catalog.matching(name)]
        if unknown and principal == LOCAL_CALLER.principal:  # else they may be hidden from this one
            logger.warning("These pins name no tool: %s.", ", ".join(unknown))

    async def _call(self, call: ToolCall) -> CallResult:
        ctx, call_next = _behind.get()
        name = call.tool.raw_name or call.tool.id
        params = {**call.params, "name": name, "arguments": call.arguments}
        result = await call_next(replace(ctx, method="tools/call", params=params))
        return CallResult(_wire(result))


def _with_our_errors(dispatch: Handler) -> Handler:
    """Give the server's JSON-RPC errors as ours, which a meta-tool can answer with."""

    async def handle(call: ToolCall) -> CallResult:
        try:
            return await dispatch(call)
        except mcp_private.MCPError as exc:
            details = {"tool": call.tool.name, "code": exc.code, "data": exc.data}
            raise UpstreamError(exc.message, **details) from exc

    return handle


async def _list_behind() -> list[JsonObject]:
    """Every tool that the attached server lists, over all its pages."""
    ctx, call_next = _behind.get()
    meta = (ctx.params or {}).get("_meta")
    params: JsonObject = {"_meta": meta} if meta else {}
    tools: list[JsonObject] = []
    for _ in range(MOST_PAGES):
        page = _wire(await call_next(replace(ctx, method="tools/list", params=params)))
        tools += page["tools"]
        if page.get("nextCursor") is None:
            return tools
        params = {**params, "cursor": page["nextCursor"]}
    raise ConfigError(f"The attached server's tools/list has not ended after {MOST_PAGES} pages.")


def _wire(result: HandlerResult) -> JsonObject:
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return result or {}
