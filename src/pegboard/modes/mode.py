"""What a mode is, and what it works with.

    tools/list  ->  mode.entries(view)                          the tools that a client is shown
    tools/call  ->  mode.builders(view)[name](view).answer(...) if the name is one of its meta-tools

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
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypedDict

from pegboard.core.call_preview import preview_arguments, preview_message
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
from pegboard.core.name_lookup import resolve
from pegboard.core.options import Options
from pegboard.core.results.shapes import extract_fields
from pegboard.core.tool_registry import LoadTarget
from pegboard.core.tools import RISKS, Catalog, Risk, Tool
from pegboard.core.validation import Validators, coerce_arguments
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
    from pegboard.dispatch.learned_searches import LearnedSearches
    from pegboard.dispatch.learned_shapes import LearnedShapes
    from pegboard.programs.scope import RunRequest


META_TOOL_NAMES = frozenset(
    {
        "search_tools", "describe_tools", "call_tool", "call_write_tool", "call_destructive_tool",
        "call_tools", "read_result", "list_available_tools", "get_tool_description",
        "tools_list_categories", "tools_list_tools", "tools_get_schema", "tools_dispatch",
        "tools_dispatch_parallel", "list_tool_categories", "invoke_tool", "get_tool_schema",
        "run_code", "run_write_code", "run_destructive_code",
    }
)  # fmt: skip
"""The names of all meta-tools of all modes; a test keeps it complete."""


class SessionTools(Protocol):
    """The tools that searches have enabled on one legacy session, in the `dynamic` mode."""

    async def enabled(self) -> Collection[str]: ...

    async def enable(self, tool_ids: Sequence[str]) -> None:
        """Add tools, and notify the client, once, that its list changed."""
        ...

    async def used(self, tool_id: str) -> None:
        """Mark an enabled tool as the most recently used, so that it is not evicted next."""
        ...


class ViewRequest(TypedDict, total=False):
    """What a board needs to know about a request to build its view, apart from the caller."""

    session: SessionTools | None
    structured: bool
    """Whether the client requested structured content from meta-tools."""
    params: Mapping[str, Json] | None
    request: object | None
    whole: bool
    """Whether pending loaders run first; they do by default."""
    needs: Sequence[LoadTarget] | None
    """The tools that the request names, where it does: then only their loaders run."""
    everything: bool
    """Whether the view is for an operator, who sees the whole catalog; never set for a client."""


FanOut = Callable[[Sequence[ToolCall]], Awaitable[list[Outcome]]]
ResultReader = Callable[[JsonObject, Caller], Awaitable[CallResult]]
ResourceReader = Callable[[str, Caller], Awaitable[JsonObject]]
ProgramRun = Callable[["View", "RunRequest"], Awaitable[CallResult]]


class ResultSchema(NamedTuple):
    """What the results of a tool look like, as JSON Schema."""

    schema: JsonObject | None
    """`None` if nothing is known."""
    is_learned: bool = False
    """Whether it was learned from earlier results: then there may be fields that it lacks."""


@dataclass(kw_only=True, slots=True, eq=False)
class View:
    """The catalog as one caller sees it during one request, and what the caller can do with it."""

    # Not frozen, because one is built for every request, and a frozen one with this many fields
    # takes twice as long. Only the code that builds it may change it, before anything else reads
    # it.

    catalog: Catalog
    options: Options
    constant: Catalog | None = None
    """The catalog without tools from loaders, or from servers that were not known at the start;
    `None` when everything in the list was known then."""
    index: Callable[[], SearchIndex]
    dispatch: Handler
    fan_out: FanOut | None = None
    read_result: ResultReader | None = None
    read_resource: ResourceReader | None = None
    """Reads stored results by their URIs."""
    run_program: ProgramRun | None = None
    """Runs a program that calls tools of the catalog."""
    session: SessionTools | None = None
    caller: Caller = LOCAL_CALLER
    splits_risk: bool = True
    """Whether there is one call tool for each risk, or a single one for all."""
    is_complete: bool = True
    """False while there are loaders that have not run."""
    observer: Observer | None = None
    count: Callable[[str], int] | None = None
    """Counts the tokens of answers, where metrics or a rollout need them."""
    plain: Catalog | None = None
    """The catalog for clients that declare no capabilities, where servers list other tools to
    clients that do."""
    notes: tuple[str, ...] = ()
    """What the model should know about this catalog, such as a category that cannot be loaded."""
    instructions: Mapping[str, str] = field(default_factory=dict[str, str])
    """How each server says its tools are used: sanitized, short, on one line."""
    shapes: LearnedShapes | None = None
    """What was learned about results of tools that declare no output schema."""
    searches: LearnedSearches | None = None
    """What was learned about which tools are called after which searches."""
    structured: bool = False
    params: Mapping[str, Json] = field(default_factory=dict[str, Json])
    request: object | None = None

    @property
    def listed(self) -> Catalog:
        """The catalog that a list shows: the same for all clients, whatever was loaded since."""
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
                continue  # reported at the start; here it may just be hidden from the caller
            # Two names may be those of one tool, which is listed once.
            if tool.enabled:
                found[tool.id] = tool
        return tuple(found.values())

    def search(self, query: str, *, limit: int, category: str | None = None) -> list[Match]:
        """The tools that fit and that this caller can see; `category` may name a server."""
        index = self.index()
        searches = self.searches
        matches = index.search(
            query,
            limit,
            group=category,
            # Most callers see the whole catalog, and asking for every tool takes time.
            allowed=None
            if self.catalog is index.catalog
            else lambda tool: self.catalog.get(tool.id) is not None,
            boosts=None if searches is None else searches.boosts(self.caller),
        )
        if searches is not None:
            searches.remember(self.caller, query, index, [match.tool.id for match in matches])
        return matches

    def related(self, tool: Tool) -> list[str]:
        """The related tools that this caller can see."""
        if not tool.related:
            return []
        # Servers name their own tools, without the prefix that the gateway gives them.
        if tool.server is not None:
            return [self.catalog.address(other) for other in self.catalog.related(tool)]
        known: list[str] = []
        for name in tool.related:
            try:
                resolve(self.catalog, name)
            except AmbiguousName:
                pass  # there are several of that name
            except ToolNotFound:
                continue
            known.append(name)
        return known

    def result_schema(self, tool: Tool) -> ResultSchema:
        """What the results of a tool look like: as learned, where its output schema says little."""
        learned = None if self.shapes is None else self.shapes.get(tool, self.caller)
        if learned is not None:
            return ResultSchema(learned, is_learned=True)
        return ResultSchema(tool.output_schema)

    def returns(self, tool: Tool, *, limit: int | None = None) -> str:
        """The shape of a tool's results on one line, `~{…}` where learned; empty if unknown."""
        from pegboard.core.schemas import format_result_shape
        from pegboard.core.schemas.output_shape import SHAPE_LIMIT

        schema, is_learned = self.result_schema(tool)
        if is_learned:
            shape = format_result_shape(schema, limit=limit or SHAPE_LIMIT)
            return f"~{shape}" if shape else ""
        if limit is None or len(tool.returns) <= limit:
            return tool.returns
        memo, key = self.catalog.memo, ("returns", tool.id, limit)
        if key not in memo:
            memo[key] = format_result_shape(schema, limit=limit)
        return memo[key]

    def call(
        self,
        tool: Tool,
        arguments: JsonObject,
        *,
        via: str | None = None,
        shape: ResultShape = WHOLE_RESULT,
    ) -> ToolCall:
        """A call to `tool` on behalf of this caller; `include_fields` may be in the arguments."""
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

    def reply(self, text: str, structured: Callable[[], Json]) -> CallResult:
        """The answer of a meta-tool.

        Args:
            text: What the model reads.
            structured: Builds the same as structured content; only called where the client
                requested it, because some clients pass both parts on to the model.
        """
        return CallResult.text(text, structured=structured() if self.structured else None)

    def reply_json(self, value: Json) -> CallResult:
        """The answer of a meta-tool whose text is the compact JSON of its structured content."""
        return self.reply(compact(value), lambda: value)


