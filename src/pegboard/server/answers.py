"""What each request of the protocol is answered with; knows boards and faces, but no SDK.

tools/list           -> the face's entries
tools/call           -> a meta-tool of the face, a tool by its name, or a name of another system
tools/describe ...   -> the extension's methods, in `methods`
resources/read       -> what was kept of a result that was too large
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Unpack

from pegboard.core.calls import Caller, CallResult
from pegboard.core.details import DETAILS_KEY, LAZY_KEY
from pegboard.core.events import ListAnswered
from pegboard.core.json import Json, JsonObject, whole_number
from pegboard.core.names import resolve
from pegboard.core.options import Options
from pegboard.core.registry import Need
from pegboard.core.tools import Tool
from pegboard.errors import AmbiguousName, InvalidArguments, PegboardError, ToolNotFound
from pegboard.faces import entries
from pegboard.faces.aliases import everywhere
from pegboard.faces.auto import choose
from pegboard.faces.checking import checked_arguments
from pegboard.faces.face import META_PREFIX, RESERVED, Asked, Face, MetaTool, SessionDoor, View
from pegboard.faces.registry import BY_NAME
from pegboard.faces.unmade import told_of
from pegboard.ports import tell
from pegboard.server import methods
from pegboard.server.replies import Misuse, failure, misuse
from pegboard.server.sent import CALL, tell_list_sent, tell_result_sent

STRUCTURED_KEY = f"{META_PREFIX}structured"

_WHOLE_FACES = ("eager", "stub")
"""Faces that list every tool, for which loaders must have run."""

_URL_ELICITATION_REQUIRED = -32042

_PROTOCOL_PARAMS = ("_meta", "inputResponses", "requestState", "task")


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the protocol brought it, with who asks and what is known of the connection."""

    method: str
    params: Mapping[str, Json]
    caller: Caller
    session: SessionDoor | None = None
    context: object | None = None

    @property
    def meta(self) -> JsonObject:
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


class Shown(Protocol):
    """What can be shown: a board of one's own, or what another server lists."""

    @property
    def options(self) -> Options: ...

    async def view(self, caller: Caller, **asked: Unpack[Asked]) -> View: ...


