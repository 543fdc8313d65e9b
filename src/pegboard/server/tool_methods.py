"""How each tool request of the protocol is answered; knows boards and modes, but not the SDK.

    tools/list           -> the entries of the mode
    tools/call           -> a meta-tool of the mode, a tool by name, or an alias from another system
    tools/describe ...   -> the methods of the extension, in `extension_methods`
    resources/read       -> a stored result that was too large to send

The tokens of every answer are counted if metrics or a rollout need them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol, Unpack

from pegboard.core.calls import Caller, CallResult
from pegboard.core.events import AnswerSent, ListAnswered
from pegboard.core.json import Json, JsonObject, compact, whole_number
from pegboard.core.name_lookup import resolve
from pegboard.core.options import Options
from pegboard.core.results.shapes import META_PREFIX
from pegboard.core.tool_parser import DETAILS_KEY, LAZY_KEY, PROMPT_KEYS
from pegboard.core.tool_registry import LoadTarget
from pegboard.core.tools import Tool
from pegboard.dispatch.call_events import result_text
from pegboard.errors import AmbiguousName, InvalidArguments, PegboardError, ToolNotFound
from pegboard.modes import list_entries
from pegboard.modes.aliases import ALIASES
from pegboard.modes.auto import MODES_BY_NAME, choose_mode
from pegboard.modes.mode import (
    META_TOOL_NAMES,
    MetaTool,
    Mode,
    SessionTools,
    View,
    ViewRequest,
    check_arguments,
    record_rejection,
)
from pegboard.ports import record_event
from pegboard.server import extension_methods
from pegboard.server.replies import InvalidParams, as_invalid_params, error_result

STRUCTURED_KEY = f"{META_PREFIX}structured"
_WHOLE_MODES = ("eager", "stub")
"""Modes that list every tool, for which loaders must have run."""
_URL_ELICITATION_REQUIRED = -32042
_PROTOCOL_PARAMS = ("_meta", "inputResponses", "requestState", "task")


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One request of the protocol, with its caller and what is known about the connection."""

    method: str
    params: Mapping[str, Json]
    caller: Caller
    session: SessionTools | None = None
    context: object | None = None

    @property
    def meta(self) -> JsonObject:
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


class ViewProvider(Protocol):
    """What can be shown to clients: a board, a gateway, or an attached server."""

    @property
    def options(self) -> Options: ...

    async def view(self, caller: Caller, **request: Unpack[ViewRequest]) -> View: ...


