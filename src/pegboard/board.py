"""`Pegboard`: the board that people write tools on.

It joins the registry (what there is), the index (how it is found) and dispatch (how it is called),
and hands each request a `View` of them. Heavy parts are imported when they are first needed, so
that a module which only decorates functions imports in milliseconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from pegboard.adapters.functions import Function, FunctionTools, Registration, ToolKeywords
from pegboard.core.calls import LOCAL, Call, Caller, CallRequest, CallResult, Outcome, Shape
from pegboard.core.json import Json, JsonObject
from pegboard.core.names import resolve
from pegboard.core.options import Options, make_options, refuse_unknown
from pegboard.core.policy import EVERYTHING, Policy
from pegboard.core.registry import Registry
from pegboard.core.schema_cache import SchemaCache
from pegboard.core.tools import Catalog, Category, Risk, Tool, group_of
from pegboard.errors import ConfigError, PegboardError, ToolNotFound, UpstreamUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.applications import Starlette

    from pegboard.core.search import Match, SearchIndex
    from pegboard.embed.finder import Finder
    from pegboard.faces.face import SessionDoor, View
    from pegboard.ports import Embedder, Handler, Layer, Source
    from pegboard.wiring import Parts

_INDEX = "index"
F = TypeVar("F", bound=Callable[..., Any])


class Pegboard:
    """A catalogue of tools that clients see through a face.

    Args:
        name: What the server is called.
        face: `eager`, `stub`, `index`, `hierarchy`, `proxy`, `dynamic`, or `auto` to let it choose.
        pins: Names of tools that every face lists as themselves.
        risk: `split` gives one call tool per risk, `single` one for all, `auto` splits when any
            tool
            is annotated.
        instructions: What the server tells a model about itself.
        version: The version that the server reports.
        policy: Who may see and call what; everybody everything where it is not given.
        embedder: What search understands tools and queries with; the model of the package unless
            another one is given.
        options: Any further field of `Options`.
    """

    def __init__(
        self,
        name: str = "pegboard",
        *,
        face: str = "auto",
        pins: Sequence[str] = (),
        risk: str = "auto",
        instructions: str | None = None,
        version: str = "",
        policy: Policy = EVERYTHING,
        embedder: Embedder | None = None,
        **options: Any,
    ) -> None:
        self.name = name
        self.instructions = instructions
        self.version = version
        self.options = make_options(face=face, pins=tuple(pins), risk=risk, **options)
        self.schema_cache = SchemaCache(time.monotonic)
        self._registry = Registry(time.monotonic)
        self._functions = FunctionTools(self.schema_cache)
        self._sources: dict[str, Source] = {}
        self.policy = policy
        """Who may see and call what; may be replaced at any time."""
        self._dispatch: Handler | None = None
        self.is_served = False
        """Whether clients are served: then vectors are made behind the answers."""
        self.embedder = embedder
        self.folder: Path | None = None
        """Where vectors and indexes are kept; `None` for the usual place. Set it before use."""
        self._source: str | None = None  # a hash of what all tools were read from
        self._has_own = False

    # Registering -------------------------------------------------------------------------------

    @overload
    def tool(self, name: F, /) -> F: ...

    @overload
    def tool(self, name: str | None = None, **given: Unpack[ToolKeywords]) -> Callable[[F], F]: ...

    def tool(self, name: Any = None, **given: Any) -> Any:
        """Register the decorated function as a tool and leave the function as it is.

        Works bare (`@board.tool`) and called (`@board.tool(category="issues")`); `ToolKeywords` has
        what can be said of a tool.
        """
        if callable(name):
            self._register(name, Registration())
            return name
        registration = make_registration(name=name, **given)

        def decorate(fn: F) -> F:
            self._register(fn, registration)
            return fn

        return decorate

    def category(self, name: str, *, description: str = "") -> CategoryHandle:
        """Make a category known, and get a handle that registers tools in it."""
        self._registry.describe_category(name, description)
        return CategoryHandle(self, name)

    def load(
        self,
        category: str,
        loader: Callable[[], Iterable[Tool | Function]],
        *,
        description: str = "",
    ) -> None:
        """Register a loader of tools or functions for a category: run once, on first use."""

        def run() -> list[Tool]:
            return [self._as_tool(item, category) for item in loader()]

        self._has_own = True
        self._registry.add_loader(category, run, description)

    def add(self, tool: Tool) -> Tool:
        """Register a ready-made tool; it must come from a source that can call it."""
        self._has_own = True
        return self._registry.add(self._with_risk(tool))

    def mount(
        self,
        sources: Mapping[str, Source],
        tools: Iterable[Tool],
        *,
        pending: Iterable[str] = (),
        source: str | None = None,
    ) -> None:
        """Take these as all tools of all servers.

        Args:
            sources: What calls them, by server.
            tools: The tools.
            pending: Servers whose tools are not known yet, so that clients hear of them.
            source: A hash of what the tools were read from, if there is one: with it the search
                index is found again at the next start.
        """
        self._sources = dict(sources)
        self._source = None
        self._registry.mount([self._with_risk(tool) for tool in tools], pending)
        self._source = source

    def reconfigure(self, options: Options) -> None:
        """Take other options; calls under way end as they began."""
        self.options = options
        self._dispatch = None

    def enable(self, name: str) -> None:
        """Switch a tool, or every tool of a category, on."""
        self._registry.switch(name, True)

    def disable(self, name: str) -> None:
        """Switch a tool, or every tool of a category, off: not listed, not found, not callable."""
        self._registry.switch(name, False)

    def on_change(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Have `listener` called whenever tools come, go or are switched; gives the way to stop."""
        return self._registry.subscribe(listener)

    def announce(self) -> None:
        """Tell those who listen that lists are to be asked for again."""
        self._registry.announce()

    def is_loaded(self, category: str) -> bool:
        """Whether a category's tools are there already."""
        return self._registry.is_loaded(category)

    # Reading -----------------------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        """The catalogue as it is now; runs loaders that have not run."""
        self._registry.load_all()
        return self._registry.snapshot()

    @property
    def known_catalog(self) -> Catalog:
        """The catalogue as far as it is loaded."""
        return self._registry.snapshot()

    @property
    def is_complete(self) -> bool:
        """Whether every loader has run."""
        return not self._registry.unloaded

    def tools(self, category: str | None = None, include_disabled: bool = False) -> list[Tool]:
        """All tools, or those of one category."""
        if category is None:
            self._registry.load_all()
        else:
            self.is_loaded(category)  # an unknown category is an error that lists the nearest
            self._registry.load(category)
        return [
            t
            for t in self._registry.snapshot()
            if (t.enabled or include_disabled) and category in (None, t.category)
        ]

    def categories(self) -> list[Category]:
        """All categories, with how many enabled tools each has."""
        return list(self.catalog.categories)

    def describe(self, *names: str) -> list[Tool]:
        """The tools of these names, in order.

        Raises:
            ToolNotFound: One is unknown; `.nearest` lists what was perhaps meant.
            AmbiguousName: One names several tools.
        """
        return [self.find(name) for name in names]

    def find(self, name: str) -> Tool:
        """The tool of one name; runs loaders only when no loaded tool has it."""
        try:
            return resolve(self._registry.snapshot(), name)
        except ToolNotFound:
            if not self._registry.unloaded:
                raise
        return resolve(self.catalog, name)

    def search(
        self,
        query: str,
        limit: int = 10,
        *,
        category: str | None = None,
        server: str | None = None,
        risk: Risk | None = None,
        include_disabled: bool = False,
    ) -> list[Match]:
        """The tools that fit a task in words, best first; empty when none does."""
        return self.index.search(
            query,
            limit,
            category=category,
            server=server,
            risk=risk,
            include_disabled=include_disabled,
        )

    @property
    def index(self) -> SearchIndex:
        """The search index of the catalogue as it is now."""
        if self.is_served:
            self.finder.start(lambda: self.parts.live.changes)
        catalog, source = self._catalog_and_source()
        return self.finder.index(catalog, source)

    @cached_property
    def finder(self) -> Finder:
        """Keeps the index current, and on disk."""
        from pegboard.embed.home import finder_in

        return finder_in(self.kept_in, self.embedder)

    @property
    def kept_in(self) -> Path:
        """The folder of vectors and indexes."""
        from pegboard.embed.home import home_folder

        return self.folder or home_folder(os.environ)

    @property
    def is_index_kept(self) -> bool:
        """Whether the index is on disk, so that the next start takes it from there."""
        return self.finder.is_kept

    def prepare(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Compute all vectors now, for tests and image builds; else they come behind the answers.

        Args:
            progress: Told how many vectors of how many are made.
        """
        catalog, source = self._catalog_and_source()
        self.finder.prepare(catalog, progress, source)

    def _catalog_and_source(self) -> tuple[Catalog, str | None]:
        """The catalogue and what it was read from, if that is known of all of it.

        Tools may be mounted in another thread meanwhile: then they are not taken for a pair.
        """
        _ = self.catalog  # whatever is loaded or listed by asking is there after this
        before = self._source
        catalog = self.catalog
        is_known = before == self._source and not self._has_own
        return catalog, before if is_known else None

    def _index_for(self, seen: Catalog) -> SearchIndex:
        """The index of what somebody sees: words of other tools must not weigh in its answers."""
        whole = self.index
        if seen is whole.catalog or self.policy.is_open:
            return whole
        index: SearchIndex | None = seen.memo.get(_INDEX)
        if index is None:
            index = seen.memo[_INDEX] = whole.updated(seen)
        return index

    def check(self) -> None:
        """Look over the whole board: related tools, pins, examples.

        Raises:
            ConfigError: A name of no tool, or an example that is not a valid call.
        """
        from pegboard.core.validation import check_examples

        self._registry.check()
        for name in self.options.pins:
            try:
                self.find(name)
            except PegboardError as exc:
                raise ConfigError(f"A pin names no tool: {exc.message}") from exc
        for tool in self._registry.snapshot():
            check_examples(tool)

    # Calling -----------------------------------------------------------------------------------

    async def call(
        self,
        name: str,
        arguments: JsonObject | str | None = None,
        include_fields: Sequence[str] | None = None,
        *,
        select: str | None = None,
        caller: Caller = LOCAL,
    ) -> CallResult:
        """Call a tool as a client would: checked, governed, and with the fields asked for.

        Raises:
            PegboardError: The call could not be made, or failed.
        """
        from pegboard.core.paths import parse_fields

        shape = Shape(parse_fields(include_fields), select)  # a bare text is a sequence too
        return await self.dispatch(self._call(name, arguments, shape, caller))

    async def call_many(
        self,
        calls: Sequence[CallRequest],
        *,
        max_concurrency: int = 16,
        deadline: float | None = None,
        caller: Caller = LOCAL,
    ) -> list[Outcome]:
        """Make several calls side by side: outcomes in order, each with its own error.

        Args:
            calls: `Call(name, arguments)` each.
            max_concurrency: How many run at the same time.
            deadline: Seconds for all of them; what has not finished then has a timeout as outcome.
            caller: On whose behalf.
        """
        from pegboard.core.paths import parse_fields
        from pegboard.dispatch.fanout import call_many, unmade

        prepared: list[Call | Outcome] = []
        for asked in calls:
            try:
                shape = Shape(parse_fields(asked.include_fields), asked.select)
                prepared.append(self._call(asked.name, dict(asked.arguments), shape, caller))
            except PegboardError as exc:
                prepared.append(unmade(asked.name, exc))
        made = [p for p in prepared if isinstance(p, Call)]
        ran = iter(
            await call_many(self.dispatch, made, max_concurrency=max_concurrency, deadline=deadline)
        )
        return [p if isinstance(p, Outcome) else next(ran) for p in prepared]

    @property
    def dispatch(self) -> Handler:
        """Carries out a call through every layer."""
        if self._dispatch is None:
            from pegboard.wiring import pipeline

            self._dispatch = pipeline(self.options, self.run_call, self.parts)
        return self._dispatch

    @cached_property
    def parts(self) -> Parts:
        """What dispatch is made with: the store, observers, further layers. Set it before use."""
        from pegboard.wiring import Parts

        return Parts(alternatives=self.alternatives, is_closed=self.is_closed, layers=(self.guard,))

    @property
    def guard(self) -> Layer:
        """The layer that refuses calls of tools that their caller may not see."""
        from pegboard.dispatch.guard import guard

        return guard(lambda: self.policy, self._registry.snapshot)

    def alternatives(self, call: Call) -> list[Tool]:
        """Tools to suggest while one is out of order: its related ones, then those most like it."""
        catalog = self.policy.visible(self._registry.snapshot(), call.caller)
        related = [t for name in call.tool.related for t in catalog.named(name)]
        return related or [t for t in catalog.group(group_of(call.tool)) if t.id != call.tool.id]

    def is_closed(self, tool: Tool) -> bool:
        """Whether a tool takes no parameters but those in its schema, as Python functions do."""
        return tool.server is None

    async def run_call(self, call: Call) -> CallResult:
        """The innermost handler: hand the call to where its tool comes from."""
        source = self._sources.get(call.tool.server or "")
        if source is not None:
            return await source.call(call)
        result = await self._functions.call(call)
        if result is not None:
            return result
        raise UpstreamUnavailable(
            f"{call.tool.name} is only described here, by a catalogue file: it cannot be called.",
            tool=call.tool.name,
        )

    async def view(
        self,
        caller: Caller = LOCAL,
        *,
        session: SessionDoor | None = None,
        structured: bool = False,
        params: Mapping[str, Json] | None = None,
        request: object | None = None,
        whole: bool = True,
    ) -> View:
        """The board as one caller sees it on one request; `whole` runs pending loaders."""
        from anyio import to_thread

        from pegboard.dispatch.fanout import call_many
        from pegboard.faces.face import View
        from pegboard.wiring import resource_reader, result_reader

        async def fan_out(calls: Sequence[Call]) -> list[Outcome]:
            return await call_many(
                self.dispatch,
                calls,
                max_concurrency=self.options.max_parallel,
                deadline=self.options.fan_out_deadline,
            )

        notes: tuple[str, ...] = ()
        if whole and self._registry.unloaded:
            failures = await to_thread.run_sync(self._registry.load_all)
            grant = self.policy.grant(caller)
            notes = tuple(why for name, why in failures.items() if grant.allows_group(name))
        seen = self.policy.visible(self._registry.snapshot(), caller)
        constant = self._registry.without_loaded()
        return View(
            catalog=seen,
            options=self.options,
            index=lambda: self._index_for(seen),
            dispatch=self.dispatch,
            fan_out=fan_out if self.options.fan_out else None,
            read_result=result_reader(self.options, self.parts),
            read_resource=resource_reader(self.options, self.parts),
            session=session,
            caller=caller,
            constant=None if constant is None else self.policy.visible(constant, caller),
            is_complete=self.is_complete,
            observer=self.parts.observer,
            count=self.parts.count,
            notes=notes,
            structured=structured or self.options.structured,
            params=params or {},
            request=request,
        )

    # Serving -----------------------------------------------------------------------------------

    def run(self, *, http: str | None = None) -> None:
        """Serve until stopped: on standard input and output, or on `http="127.0.0.1:8000"`."""
        from pegboard.server.serve import run

        run(self, http=http)

    async def serve_stdio(self) -> None:
        """Serve one client on standard input and output."""
        from pegboard.server.serve import serve_stdio

        await serve_stdio(self)

    def asgi(self, host: str = "127.0.0.1", **page: Any) -> Starlette:
        """An ASGI application with `/mcp`, `/mcp/<face>` and the page at `/`.

        Args:
            host: The address that it will listen on; requests that name another are refused.
            page: Fields of `pegboard.web.Panel` that differ from the usual, such as `identify`.
        """
        from pegboard.server.serve import http_app
        from pegboard.web import page_routes, panel_of

        return http_app(self, *page_routes(panel_of(self, self.parts, **page)), host=host)

    @classmethod
    def from_catalog(cls, path: str | Path, **options: Any) -> Pegboard:
        """A board of the tools in a file: listed, searched and described, not called."""
        from pathlib import Path

        from pegboard.adapters.catalog_file import CatalogFile

        board = cls(options.pop("name", None) or Path(path).stem, **options)
        found = CatalogFile.read(path)
        for tool in found.tools:
            board.add(tool)
        board._source, board._has_own = found.hash, False
        return board

    @classmethod
    def from_config(cls, path: str | Path, **settings: Any) -> Pegboard:
        """A board of the servers and APIs that a configuration names; nothing is started for it.

        Tools are known from the last time the servers were listed; those never listed are started
        and listed on first use. A call starts its server, and ends it unless the board is running:
        `async with board:` keeps servers between calls, `board.run()` serves it as a gateway.

        Args:
            path: `pegboard.toml`, or the file that an MCP client keeps its servers in.
            settings: Top-level settings that win over the file's, such as `face`.

        Raises:
            ConfigError: The file cannot be read or understood.
        """
        # By name, because a gateway is made of boards and not the other way round.
        from importlib import import_module

        return import_module("pegboard.gateway.board").GatewayBoard.open(path, **settings)

    # Inside ------------------------------------------------------------------------------------

    def _register(self, fn: Function, registration: Registration) -> Tool:
        return self.add(self._functions.make(fn, registration))

    def _as_tool(self, item: Tool | Function, category: str) -> Tool:
        if isinstance(item, Tool):
            return self._with_risk(replace(item, category=item.category or category))
        return self._with_risk(self._functions.make(item, Registration(category=category)))

    def _with_risk(self, tool: Tool) -> Tool:
        """Configured rules win over what a tool says of itself."""
        for pattern, risk in self.options.risk_rules.items():
            if fnmatchcase(tool.id, pattern) or fnmatchcase(tool.name, pattern):
                return replace(tool, risk=risk)
        return tool

    def _call(
        self, name: str, arguments: JsonObject | str | None, shape: Shape, caller: Caller
    ) -> Call:
        given: Any = {} if arguments is None else arguments
        tool = self.find(name) if self.policy.is_open else self._find_for(caller, name)
        return Call(tool, given, shape=shape, caller=caller)

    def _find_for(self, caller: Caller, name: str) -> Tool:
        try:
            return resolve(self.policy.visible(self._registry.snapshot(), caller), name)
        except ToolNotFound:
            return resolve(self.policy.visible(self.catalog, caller), name)


class CategoryHandle:
    """A category of a board; registers tools in it."""

    def __init__(self, board: Pegboard, name: str) -> None:
        self._board = board
        self.name = name

    @overload
    def tool(self, name: F, /) -> F: ...

    @overload
    def tool(self, name: str | None = None, **given: Unpack[ToolKeywords]) -> Callable[[F], F]: ...

    def tool(self, name: Any = None, **given: Any) -> Any:
        """Like `Pegboard.tool`, in this category."""
        if callable(name):
            return self._board.tool(category=self.name)(name)
        return self._board.tool(name, **{**given, "category": self.name})


def make_registration(**given: Any) -> Registration:
    """What a decorator says, or an error that names the nearest known keyword."""
    refuse_unknown(given, Registration, "keyword")
    return Registration(**given)