class Answers:
    """Answers the requests of one board."""

    def __init__(self, board: Shown) -> None:
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
                view = await self._view(request, needs=methods.needs(request.params))
                return methods.ANSWERS[request.method](view, request.params)
            case _:
                return None

    def _face(self, view: View) -> Face:
        """The face of this caller: what was asked for, else what configuration or code says.

        A flag or the environment is asked before the request, so that operators have a way back.
        """
        asked = view.caller.face or view.options.face
        complete = view.constant is None and view.is_complete
        name = choose(asked, view.caller, view.listed, view.options, complete=complete)
        return BY_NAME[name]

    async def _view(
        self, request: Request, *, whole: bool = True, needs: Sequence[Need] | None = None
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
        face = self._face(view) if lazy is None else _lazy_face(lazy)
        if face.name in _WHOLE_FACES and not view.is_complete:
            view = await self._view(request)
        if lazy == "bare":
            shown = entries.every_stub(view, bare=True)
        elif lazy is False and request.meta.get(DETAILS_KEY) is True:
            shown = entries.every_detailed(view)
        elif lazy is False:
            # The whole list of a server of stubs says what its callers may send; that of any other
            # server is what clients would get without us.
            shown = entries.every_full(view, with_fields=self._face(view).name == "stub")
        else:
            shown = await face.entries(view)
        _tell_listed(view, face.name, len(shown), time.perf_counter() - began)
        is_fixed = view.constant is not None and face.name not in _WHOLE_FACES
        lasting = lazy is None and (is_fixed or view.is_complete)
        result = self._listed(
            request, shown, face.name, is_lasting=lasting, is_private=view.plain is not None
        )
        tell_list_sent(view, face.name, result["tools"])
        return result

    def _listed(
        self,
        request: Request,
        shown: list[JsonObject],
        face: str,
        *,
        is_lasting: bool,
        is_private: bool,
    ) -> JsonObject:
        page, following = _page(shown, request.params.get("cursor"), self.board.options.page_size)
        result: JsonObject = {"tools": page}
        if following is not None:
            result["nextCursor"] = following
        if face == "stub":
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
            raise Misuse("No results are kept here.", {"uri": uri})
        try:
            contents = await view.read_resource(uri, request.caller)
        except InvalidArguments as exc:
            message = "Unknown or expired resource. Call the tool again for a new one."
            raise Misuse(message, {"uri": uri}) from exc
        result: JsonObject = {"contents": [contents]}
        if request.caller.era == "modern":
            result |= {"ttlMs": 0, "cacheScope": "private"}  # it goes when its time is over
        return result

    # tools/call --------------------------------------------------------------------------------

    async def _call(self, request: Request) -> CallResult:
        name = request.params.get("name")
        if not isinstance(name, str) or not name:
            raise Misuse("tools/call needs the `name` of a tool.")
        view = await self._view(request, whole=False)
        face = self._face(view)
        view = replace(view, caller=replace(view.caller, face=face.name))
        meta_tool = _meta_tool(face, view, name)
        result = await self._carried_out(request, view, name, meta_tool)
        tell_result_sent(view, face.name, meta_tool.name if meta_tool else CALL, result)
        return result

    async def _carried_out(
        self, request: Request, view: View, name: str, meta_tool: MetaTool | None
    ) -> CallResult:
        arguments = request.params.get("arguments")
        tool: Tool | None = None
        try:
            if meta_tool is not None:
                checked = checked_arguments(meta_tool, arguments)
                if not view.is_complete:
                    needs = meta_tool.needs(checked) if meta_tool.needs else None
                    view = replace(await self._view(request, needs=needs), caller=view.caller)
                return await meta_tool.answer(view, checked)
            tool = await self._addressed(request, view, name)
            if view.session is not None:
                await view.session.used(tool.id)
            return await view.dispatch(view.call(tool, {} if arguments is None else arguments))
        except PegboardError as exc:
            if isinstance(exc, Misuse) or _stays_an_error(exc, through=meta_tool):
                raise
            return failure(_explained(exc, view), tool)

    async def _addressed(self, request: Request, view: View, name: str) -> Tool:
        """The tool that a direct call names; loaders run only when no loaded tool has the name."""
        try:
            return resolve(view.catalog, name)
        except (ToolNotFound, AmbiguousName):
            view = replace(await self._view(request, needs=[Need(name)]), caller=view.caller)
        try:
            with told_of(view, name, request.params.get("arguments")):
                return resolve(view.catalog, name)
        except PegboardError as exc:
            raise misuse(_explained(exc, view)) from exc


def _stays_an_error(exc: PegboardError, through: MetaTool | None) -> bool:
    """Whether a client gets an upstream's JSON-RPC error as such.

    A direct call has it relayed. Behind a meta-tool the request itself was good, and several client
    libraries end the run at a JSON-RPC error: as a result, the model can read it and try again. The
    exception is the demand for a visit to a web page, which clients act on, not models.
    """
    code = exc.details.get("code")
    return code is not None and (through is None or code == _URL_ELICITATION_REQUIRED)


def _tell_listed(view: View, face: str, tools: int, duration: float) -> None:
    tell(
        view.observer,
        ListAnswered(
            at=time.time(),
            face=face,
            tools=tools,
            duration=duration,
            principal=view.caller.principal,
            client=view.caller.client,
        ),
    )


def _explained(exc: PegboardError, view: View) -> PegboardError:
    """An unknown name with what may be the reason: tools that could not be loaded, or not yet."""
    if isinstance(exc, ToolNotFound) and view.notes:
        exc.message = " ".join([exc.message, *view.notes])
    return exc


def _meta_tool(face: Face, view: View, name: str) -> MetaTool | None:
    """The meta-tool that a name means; a face's own one wins over a tool of that name."""
    if name not in RESERVED:
        return None
    own = face.meta_tools(view).get(name)
    if own is not None or view.catalog.named(name):
        return own
    return everywhere().get(name)


def _lazy_face(lazy: Json) -> Face:
    if lazy is True or lazy == "bare":
        return BY_NAME["stub"]
    if lazy is False:
        return BY_NAME["eager"]
    raise Misuse('`lazy` is true, false or "bare".', {"lazy": lazy})


def _page(
    shown: list[JsonObject], cursor: Json, size: int | None
) -> tuple[list[JsonObject], str | None]:
    start = 0 if cursor is None else whole_number(cursor)
    if start is None or start > len(shown):
        raise Misuse("Unknown cursor: start again without one.", {"cursor": cursor})
    if size is None:
        return shown[start:], None
    end = start + size
    return shown[start:end], str(end) if end < len(shown) else None