class ToolMethods:
    """Answers the tool requests of one board."""

    def __init__(self, board: ViewProvider) -> None:
        self.board = board

    async def answer(self, request: ToolRequest) -> JsonObject | None:
        """The result of a request, or `None` for a method that is not ours.

        Raises:
            InvalidParams: The request itself is wrong.
        """
        match request.method:
            case "tools/list":
                return await self._list(request)
            case "tools/call":
                return (await self._call(request)).wire
            case "resources/read":
                return await self._read(request)
            case "tools/describe" | "tools/describe_batch" | "tools/manifest":
                needs = extension_methods.needed_tools(request.params)
                view = await self._view(request, needs=needs)
                return extension_methods.METHODS[request.method](view, request.params)
            case _:
                return None

    def _choose_mode(self, view: View) -> Mode:
        """The mode of this caller: the one of the request, else of the configuration or code.

        A flag or the environment takes precedence: it has already replaced the mode of the request.
        """
        wanted = view.caller.mode or view.options.mode
        complete = view.constant is None and view.is_complete
        name = choose_mode(wanted, view.caller, view.listed, view.options, complete=complete)
        return MODES_BY_NAME[name]

    async def _view(
        self, request: ToolRequest, *, whole: bool = True, needs: Sequence[LoadTarget] | None = None
    ) -> View:
        return await self.board.view(
            request.caller,
            session=request.session,
            structured=request.meta.get(STRUCTURED_KEY) is True,
            params={k: request.params[k] for k in _PROTOCOL_PARAMS if k in request.params},
            request=request.context,
            whole=whole,
            needs=needs,
        )

    # tools/list --------------------------------------------------------------------------------

    async def _list(self, request: ToolRequest) -> JsonObject:
        lazy = request.params.get("lazy", request.meta.get(LAZY_KEY))
        began = time.perf_counter()
        view = await self._view(request, whole=False)
        mode = self._choose_mode(view) if lazy is None else _lazy_mode(lazy)
        if mode.name in _WHOLE_MODES and not view.is_complete:
            view = await self._view(request)
        if lazy == "bare":
            entries = list_entries.list_stubs(view, bare=True)
        elif lazy is False and request.meta.get(DETAILS_KEY) is True:
            entries = list_entries.list_detailed(view)
        elif lazy is False:
            # A server of stubs has told its callers about `include_fields`, so its whole list has
            # it too. That of any other server is what clients would get without us.
            with_fields = self._choose_mode(view).name == "stub"
            entries = list_entries.list_full(view, with_fields=with_fields)
        else:
            entries = await mode.entries(view)
        listed = ListAnswered(
            at=time.time(),
            mode=mode.name,
            tools=len(entries),
            duration=time.perf_counter() - began,
            principal=view.caller.principal,
            client=view.caller.client,
        )
        record_event(view.observer, listed)
        options = self.board.options
        page, cursor = _paginate(entries, request.params.get("cursor"), options.page_size)
        result: JsonObject = {"tools": page}
        if cursor is not None:
            result["nextCursor"] = cursor
        if mode.name == "stub":
            result["_meta"] = {LAZY_KEY: True}
        if request.caller.era == "modern":
            # Clients cache by method alone: an answer that is not the default one, or that is
            # incomplete while servers are still starting, must not be cached.
            is_constant = view.constant is not None and mode.name not in _WHOLE_MODES
            is_cacheable = lazy is None and (is_constant or view.is_complete)
            result["ttlMs"] = int(options.list_ttl * 1000) if is_cacheable else 0
            is_for_all = request.caller.principal == "local" and view.plain is None
            result["cacheScope"] = "public" if is_for_all else "private"
        if view.count is not None:
            read = [{key: e[key] for key in PROMPT_KEYS if key in e} for e in page]
            _record_tokens(view, mode.name, "tools/list", _count_cached(compact(read), view.count))
        return result

    # resources/read ----------------------------------------------------------------------------

    async def _read(self, request: ToolRequest) -> JsonObject:
        uri, view = request.params.get("uri"), await self._view(request, whole=False)
        if view.read_resource is None or not isinstance(uri, str):
            raise InvalidParams("No results are stored here.", {"uri": uri})
        try:
            contents = await view.read_resource(uri, request.caller)
        except InvalidArguments as exc:
            message = "Unknown or expired resource. Call the tool again for a new one."
            raise InvalidParams(message, {"uri": uri}) from exc
        result: JsonObject = {"contents": [contents]}
        if request.caller.era == "modern":
            result |= {"ttlMs": 0, "cacheScope": "private"}  # it will expire
        return result

    # tools/call --------------------------------------------------------------------------------

    async def _call(self, request: ToolRequest) -> CallResult:
        name = request.params.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidParams("tools/call needs the `name` of a tool.")
        view = await self._view(request, whole=False)
        mode = self._choose_mode(view)
        view.caller = _with_mode(view.caller, mode.name)
        meta_tool: MetaTool | None = None
        if name in META_TOOL_NAMES:
            # A meta-tool of the mode itself wins over a tool of the same name, an alias does not.
            build = mode.builders(view).get(name)
            if build is None and not view.catalog.named(name):
                build = ALIASES.get(name)
            meta_tool = None if build is None else build(view)
        if meta_tool is None:
            result = await self._call_directly(request, view, name)
        else:
            result = await self._call_meta_tool(request, view, meta_tool)
        if view.count is not None:
            what = meta_tool.name if meta_tool else "tools/call"
            _record_tokens(view, mode.name, what, view.count(result_text(result)))
        return result

    async def _call_meta_tool(
        self, request: ToolRequest, view: View, meta_tool: MetaTool
    ) -> CallResult:
        try:
            arguments = check_arguments(meta_tool, request.params.get("arguments"))
            if not view.is_complete:
                needs = meta_tool.needs(arguments) if meta_tool.needs else None
                caller, view = view.caller, await self._view(request, needs=needs)
                view.caller = caller
            return await meta_tool.answer(view, arguments)
        except InvalidParams:
            raise
        except PegboardError as exc:
            # The request itself was valid, and several client libraries stop the run at a JSON-RPC
            # error: a result, even of an upstream's error, is something the model can react to. The
            # exception is the request to visit a web page, which clients handle, not models.
            if exc.details.get("code") == _URL_ELICITATION_REQUIRED:
                raise
            return error_result(_explain(exc, view))

    async def _call_directly(self, request: ToolRequest, view: View, name: str) -> CallResult:
        tool: Tool | None = None
        try:
            tool = await self._find_tool(request, view, name)
            if view.session is not None and view.caller.mode == "dynamic":
                await view.session.used(tool.id)
            arguments = request.params.get("arguments")
            return await view.dispatch(view.call(tool, {} if arguments is None else arguments))
        except InvalidParams:
            raise
        except PegboardError as exc:
            if exc.details.get("code") is not None:
                raise  # a JSON-RPC error of an upstream server is relayed as one
            return error_result(_explain(exc, view), tool)

    async def _find_tool(self, request: ToolRequest, view: View, name: str) -> Tool:
        """The tool that a direct call names; loaders run only when no loaded tool has the name."""
        try:
            return resolve(view.catalog, name)
        except (ToolNotFound, AmbiguousName):
            caller, view = view.caller, await self._view(request, needs=[LoadTarget(name)])
            view.caller = caller
        try:
            with record_rejection(view, name, request.params.get("arguments")):
                return resolve(view.catalog, name)
        except PegboardError as exc:
            raise as_invalid_params(_explain(exc, view)) from exc


