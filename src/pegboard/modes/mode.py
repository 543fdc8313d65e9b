"""What a mode is, and what it works with.

    tools/list  ->  mode.entries(view)                 the tools that a client is shown
    tools/call  ->  mode.meta_tools[name].answer(...)  if the name is one of its meta-tools

A mode holds no state and does no I/O of its own: the `View` carries the catalog as this caller sees
it, and gives access to search, dispatch and the session.

Which risk a call meta-tool may carry is checked here, once for all of them:

    call_tool, call_write_tool, call_destructive_tool   where calls are split: own risk and lower
    call_tools                                          the risk of the call tool that carries it
    everything else that calls a tool by its name       as `dispatch_risk` says: clients approve
                                                        by name and one name carries all risks
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypedDict

from pegboard.core.calls import (
    LOCAL_CALLER,
    WHOLE_RESULT,
    Caller,
    CallResult,
    Outcome,
    ResultShape,
    ToolCall,
)
from pegboard.core.events import CallRejected
from pegboard.core.json import Json, JsonObject, compact, digest
from pegboard.core.options import Options
from pegboard.core.results.shapes import extract_fields
from pegboard.core.tool_names import resolve
from pegboard.core.tool_parser import PREFIX
from pegboard.core.tool_registry import LoadTarget
from pegboard.core.tools import RISKS, Catalog, Risk, Tool
from pegboard.errors import (
    AmbiguousName,
    InvalidArguments,
    NotPermitted,
    PegboardError,
    ToolNotFound,
)
from pegboard.ports import Handler, Observer, record_event

if TYPE_CHECKING:
    from pegboard.core.search import Match, SearchIndex


META_PREFIX = PREFIX

META_TOOL_NAMES = frozenset(
    {
        "search_tools", "describe_tools", "call_tool", "call_write_tool", "call_destructive_tool",
        "call_tools", "read_result", "list_available_tools", "get_tool_description",
        "tools_list_categories", "tools_list_tools", "tools_get_schema", "tools_dispatch",
        "tools_dispatch_parallel", "list_tool_categories", "invoke_tool", "get_tool_schema",
    }
)  # fmt: skip
"""The names of all meta-tools of all modes, held complete by a test."""


class SessionTools(Protocol):
    """The enabled tools of one legacy session."""

    async def enabled(self) -> Collection[str]: ...

    async def enable(self, tool_ids: Sequence[str]) -> None:
        """Add tools and tell the client, once, that its list changed."""
        ...

    async def used(self, tool_id: str) -> None:
        """Note that an enabled tool was called, so that it is not the next to make room."""
        ...


class ViewRequest(TypedDict, total=False):
    """What a board is told of a request to make a view for it, beside who asks."""

    session: SessionTools | None
    structured: bool
    """Whether the client reads structured content."""
    params: Mapping[str, Json] | None
    request: object | None
    whole: bool
    """Whether pending loaders are to run first; they are unless told otherwise."""
    needs: Sequence[LoadTarget] | None
    """What the request is about, where that is known: then only the loaders run that it needs."""
    everything: bool
    """Whether the view is an operator's, who sees the whole catalog; never set for a client."""


