"""What a face is, and what it is given to work with.

    tools/list  ->  face.entries(view)                 the tools that a client is shown
    tools/call  ->  face.meta_tools[name].answer(...)  if the name is one of its meta-tools

A face holds no state and does no I/O of its own: the `View` carries the catalogue as this caller
sees it and the doors to search, dispatch and the session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypedDict

from pegboard.core.calls import LOCAL, WHOLE, Call, Caller, CallResult, Outcome, Shape
from pegboard.core.details import PREFIX
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.names import resolve
from pegboard.core.options import Options
from pegboard.core.registry import Need
from pegboard.core.shaping import fields_taken_off
from pegboard.core.tools import Catalog, Tool
from pegboard.errors import AmbiguousName, InvalidArguments, PegboardError, ToolNotFound
from pegboard.ports import Handler, Observer

if TYPE_CHECKING:
    from pegboard.core.search import Match, SearchIndex

META_PREFIX = PREFIX

RESERVED = frozenset(
    {
        "search_tools", "describe_tools", "call_tool", "call_write_tool", "call_destructive_tool",
        "call_tools", "read_result", "list_available_tools", "get_tool_description",
        "tools_list_categories", "tools_list_tools", "tools_get_schema", "tools_dispatch",
        "tools_dispatch_parallel", "list_tool_categories", "invoke_tool", "get_tool_schema",
    }
)  # fmt: skip
"""The names of all meta-tools of all faces, held complete by a test."""


class SessionDoor(Protocol):
    """The enabled tools of one legacy session."""

    async def enabled(self) -> Collection[str]: ...

    async def enable(self, tool_ids: Sequence[str]) -> None:
        """Add tools and tell the client, once, that its list changed."""
        ...

    async def used(self, tool_id: str) -> None:
        """Note that an enabled tool was called, so that it is not the next to make room."""
        ...


class Asked(TypedDict, total=False):
    """What a board is told of a request to make a view for it, beside who asks."""

    session: SessionDoor | None
    structured: bool
    """Whether the client reads structured content."""
    params: Mapping[str, Json] | None
    request: object | None
    whole: bool
    """Whether pending loaders are to run first; they are unless told otherwise."""
    needs: Sequence[Need] | None
    """What the request is about, where that is known: then only the loaders run that it needs."""
    everything: bool
    """Whether the view is an operator's, who sees the whole catalog; never set for a client."""


FanOut = Callable[[Sequence[Call]], Awaitable[list[Outcome]]]
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
    session: SessionDoor | None = None
    caller: Caller = LOCAL
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
        self, tool: Tool, arguments: JsonObject, *, via: str | None = None, shape: Shape = WHOLE
    ) -> Call:
        """A call of `tool` on behalf of this caller; `include_fields` may be in the arguments."""
        own, shape = fields_taken_off(tool, arguments, shape)
        return Call(
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
    """A tool that a face adds: its entry in the list, and how it answers."""

    name: str
    description: str
    parameters: JsonObject
    answer: Callable[[View, JsonObject], Awaitable[CallResult]]
    annotations: JsonObject = field(default_factory=dict[str, Json])
    accepts: JsonObject | None = None
    """A wider schema to check by, where the meta-tool itself has more helpful things to say."""
    needs: Callable[[JsonObject], Sequence[Need]] | None = None
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


class Face(Protocol):
    """One way to show a catalogue."""

    name: str

    async def entries(self, view: View) -> list[JsonObject]:
        """The `tools/list` entries, in a fixed order."""
        ...

    def meta_tools(self, view: View) -> Mapping[str, MetaTool]:
        """The meta-tools of this face, by name."""
        ...


def parameters(properties: JsonObject, required: Sequence[str] = ()) -> JsonObject:
    """The input schema of a meta-tool."""
    schema: JsonObject = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return schema


def names_at(*keys: str) -> Callable[[JsonObject], list[Need]]:
    """The needs of a meta-tool that is given a tool's name, or a list of them, under a key."""

    def needs(arguments: JsonObject) -> list[Need]:
        given = next((arguments[key] for key in keys if key in arguments), None)
        names = given if isinstance(given, list) else [given]
        return [Need(name) for name in names if isinstance(name, str)]

    return needs


def pairs_in(arguments: JsonObject) -> list[Need]:
    """The needs of calls that name a tool and perhaps its category, one or several of them."""
    calls: Json = arguments.get("calls") or [arguments]
    return [_pair(one) for one in calls if isinstance(one, dict)]


def _pair(one: JsonObject) -> Need:
    category, name = one.get("category"), one.get("tool", one.get("name"))
    return Need(
        name if isinstance(name, str) else None,
        category if isinstance(category, str) and category else None,
    )


def by_name(tools: Sequence[MetaTool]) -> dict[str, MetaTool]:
    return {tool.name: tool for tool in tools}


def _is_known(catalog: Catalog, name: str) -> bool:
    try:
        resolve(catalog, name)
    except AmbiguousName:
        return True
    except ToolNotFound:
        return False
    return True


def find(view: View, name: str, category: str | None = None) -> Tool:
    """The tool of that name; an error with a word about meta-tools where one was meant."""
    try:
        return resolve(view.catalog, name, category)
    except ToolNotFound as exc:
        if name in RESERVED:
            raise InvalidArguments(
                f"{name} is a meta-tool: call it directly, not through another one.", tool=name
            ) from exc
        raise