@dataclass(frozen=True, slots=True)
class MetaTool:
    """A tool that a mode adds: its entry in the list, and how it answers."""

    name: str
    description: str
    parameters: JsonObject
    answer: Callable[[View, JsonObject], Awaitable[CallResult]]
    annotations: JsonObject = field(default_factory=dict[str, Json])
    accepts: JsonObject | None = None
    """A wider schema for validation, where the meta-tool's own errors are more helpful."""
    needs: Callable[[JsonObject], Sequence[LoadTarget]] | None = None
    """The categories and tools that arguments name; `None` if it needs the whole catalog."""
    is_listed: bool = True
    """Whether it is in the list; the others are named where they are needed, and callable."""

    def entry(self) -> JsonObject:
        """Its `tools/list` entry; `alwaysLoad` stops clients that defer tools from hiding it."""
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": self.parameters,
            "annotations": self.annotations,
            "_meta": {"anthropic/alwaysLoad": True},
        }


MetaToolBuilder: TypeAlias = Callable[[View], MetaTool]


class Mode(Protocol):
    """One way to show a catalog."""

    name: str

    async def entries(self, view: View) -> list[JsonObject]:
        """The `tools/list` entries, in a fixed order."""
        ...

    def builders(self, view: View) -> Mapping[str, MetaToolBuilder]:
        """How to build each meta-tool of this mode, by name, in the order of the list.

        A call needs one meta-tool, so the others are not built for it.
        """
        ...