@lru_cache(maxsize=256)
def _with_mode(caller: Caller, mode: str) -> Caller:
    """The caller with the mode that was chosen; cached, as a client calls again and again."""
    return replace(caller, mode=mode)


def _explain(exc: PegboardError, view: View) -> PegboardError:
    """Add possible reasons to an unknown name: tools that failed to load, or are not loaded yet."""
    if isinstance(exc, ToolNotFound) and view.notes:
        exc.message = " ".join([exc.message, *view.notes])
    return exc


def _lazy_mode(lazy: Json) -> Mode:
    if lazy is True or lazy == "bare":
        return MODES_BY_NAME["stub"]
    if lazy is False:
        return MODES_BY_NAME["eager"]
    raise InvalidParams('`lazy` must be true, false or "bare".', {"lazy": lazy})


def _paginate(
    entries: list[JsonObject], cursor: Json, size: int | None
) -> tuple[list[JsonObject], str | None]:
    """One page of a list, and the cursor of the next."""
    start = 0 if cursor is None else whole_number(cursor)
    if start is None or start > len(entries):
        raise InvalidParams("Unknown cursor: start again without one.", {"cursor": cursor})
    if size is None:
        return entries[start:], None
    end = start + size
    return entries[start:end], str(end) if end < len(entries) else None


# Accounting ------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def _count_cached(text: str, count: Callable[[str], int]) -> int:
    """The tokens of a text, counted once: the same few lists are sent again and again."""
    return count(text)


def _record_tokens(view: View, mode: str, what: str, tokens: int) -> None:
    """Record the tokens of an answer; `what` is the method, or the meta-tool that answered."""
    record_event(
        view.observer,
        AnswerSent(
            at=time.time(),
            mode=mode,
            what=what,
            tokens=tokens,
            principal=view.caller.principal,
            client=view.caller.client,
        ),
    )