FanOut = Callable[[Sequence[ToolCall]], Awaitable[list[Outcome]]]
ResultReader = Callable[[JsonObject, Caller], Awaitable[CallResult]]
ResourceReader = Callable[[str, Caller], Awaitable[JsonObject]]


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """The catalogue as one caller sees it during one request, and what may be done with it."""

    catalog: Catalog
    options: Options
    constant: Catalog | None = None
    """The catalogue without what loaders gave, or servers that were not known at the start; `None`
    when all that is listed was known then."""
    index: Callable[[], SearchIndex]
    dispatch: Handler
    fan_out: FanOut | None = None
    read_result: ResultReader | None = None
    read_resource: ResourceReader | None = None
    """Gives kept results by their URIs."""
    session: SessionTools | None = None
    caller: Caller = LOCAL_CALLER
    splits_risk: bool = True
    """Whether there is one call tool for each risk, where the options leave it open."""
    is_complete: bool = True
    """False while there are loaders that have not run."""
    observer: Observer | None = None
    count: Callable[[str], int] | None = None
    """Counts the tokens of what is answered, where somebody wants to know them."""
    plain: Catalog | None = None
    """The catalog as clients see it that declare no capabilities, where others see another one."""
    notes: tuple[str, ...] = ()
    """What the model should know about this catalogue, such as a category that cannot be loaded."""
    instructions: Mapping[str, str] = field(default_factory=dict[str, str])
    """What servers say of how their tools are used, by server: clean, short, on one line."""
    structured: bool = False
    params: Mapping[str, Json] = field(default_factory=dict[str, Json])
    request: object | None = None

    @property
    def listed(self) -> Catalog:
        """What a list may show: the same for all clients, whatever was loaded since."""
        if self.constant is not None:
            return self.constant
        return self.catalog if self.plain is None else self.plain

    @property
    def pins(self) -> tuple[Tool, ...]:
        """The pinned tools that this caller can see, in the configured order."""
        found: dict[str, Tool] = {}
        for name in self.options.pins:
            try:
                tool = resolve(self.catalog, name)
            except PegboardError:
                continue  # reported at start; here it may just be hidden from the caller
            if tool.enabled:
                found[tool.id] = tool
        return tuple(found.values())

    def search(self, query: str, *, limit: int, category: str | None = None) -> list[Match]:
        """The tools that fit and that this caller can see; `category` may name a server."""
        return self.index().search(
            query,
            limit,
            group=category,
            allowed=None if self.catalog is self.index().catalog else self._can_see,
        )

    def related(self, tool: Tool) -> list[str]:
        """The related tools that this caller can see."""
        if not tool.related:
            return []
        if tool.server is not None:
            return [self.catalog.address(other) for other in self.catalog.related(tool)]
        return [name for name in tool.related if _is_known(self.catalog, name)]

    def _can_see(self, tool: Tool) -> bool:
        return self.catalog.get(tool.id) is not None

    def call(
        self,
        tool: Tool,
        arguments: JsonObject,
        *,
        via: str | None = None,
        shape: ResultShape = WHOLE_RESULT,
    ) -> ToolCall:
        """A call of `tool` on behalf of this caller; `include_fields` may be in the arguments."""
        own, shape = extract_fields(tool, arguments, shape)
        return ToolCall(
            tool=tool,
            arguments=own,
            shape=shape,
            caller=self.caller,
            via=via,
            params=self.params,
            request=self.request,
        )

    def reply(self, text: str, structured: Json) -> CallResult:
        """A meta-tool's answer: text alone, unless the caller asked for structured content too."""
        return CallResult.text(text, structured=structured if self.structured else None)

    def reply_json(self, value: Json) -> CallResult:
        """A meta-tool's answer whose text is the compact JSON of its shape."""
        return self.reply(compact(value), value)


@dataclass(frozen=True, slots=True)
class MetaTool:
    """A tool that a mode adds: its entry in the list, and how it answers."""

    name: str
    description: str
    parameters: JsonObject
    answer: Callable[[View, JsonObject], Awaitable[CallResult]]
    annotations: JsonObject = field(default_factory=dict[str, Json])
    accepts: JsonObject | None = None
    """A wider schema to check by, where the meta-tool itself has more helpful things to say."""
    needs: Callable[[JsonObject], Sequence[LoadTarget]] | None = None
    """The categories and tools that arguments name; `None` where it needs the whole catalogue."""

    def entry(self) -> JsonObject:
        """Its `tools/list` entry. `alwaysLoad` keeps clients that defer tools from hiding it."""
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": self.parameters,
            "annotations": self.annotations,
            "_meta": {"anthropic/alwaysLoad": True},
        }


class Mode(Protocol):
    """One way to show a catalogue."""

    name: str

    async def entries(self, view: View) -> list[JsonObject]:
        """The `tools/list` entries, in a fixed order."""
        ...

    def meta_tools(self, view: View) -> Mapping[str, MetaTool]:
        """The meta-tools of this mode, by name."""
        ...


def object_schema(properties: JsonObject, required: Sequence[str] = ()) -> JsonObject:
    """The input schema of a meta-tool."""
    schema: JsonObject = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return schema


