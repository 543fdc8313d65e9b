"""`attach`: makes a server that somebody else wrote lazy, in one line.

The board's catalogue is what that server lists, asked for through its own handlers; a call is
passed on to them as it came. Nothing of the server itself is changed but its middleware.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeVar

from mcp.server.context import CallNext, HandlerResult
from pydantic import BaseModel

from pegboard.core.calls import Call, Caller, CallResult
from pegboard.core.json import Json, JsonObject
from pegboard.core.options import Options, make_options
from pegboard.core.search import SearchIndex
from pegboard.core.tools import Catalog, Tool
from pegboard.core.wire import tool_from_wire
from pegboard.errors import ConfigError
from pegboard.faces.face import SessionDoor, View
from pegboard.server import sdk
from pegboard.server.middleware import PegboardMiddleware
from pegboard.server.serve import install, pins_from
from pegboard.store.memory import MemoryStore
from pegboard.wiring import pipeline

S = TypeVar("S")

FRESH_FOR = 2.0
"""Seconds for which a listing of the attached server is taken as current."""
MOST_PAGES = 1_000

_behind: ContextVar[tuple[sdk.Context, CallNext]] = ContextVar("pegboard_behind")
"""The request under way and the way to the attached server's own handlers."""


def attach(
    server: S,
    face: str = "auto",
    pins: Sequence[str] = (),
    risk: str = "auto",
    **options: Any,
) -> S:
    """Make a server lazy and give it back: low-level `Server`, `MCPServer` or FastMCP 4.

    Raises:
        ConfigError: It is another kind of object, is attached already, or an option is wrong.
    """
    inner = sdk.lowlevel(server)
    if any(isinstance(m, PegboardMiddleware) for m in inner.middleware):
        raise ConfigError("This server has a Pegboard already.")
    if inner.get_request_handler("tools/list") is None:
        raise ConfigError("This server lists no tools: register them before you attach.")
    all_pins = pins_from(os.environ, pins)
    board = AttachedBoard(make_options(face=face, pins=all_pins, risk=risk, **options))
    install(board, inner, MemoryStore(), os.environ, kind=AttachedMiddleware)
    if inner.get_tool_input_schema is None:
        # Without this the SDK lists all tools before every modern HTTP call, to check its headers.
        inner.get_tool_input_schema = board.input_schema
    return server


class AttachedMiddleware(PegboardMiddleware):
    """The middleware, with the way behind it kept for the board."""

    async def __call__(self, ctx: sdk.Context, call_next: CallNext) -> HandlerResult:
        token = _behind.set((ctx, call_next))
        try:
            return await super().__call__(ctx, call_next)
        finally:
            _behind.reset(token)


class AttachedBoard:
    """The catalogue of an attached server, and its calls."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._dispatch = pipeline(options, self._call)
        self._listed_at = float("-inf")
        self._listed: list[JsonObject] = []
        self._catalog = Catalog(())
        self._index: SearchIndex | None = None

    async def view(
        self,
        caller: Caller,
        *,
        session: SessionDoor | None,
        structured: bool,
        params: Mapping[str, Json],
        request: object | None,
        whole: bool,
    ) -> View:
        catalog = await self._current()
        return View(
            catalog=catalog,
            options=self.options,
            index=lambda: self._indexed(catalog),
            dispatch=self._dispatch,
            session=session,
            caller=caller,
            structured=structured or self.options.structured,
            params=params,
            request=request,
        )

    def input_schema(self, name: str) -> JsonObject | None:
        """The schema of a tool that is known already."""
        tool = self._catalog.get(name)
        return tool.input_schema if tool else None

    async def _current(self) -> Catalog:
        now = time.monotonic()
        if now - self._listed_at >= FRESH_FOR:
            listed = await _list_behind()
            if listed != self._listed:
                self._catalog = Catalog(_tool(entry) for entry in listed)
                self._listed = listed
            self._listed_at = now
        return self._catalog

    def _indexed(self, catalog: Catalog) -> SearchIndex:
        if self._index is None:
            self._index = SearchIndex.build(catalog)
        elif self._index.catalog is not catalog:
            self._index = self._index.updated(catalog)
        return self._index

    async def _call(self, call: Call) -> CallResult:
        ctx, call_next = _behind.get()
        params = {**call.params, "name": call.tool.id, "arguments": call.arguments}
        result = await call_next(replace(ctx, method="tools/call", params=params))
        return CallResult(_wire(result))


def _tool(entry: JsonObject) -> Tool:
    return tool_from_wire(entry, tool_id=entry["name"])


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