def build_listed_meta_tools(mode: Mode, view: View) -> list[MetaTool]:
    """The meta-tools that a mode lists."""
    tools = [build(view) for build in mode.builders(view).values()]
    return [tool for tool in tools if tool.is_listed]


def object_schema(properties: JsonObject, required: Sequence[str] = ()) -> JsonObject:
    """The input schema of a meta-tool."""
    schema: JsonObject = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return schema


def needs_from_names(*keys: str) -> Callable[[JsonObject], list[LoadTarget]]:
    """For a meta-tool that takes a tool's name, or a list of names, under one of these keys."""

    def needs(arguments: JsonObject) -> list[LoadTarget]:
        given = next((arguments[key] for key in keys if key in arguments), None)
        names = given if isinstance(given, list) else [given]
        return [LoadTarget(name) for name in names if isinstance(name, str)]

    return needs


def needs_from_calls(arguments: JsonObject) -> list[LoadTarget]:
    """The tools, and perhaps their categories, that one call or several in `calls` name."""
    calls: Json = arguments.get("calls") or [arguments]
    needs: list[LoadTarget] = []
    for one in calls:
        if isinstance(one, dict):
            category, name = one.get("category"), one.get("tool", one.get("name"))
            needs.append(
                LoadTarget(
                    name if isinstance(name, str) else None,
                    category if isinstance(category, str) and category else None,
                )
            )
    return needs


# Shared by all boards: the schemas of meta-tools are the same everywhere.
_VALIDATORS = Validators(64)


def check_arguments(meta_tool: MetaTool, given: Json) -> JsonObject:
    """The arguments of a meta-tool, coerced and checked by the same validator as those of a tool.

    Raises:
        InvalidArguments: They do not fit; the message says what would be right.
    """
    validator = _VALIDATORS.get(meta_tool.name, meta_tool.accepts or meta_tool.parameters)
    arguments = coerce_arguments(meta_tool.name, given, validator)
    validator.check(arguments, meta_tool.name)
    return arguments


def find_tool(view: View, name: str, category: str | None = None) -> Tool:
    """The tool of that name; the error explains where the name is that of a meta-tool."""
    try:
        return resolve(view.catalog, name, category)
    except ToolNotFound as exc:
        if name in META_TOOL_NAMES:
            raise InvalidArguments(
                f"{name} is a meta-tool: call it directly, not through another one.", tool=name
            ) from exc
        raise


# Rejections: calls that were refused before they could be made ---------------------------------

MAX_RECORDED_NAME = 200


@contextmanager
def record_rejection(
    view: View, name: Json, arguments: Json, *, via: str | None = None
) -> Generator[None]:
    """Record an error in the block as a call of this name that was rejected.

    Everything that looks a tool up for a caller does so inside this block, because such a call
    never reaches dispatch, which records the others: an unknown name, a tool that is hidden from
    the caller (which looks the same), or a meta-tool that may not carry the tool's risk.
    """
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
            preview=preview_arguments(arguments),
            message=preview_message(exc.message),
        )
        record_event(view.observer, event)
        raise


# Risk: what a call meta-tool may carry ----------------------------------------------------------

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


def require_risk(view: View, tool: Tool, allowed: Risk | None, *, via: str) -> None:
    """Refuse a tool whose risk is above what a call tool may carry.

    Args:
        view: Its options have `dispatch_risk`.
        tool: What is to be called.
        allowed: The risk that the call tool was approved for; `None` for one that carries every
            risk under one name, for which `dispatch_risk` decides.
        via: The name of the call tool.

    Raises:
        NotPermitted: The risk is higher; the message says how to call the tool instead.
    """
    highest = allowed or _MAX_DISPATCH_RISK[view.options.dispatch_risk]
    if RISKS.index(tool.risk) <= RISKS.index(highest):
        return
    if allowed is not None:
        right = CALL_TOOL_BY_RISK[tool.risk]
        raise NotPermitted(
            f"{tool.name} is {tool.risk}: call it with {right}, not {via}.",
            tool=tool.name,
            expected=right,
        )
    is_strict = view.options.dispatch_risk == "read-only"
    what = "not read-only" if is_strict else "destructive"
    which = "calls only read-only tools" if is_strict else "does not call such tools"
    raise NotPermitted(
        f"{tool.name} is {what}, and {via} {which} here: call it directly by its name.",
        tool=tool.name,
    )