def needs_from_names(*keys: str) -> Callable[[JsonObject], list[LoadTarget]]:
    """The needs of a meta-tool that is given a tool's name, or a list of them, under a key."""

    def needs(arguments: JsonObject) -> list[LoadTarget]:
        given = next((arguments[key] for key in keys if key in arguments), None)
        names = given if isinstance(given, list) else [given]
        return [LoadTarget(name) for name in names if isinstance(name, str)]

    return needs


def needs_from_calls(arguments: JsonObject) -> list[LoadTarget]:
    """The needs of calls that name a tool and perhaps its category, one or several of them."""
    calls: Json = arguments.get("calls") or [arguments]
    return [_need_from_call(one) for one in calls if isinstance(one, dict)]


def _need_from_call(one: JsonObject) -> LoadTarget:
    category, name = one.get("category"), one.get("tool", one.get("name"))
    return LoadTarget(
        name if isinstance(name, str) else None,
        category if isinstance(category, str) and category else None,
    )


def index_by_name(tools: Sequence[MetaTool]) -> dict[str, MetaTool]:
    return {tool.name: tool for tool in tools}


def _is_known(catalog: Catalog, name: str) -> bool:
    try:
        resolve(catalog, name)
    except AmbiguousName:
        return True
    except ToolNotFound:
        return False
    return True


def find_tool(view: View, name: str, category: str | None = None) -> Tool:
    """The tool of that name; an error with a word about meta-tools where one was meant."""
    try:
        return resolve(view.catalog, name, category)
    except ToolNotFound as exc:
        if name in META_TOOL_NAMES:
            raise InvalidArguments(
                f"{name} is a meta-tool: call it directly, not through another one.", tool=name
            ) from exc
        raise


MAX_RECORDED_NAME = 200


@contextmanager
def record_rejection(
    view: View, name: Json, arguments: Json, *, via: str | None = None
) -> Generator[None]:
    """Tell of an error in the block as a call of this name that was not made."""
    try:
        yield
    except PegboardError as exc:
        caller = view.caller
        event = CallRejected(
            at=time.time(),
            name=str(name)[:MAX_RECORDED_NAME],
            error=exc.kind,
            arguments=digest({} if arguments is None else arguments),
            principal=caller.principal,
            client=caller.client,
            session=caller.session,
            mode=caller.mode,
            via=via,
        )
        record_event(view.observer, event)
        raise


CALL_TOOL_BY_RISK: dict[Risk, str] = {
    "read": "call_tool",
    "write": "call_write_tool",
    "destructive": "call_destructive_tool",
}
_MAX_DISPATCH_RISK: dict[str, Risk] = {
    "read-only": "read",
    "refuse": "write",
    "allow": "destructive",
}


def splits_risk(view: View) -> bool:
    """Whether there is one call tool for each risk: by setting, else as the board decided."""
    if view.options.risk == "auto":
        return view.splits_risk
    return view.options.risk == "split"


def max_dispatch_risk(view: View) -> Risk:
    """The most that a meta-tool may do which carries every risk under one name."""
    return _MAX_DISPATCH_RISK[view.options.dispatch_risk]


def require_split_risk(tool: Tool, allowed: Risk, via: str) -> None:
    """Refuse a tool whose risk is above what its call tool was approved for."""
    if not _is_within(tool, allowed):
        right = CALL_TOOL_BY_RISK[tool.risk]
        raise NotPermitted(
            f"{tool.name} is {tool.risk}: call it with {right}, not {via}.",
            tool=tool.name,
            expected=right,
        )


def require_dispatch_risk(view: View, tool: Tool, via: str) -> None:
    """Refuse a tool that the operator does not let a single call tool carry."""
    if _is_within(tool, max_dispatch_risk(view)):
        return
    is_strict = view.options.dispatch_risk == "read-only"
    what = "not read-only" if is_strict else "destructive"
    which = "calls only read-only tools" if is_strict else "does not call such tools"
    raise NotPermitted(
        f"{tool.name} is {what}, and {via} {which} here: call it directly by its name.",
        tool=tool.name,
    )


def _is_within(tool: Tool, allowed: Risk) -> bool:
    return RISKS.index(tool.risk) <= RISKS.index(allowed)
