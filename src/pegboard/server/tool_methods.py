"""How each tool request of the protocol is answered; knows boards and modes, but not the SDK.

    tools/list           -> the entries of the mode
    tools/call           -> a meta-tool of the mode, a tool by name, or an alias from another system
    tools/describe ...   -> the methods of the extension, in `extension_methods`
    resources/read       -> a stored result that was too large to send

Every answer is also counted in tokens, where metrics or a rollout want to know what models read.
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
from pegboard.core.options import Options
from pegboard.core.tool_names import resolve
from pegboard.core.tool_parser import DETAILS_KEY, LAZY_KEY
from pegboard.core.tool_registry import LoadTarget
from pegboard.core.tools import Tool
from pegboard.dispatch.call_events import result_text
from pegboard.errors import AmbiguousName, InvalidArguments, PegboardError, ToolNotFound
from pegboard.modes import tool_entries
from pegboard.modes.aliases import build_aliases
from pegboard.modes.auto import choose_mode
from pegboard.modes.meta_arguments import check_arguments
from pegboard.modes.mode import (
    META_PREFIX,
    META_TOOL_NAMES,
    MetaTool,
    Mode,
    SessionTools,
    View,
    ViewRequest,
    record_rejection,
)
from pegboard.modes.registry import MODES_BY_NAME
from pegboard.ports import record_event
from pegboard.server import extension_methods
from pegboard.server.replies import InvalidParams, as_invalid_params, error_result

LIST = "tools/list"
CALL = "tools/call"
_READ_BY_MODELS = ("name", "description", "inputSchema")


def record_list_tokens(view: View, mode: str, entries: Sequence[JsonObject]) -> None:
    """Tell of a list, as far as clients put it before the model."""
    if view.count is not None:
        read = [{key: e[key] for key in _READ_BY_MODELS if key in e} for e in entries]
        _record_tokens(view, mode, LIST, _count_cached(compact(read), view.count))


def record_result_tokens(view: View, mode: str, what: str, result: CallResult) -> None:
    """Tell of a result; `what` is the meta-tool that gave it, or `CALL` for a tool itself."""
    if view.count is not None:
        _record_tokens(view, mode, what, view.count(result_text(result)))


@lru_cache(maxsize=8)
def _count_cached(text: str, count: Callable[[str], int]) -> int:
    """Counted once: the same few lists are sent again and again."""
    return count(text)


def _record_tokens(view: View, mode: str, what: str, tokens: int) -> None:
    caller = view.caller
    event = AnswerSent(
        at=time.time(),
        mode=mode,
        what=what,
        tokens=tokens,
        principal=caller.principal,
        client=caller.client,
    )
    record_event(view.observer, event)


STRUCTURED_KEY = f"{META_PREFIX}structured"

_WHOLE_MODES = ("eager", "stub")
"""Modes that list every tool, for which loaders must have run."""

_URL_ELICITATION_REQUIRED = -32042

_PROTOCOL_PARAMS = ("_meta", "inputResponses", "requestState", "task")


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the protocol brought it, with who asks and what is known of the connection."""

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
    """What can be shown: a board of one's own, or what another server lists."""

    @property
    def options(self) -> Options: ...

    async def view(self, caller: Caller, **asked: Unpack[ViewRequest]) -> View: ...


