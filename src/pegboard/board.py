"""`Pegboard`: the board that people write tools on.

It joins registering (what there is), finding (by which words) and calling (through which layers),
and hands each request a view of them. Heavy parts are imported when they are first needed, so that
a module which only decorates functions imports in milliseconds.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, overload

from pegboard.adapters.functions import FunctionTools, ToolKeywords
from pegboard.calling import Calling, build_shape, is_closed
from pegboard.core import defaults
from pegboard.core.caches import SchemaCache
from pegboard.core.calls import LOCAL_CALLER, Call, Caller, CallResult, Outcome, ToolCall
from pegboard.core.json import JsonObject
from pegboard.core.options import Options, make_options
from pegboard.core.policy import ALLOW_ALL, Policy
from pegboard.core.risk import any_risk_declared
from pegboard.core.tool_names import resolve
from pegboard.core.tool_registry import LoadTarget, Registry
from pegboard.core.tools import Catalog, Category, Risk, Tool
from pegboard.errors import ConfigError
from pegboard.finding import Finding
from pegboard.registering import CategoryHandle, F, Loader, Registering

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.applications import Starlette

    from pegboard.core.search import Match, SearchIndex
    from pegboard.embed.live_index import LiveIndex
    from pegboard.modes.mode import View, ViewRequest
    from pegboard.pipeline import Parts
    from pegboard.ports import Embedder, Handler, Layer, Source
    from pegboard.server.auth import Auth
    from pegboard.server.board_operations import Operations


class Pegboard:
    """A catalogue of tools that clients see through a mode.

    Args:
        name: What the server is called.
        mode: `eager`, `stub`, `index`, `hierarchy`, `proxy`, `dynamic`, or `auto` to let it choose.
        pins: Names of tools that every mode lists as themselves.
        risk: `split` gives one call tool per risk, `single` one for all, `auto` splits when any
            tool is annotated as the first client asks.
        instructions: What the server tells a model about itself.
        version: The version that the server reports; Pegboard's own where it is not given.
        policy: Who may see and call what; everybody everything where it is not given.
        embedder: What search understands tools and queries with; the model of the package unless
            another one is given.
        options: Any further field of `Options`.
    """

    def __init__(
        self,
        name: str = "pegboard",
        *,
        mode: str = "auto",
        pins: Sequence[str] = (),
        risk: str = "auto",
        instructions: str | None = None,
        version: str = "",
        policy: Policy = ALLOW_ALL,
        embedder: Embedder | None = None,
        **options: Any,
    ) -> None:
        self.name = name
        self.instructions = instructions
        self.version = version
        self.options = make_options(mode=mode, pins=tuple(pins), risk=risk, **options)
        self.schema_cache = SchemaCache(
            time.monotonic,
            capacity=self.options.schema_cache_size,
            ttl=self.options.schema_cache_ttl,
        )
        self._registry = Registry(time.monotonic)
        self._splits_risk: bool | None = None
        self.server_instructions: Mapping[str, str] = {}
        """What servers say of how their tools are used, by server: clean, short, on one line."""
        self.policy = policy
        """Who may see and call what; may be replaced at any time."""
        self.is_served = False
        """Whether clients are served: then vectors are made behind the answers."""
        self.operations: Operations | None = None
        """Its rollout and metrics, once it is served."""
        self.embedder = embedder
        self.folder: Path | None = None
        """Where vectors and indexes are kept; `None` for the usual place. Set it before use."""
        functions = FunctionTools(self.schema_cache)
        self._registering = Registering(self._registry, functions, lambda: self.options)
        self._finding = Finding(self, self._registering)
        self._calling = Calling(self, functions)

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
        return self._registering.decorate(name, given)

    def category(self, name: str, *, description: str = "") -> CategoryHandle:
        """Make a category known, and get a handle that registers tools in it."""
        self._registry.describe_category(name, description)
        return CategoryHandle(self._registering, name)

    def load(self, category: str, loader: Loader, *, description: str = "") -> None:
        """Register a loader of tools or functions for a category: run once, on first use."""
        self._registering.load(category, loader, description)

    def add(self, tool: Tool) -> Tool:
        """Register a ready-made tool; it must come from a source that can call it."""
        return self._registering.add(tool)

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
        self._calling.sources = dict(sources)
        self._finding.source = None
        self._registering.mount(tools, pending)
        self._finding.source = source

    def reconfigure(self, options: Options) -> None:
        """Take other options; calls under way end as they began."""
        self.options = options
        self._calling.renew()

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

    @property
    def splits_risk(self) -> bool:
        """Whether `risk="auto"` means one call tool for each risk.

        Decided when the board is first looked at, so that the list does not change with its tools.
        """
        return bool(self._splits_risk)

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
        return self._registry.tools(category, include_disabled=include_disabled)

    def categories(self) -> list[Category]:
        """All categories, with how many enabled tools each has."""
        return list(self.catalog.categories)

    def describe(self, *names: str) -> list[Tool]:
        """The tools of these names, in order.

        Raises:
            ToolNotFound: One is unknown; `.nearest` lists what was perhaps meant.
            AmbiguousName: One names pluralize tools.
        """
        return [self.find(name) for name in names]

    def find(self, name: str) -> Tool:
        """The tool of one name; runs no loader but the one of the category that it names.

        All run only for a bare name that no loaded tool has.
        """
        if not self.known_catalog.matching(name):
            self.load_named(name)
        return resolve(self.known_catalog, name)

    def load_named(self, name: str, caller: Caller = LOCAL_CALLER) -> None:
        """Run the loaders that may give the caller a tool of this name."""
        self._registry.load_for(
            [LoadTarget(name)], lambda whole: self.policy.visible(whole, caller)
        )

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
        return self._finding.index

    @property
    def finder(self) -> LiveIndex:
        """Keeps the index current, and on disk."""
        return self._finding.finder

    @property
    def kept_in(self) -> Path:
        """The folder of vectors and indexes."""
        return self._finding.kept_in

    @property
    def is_index_kept(self) -> bool:
        """Whether the index is on disk, so that the next start takes it from there."""
        return self.finder.is_kept

    def prepare(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Compute all vectors now, for tests and image builds; else they come behind the answers.

        Args:
            progress: Told how many vectors of how many are made.
        """
        self._finding.prepare(progress)

    def check(self) -> None:
        """Look over the whole board: related tools, pins, examples.

        Raises:
            ConfigError: A name of no tool, or an example that is not a valid call.
        """
        self._registering.check(self.options.pins, self.find)

    # Calling -----------------------------------------------------------------------------------

    async def call(
        self,
        name: str,
        arguments: JsonObject | str | None = None,
        include_fields: Sequence[str] | None = None,
        *,
        select: str | None = None,
        caller: Caller = LOCAL_CALLER,
    ) -> CallResult:
        """Call a tool as a client would: checked, governed, and with the fields asked for.

        Raises:
            PegboardError: The call could not be made, or failed.
        """
        shape = build_shape(include_fields, select)
        return await self.dispatch(self._calling.make(name, arguments, shape, caller))

    async def call_many(
        self,
        calls: Sequence[Call],
        *,
        max_concurrency: int = defaults.FAN_OUT_CONCURRENCY,
        deadline: float | None = None,
        caller: Caller = LOCAL_CALLER,
    ) -> list[Outcome]:
        """Make pluralize calls side by side: outcomes in order, each with its own error.

        Args:
            calls: `Call(name, arguments)` each.
            max_concurrency: How many run at the same time.
            deadline: Seconds for all of them; what has not finished then has a timeout as outcome.
            caller: On whose behalf.
        """
        return await self._calling.call_many(
            calls, caller, max_concurrency=max_concurrency, deadline=deadline
        )

    @property
    def dispatch(self) -> Handler:
        """Carries out a call through every layer."""
        return self._calling.dispatch

    @property
    def parts(self) -> Parts:
        """What dispatch is made with: the store, observers, further layers. Set it before use."""
        return self._calling.parts

    @parts.setter
    def parts(self, parts: Parts) -> None:
        self._calling.parts = parts

    @property
    def guard(self) -> Layer:
        """The layer that refuses calls of tools that their caller may not see."""
        return self._calling.guard

    def alternatives(self, call: ToolCall) -> list[Tool]:
        """Tools to suggest while one is out of order: its related ones, then those most like it."""
        return self._calling.alternatives(call)

    def is_closed(self, tool: Tool) -> bool:
        """Whether a tool takes no parameters but those in its schema, as Python functions do."""
        return is_closed(tool)

    async def run_call(self, call: ToolCall) -> CallResult:
        """The innermost handler: hand the call to where its tool comes from."""
        return await self._calling.run(call)

    async def view(self, caller: Caller = LOCAL_CALLER, **asked: Unpack[ViewRequest]) -> View:
        """The board as one caller sees it on one request; `whole` runs pending loaders."""
        from pegboard.viewing import build_view

        if self._splits_risk is None:
            self._splits_risk = any_risk_declared(self.known_catalog, self.options.risk_rules)
        view = await build_view(self, self._registry, self._finding, caller, asked)
        mode = self.operations.rollouts.mode_for(caller) if self.operations is not None else None
        return view if mode is None else replace(view, options=replace(view.options, mode=mode))

    # Serving -----------------------------------------------------------------------------------

    def run(self, *, http: str | None = None) -> None:
        """Serve until stopped: on standard input and output, or on `http="127.0.0.1:8000"`.

        What is wrong with the board, its environment or the address is written to standard error,
        and the process ends with status 3.
        """
        from pegboard.server.serving import run_board

        try:
            run_board(self, http=http)
        except ConfigError as exc:
            sys.stderr.write(f"error: {exc.message}\n")
            raise SystemExit(3) from exc

    async def serve_stdio(self) -> None:
        """Serve one client on standard input and output."""
        from pegboard.server.serving import serve_stdio

        await serve_stdio(self)

    def asgi(
        self,
        host: str = "127.0.0.1",
        *,
        environ: Mapping[str, str] | None = None,
        auth: Auth | None = None,
        **page: Any,
    ) -> Starlette:
        """An ASGI application with `/mcp`, `/mcp/<mode>`, the page at `/`, and what operators need.

        That is `/health`, `/ready`, with `metrics=True` also `/metrics`, and a rollout on the page.

        Args:
            host: The address that it will listen on; requests that name another are refused.
            environ: Where `PEGBOARD_MODE` and `ALWAYS_AVAILABLE_TOOLS` are, if not in that of the
                process.
            auth: How callers of `/mcp` are asked who they are; the page has `identify`.
            page: Fields of `pegboard.dashboard.Dashboard` to override, such as `identify`.
        """
        from pegboard.dashboard import build_dashboard, dashboard_routes, metrics_route
        from pegboard.dashboard.rollout_page import rollout_section
        from pegboard.server.board_operations import Operations
        from pegboard.server.serving import board_app
        from pegboard.store.fallback import decision_store

        operations = Operations.of(self)
        sections = (rollout_section(decision_store(self.parts.store)),)
        page = {"sections": sections, "observer": self.parts.observer, **page}
        panel = build_dashboard(self, self.parts, **page)
        routes = [*dashboard_routes(panel), *operations.routes(names_nothing=auth is not None)]
        if operations.metrics is not None:
            routes.append(metrics_route(panel, operations.metrics))
        around = os.environ if environ is None else environ
        return board_app(self, *routes, host=host, environ=around, auth=auth)

    @classmethod
    def from_catalog(cls, path: str | Path, **options: Any) -> Pegboard:
        """A board of the tools in a file: listed, searched and described, not called."""
        from pathlib import Path

        from pegboard.adapters.catalog_file import CatalogFile

        board = cls(options.pop("name", None) or Path(path).stem, **options)
        found = CatalogFile.read(path)
        for tool in found.tools:
            board.add(tool)
        board._registering.has_own, board._finding.source = False, found.hash
        return board

    @classmethod
    def from_config(cls, path: str | Path, **settings: Any) -> Pegboard:
        """A board of the servers and APIs that a configuration names; opening it starts nothing.

        Tools are known from the last time the servers were listed; those never listed are started
        and listed on first use. A call starts its server, and ends it unless the board is running:
        `async with board:` keeps servers between calls, `board.run()` serves it as a gateway.

        Args:
            path: `pegboard.toml`, or the file that an MCP client keeps its servers in.
            settings: Top-level settings that win over the file's, such as `mode`.

        Raises:
            ConfigError: The file cannot be read or understood.
        """
        # By name, because a gateway is made of boards and not the other way round.
        from importlib import import_module

        return import_module("pegboard.gateway.gateway_board").GatewayBoard.open(path, **settings)