class ToolMethods:
    """Answers the requests of one board."""

    def __init__(self, board: ViewProvider) -> None:
        self.board = board

    async def answer(self, request: Request) -> JsonObject | None:
        """The result of a request, or `None` when it is not one of ours.

        Raises:
            Misuse: The request itself is wrong.
        """
        match request.method:
            case "tools/list":
                return await self._list(request)
            case "tools/call":
                return (await self._call(request)).wire
            case "resources/read":
                return await self._read(request)
            case "tools/describe" | "tools/describe_batch" | "tools/manifest":
                view = await self._view(
                    request, needs=extension_methods.needed_tools(request.params)
                )
                return extension_methods.METHODS[request.method](view, request.params)
            case _:
                return None

    def _mode(self, view: View) -> Mode:
        """The mode of this caller: what was asked for, else what configuration or code says.

        A flag or the environment is asked before the request, so that operators have a way back.
        """
        asked = view.caller.mode or view.options.mode
        complete = view.constant is None and view.is_complete
        name = choose_mode(asked, view.caller, view.listed, view.options, complete=complete)
        return MODES_BY_NAME[name]

    async def _view(
        self, request: Request, *, whole: bool = True, needs: Sequence[LoadTarget] | None = None
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

    async def _list(self, request: Request) -> JsonObject:
        lazy = request.params.get("lazy", request.meta.get(LAZY_KEY))
        began = time.perf_counter()
        view = await self._view(request, whole=False)
        mode = self._mode(view) if lazy is None else _lazy_mode(lazy)
        if mode.name in _WHOLE_MODES and not view.is_complete:
            view = await self._view(request)
        if lazy == "bare":
            shown = tool_entries.list_stubs(view, bare=True)
        elif lazy is False and request.meta.get(DETAILS_KEY) is True:
            shown = tool_entries.list_detailed(view)
        elif lazy is False:
            # The whole list of a server of stubs says what its callers may send; that of any other
            # server is what clients would get without us.
            shown = tool_entries.list_full(view, with_fields=self._mode(view).name == "stub")
        else:
            shown = await mode.entries(view)
        _record_list(view, mode.name, len(shown), time.perf_counter() - began)
        is_fixed = view.constant is not None and mode.name not in _WHOLE_MODES
        lasting = lazy is None and (is_fixed or view.is_complete)
        result = self._listed(
            request, shown, mode.name, is_lasting=lasting, is_private=view.plain is not None
        )
        record_list_tokens(view, mode.name, result["tools"])
        return result

    def _listed(
        self,
        request: Request,
        shown: list[JsonObject],
        mode: str,
        *,
        is_lasting: bool,
        is_private: bool,
    ) -> JsonObject:
        page, following = _paginate(
            shown, request.params.get("cursor"), self.board.options.page_size
        )
        result: JsonObject = {"tools": page}
        if following is not None:
            result["nextCursor"] = following
        if mode == "stub":
            result["_meta"] = {LAZY_KEY: True}
        if request.caller.era == "modern":
            # Clients cache by method alone: an answer that is not the default, or not whole while
            # servers are still starting, must not be kept.
            result["ttlMs"] = int(self.board.options.list_ttl * 1000) if is_lasting else 0
            is_for_all = request.caller.principal == "local" and not is_private
            result["cacheScope"] = "public" if is_for_all else "private"
        return result

    # resources/read ----------------------------------------------------------------------------

    async def _read(self, request: Request) -> JsonObject:
        uri, view = request.params.get("uri"), await self._view(request, whole=False)
        if view.read_resource is None or not isinstance(uri, str):
            raise InvalidParams("No results are kept here.", {"uri": uri})
        try:
            contents = await view.read_resource(uri, request.caller)
        except InvalidArguments as exc:
            message = "Unknown or expired resource. Call the tool again for a new one."
            raise InvalidParams(message, {"uri": uri}) from exc
        result: JsonObject = {"contents": [contents]}
        if request.caller.era == "modern":
            result |= {"ttlMs": 0, "cacheScope": "private"}  # it goes when its time is over
        return result

    # tools/call --------------------------------------------------------------------------------

    async def _call(self, request: Request) -> CallResult:
        name = request.params.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidParams("tools/call needs the `name` of a tool.")
        view = await self._view(request, whole=False)
        mode = self._mode(view)
        view = replace(view, caller=replace(view.caller, mode=mode.name))
        meta_tool = _meta_tool(mode, view, name)
        result = await self._carried_out(request, view, name, meta_tool)
        record_result_tokens(view, mode.name, meta_tool.name if meta_tool else CALL, result)
        return result

    async def _carried_out(
        self, request: Request, view: View, name: str, meta_tool: MetaTool | None
    ) -> CallResult:
        arguments = request.params.get("arguments")
        tool: Tool | None = None
        try:
            if meta_tool is not None:
                checked = check_arguments(meta_tool, arguments)
                if not view.is_complete:
                    needs = meta_tool.needs(checked) if meta_tool.needs else None
                    view = replace(await self._view(request, needs=needs), caller=view.caller)
                return await meta_tool.answer(view, checked)
            tool = await self._addressed(request, view, name)
            if view.session is not None:
                await view.session.used(tool.id)
            return await view.dispatch(view.call(tool, {} if arguments is None else arguments))
        except PegboardError as exc:
            if isinstance(exc, InvalidParams) or _is_relayed_error(exc, through=meta_tool):
                raise
            return error_result(_explain(exc, view), tool)

    async def _addressed(self, request: Request, view: View, name: str) -> Tool:
        """The tool that a direct call names; loaders run only when no loaded tool has the name."""
        try:
            return resolve(view.catalog, name)
        except (ToolNotFound, AmbiguousName):
            view = replace(await self._view(request, needs=[LoadTarget(name)]), caller=view.caller)
        try:
            with record_rejection(view, name, request.params.get("arguments")):
                return resolve(view.catalog, name)
        except PegboardError as exc:
            raise as_invalid_params(_explain(exc, view)) from exc


def _is_relayed_error(exc: PegboardError, through: MetaTool | None) -> bool:
    """Whether a client gets an upstream's JSON-RPC error as such.

    A direct call has it relayed. Behind a meta-tool the request itself was good, and several client
    libraries end the run at a JSON-RPC error: as a result, the model can read it and try again. The
    exception is the demand for a visit to a web page, which clients act on, not models.
    """
    code = exc.details.get("code")
    return code is not None and (through is None or code == _URL_ELICITATION_REQUIRED)


def _record_list(view: View, mode: str, tools: int, duration: float) -> None:
    record_event(
        view.observer,
        ListAnswered(
            at=time.time(),
            mode=mode,
            tools=tools,
            duration=duration,
            principal=view.caller.principal,
            client=view.caller.client,
        ),
    )


def _explain(exc: PegboardError, view: View) -> PegboardError:
    """An unknown name with what may be the reason: tools that could not be loaded, or not yet."""
    if isinstance(exc, ToolNotFound) and view.notes:
        exc.message = " ".join([exc.message, *view.notes])
    return exc


def _meta_tool(mode: Mode, view: View, name: str) -> MetaTool | None:
    """The meta-tool that a name means; a mode's own one wins over a tool of that name."""
    if name not in META_TOOL_NAMES:
        return None
    own = mode.meta_tools(view).get(name)
    if own is not None or view.catalog.named(name):
        return own
    return build_aliases().get(name)


def _lazy_mode(lazy: Json) -> Mode:
    if lazy is True or lazy == "bare":
        return MODES_BY_NAME["stub"]
    if lazy is False:
        return MODES_BY_NAME["eager"]
    raise InvalidParams('`lazy` is true, false or "bare".', {"lazy": lazy})


def _paginate(
    shown: list[JsonObject], cursor: Json, size: int | None
) -> tuple[list[JsonObject], str | None]:
    start = 0 if cursor is None else whole_number(cursor)
    if start is None or start > len(shown):
        raise InvalidParams("Unknown cursor: start again without one.", {"cursor": cursor})
    if size is None:
        return shown[start:], None
    end = start + size
    return shown[start:end], str(end) if end < len(shown) else None
