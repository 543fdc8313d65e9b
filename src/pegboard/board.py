"""`Pegboard`: the board that people write tools on.

    BoardCatalog   the tools: registered, read, searched           (`board_catalog`)
    Pegboard       and what is done with them: called, viewed by one caller, served

        await board.call(name, ...)      a call from Python
        await board.view(caller)         what one request of a client may see and do
                     │
                     ▼
             Dispatcher                  every layer of a call, built once     (`pipeline`)
                     │
                     ▼
             board.run_call              the innermost: the function, or the source of the server

Heavy parts are imported when they are first needed, so that a module which only decorates functions
imports in milliseconds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Unpack

from pegboard.board_catalog import BoardCatalog
from pegboard.core import defaults
from pegboard.core.calls import (
    LOCAL_CALLER,
    Call,
    Caller,
    CallResult,
    Outcome,
    ResultShape,
    ToolCall,
)
from pegboard.core.json import JsonObject
from pegboard.core.name_lookup import resolve
from pegboard.core.options import ModeName, Options, make_options
from pegboard.core.policy import ALLOW_ALL, Policy
from pegboard.core.risk import any_risk_declared
from pegboard.core.tools import Catalog, Tool, group_name
from pegboard.errors import ConfigError, ToolNotFound, UpstreamUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.applications import Starlette

    from pegboard.core.search import SearchIndex
    from pegboard.dispatch.learned_searches import LearnedSearches
    from pegboard.modes.mode import View, ViewRequest
    from pegboard.observe.rollouts import RolloutTracker
    from pegboard.pipeline import Dispatcher, Parts
    from pegboard.ports import Embedder, Handler, Layer, Source
    from pegboard.programs.scope import AskConsent
    from pegboard.server.auth import Auth
    from pegboard.server.board_operations import BoardOperations


class Pegboard(BoardCatalog):
    """A catalog of tools that clients see in a mode.

    Args:
        name: The name of the server.
        mode: `eager`, `stub`, `index`, `hierarchy`, `proxy`, `dynamic`, or `auto` to let it choose.
        pins: Names of tools that every mode lists directly.
        risk: `split` gives one call tool per risk, `single` one for all, `auto` splits when any
            tool is annotated at the time of the first request.
        instructions: What the server tells a model about itself.
        version: The version that the server reports; that of Pegboard by default.
        policy: Who may see and call what; everybody may do everything by default.
        embedder: Computes the vectors of tools and queries; the bundled model by default.
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
        # Checked here, so that a mistake is reported where the board is made and not at the first
        # call.
        shown = make_options(mode=mode, pins=tuple(pins), risk=risk, **options)
        super().__init__(shown, policy, embedder)
        self.name = name
        self.instructions = instructions
        self.version = version
        self.server_instructions: Mapping[str, str] = {}
        """How each server says its tools are used: sanitized, short, on one line."""
        self.place = name
        """What distinguishes this board from others in the same data folder."""
        self.is_served = False
        """Whether clients are served: then vectors are computed in the background."""
        self.operations: BoardOperations | None = None
        """Its rollout and metrics, once it is served."""
        self.rollouts: RolloutTracker | None = None
        """Decides the mode of some callers, while a rollout is under way."""
        self._sources: Mapping[str, Source] = {}
        self._has_risk: bool | None = None
        self._parts: Parts | None = None
        self._dispatcher: Dispatcher | None = None

    def mount(
        self,
        sources: Mapping[str, Source],
        tools: Iterable[Tool],
        *,
        pending: Iterable[str] = (),
        source: str | None = None,
    ) -> None:
        """Replace all tools of all servers.

        Args:
            sources: What calls them, by server.
            tools: The tools.
            pending: Servers whose tools are not known yet, so that clients learn of them.
            source: A hash of what the tools were read from, if there is one: with it the search
                index is found again at the next start.
        """
        self._sources = dict(sources)
        self._mount(tools, pending, source)

    def reconfigure(self, options: Options) -> None:
        """Use other options; calls under way finish with the earlier ones."""
        self.options = options
        # Built again by the next call: a call under way holds on to the one that it began with.
        self._dispatcher = None

    @property
    def index(self) -> SearchIndex:
        """The search index of the whole catalog."""
        if self.is_served:
            self.live_index.start(lambda: self.parts.live.changes)
        return super().index

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
        """Call a tool as a client would, with all checks, and return the requested fields.

        Raises:
            PegboardError: The call could not be made, or failed.
        """
        made = self._make_call(name, arguments, include_fields, select, caller)
        return await self.dispatch(made)

    async def call_many(
        self,
        calls: Sequence[Call],
        *,
        max_concurrency: int = defaults.FAN_OUT_CONCURRENCY,
        deadline: float | None = None,
        caller: Caller = LOCAL_CALLER,
    ) -> list[Outcome]:
        """Make several calls in parallel: outcomes in order, each with its own error.

        Args:
            calls: `Call(name, arguments)` each.
            max_concurrency: How many run at the same time.
            deadline: Seconds for all of them; a call that has not finished then times out.
            caller: On whose behalf.
        """
        from pegboard.dispatch.fan_out import call_requests

        def make(one: Call) -> ToolCall:
            arguments = dict(one.arguments)
            return self._make_call(one.name, arguments, one.include_fields, one.select, caller)

        return await call_requests(
            self.dispatch, calls, make, max_concurrency=max_concurrency, deadline=deadline
        )

    async def run_code(
        self,
        program: str,
        write: bool = False,
        after: str | None = None,
        *,
        consent: AskConsent | None = None,
        caller: Caller = LOCAL_CALLER,
    ) -> CallResult:
        """Run a Python program that calls tools by name; its result is the structured content.

        Args:
            program: `rows = await list_issues(); len(rows)`: the last expression is the result.
            write: Whether it may call tools that are not read-only.
            after: The handle of a run that stopped; calls that it completed are not repeated.
            consent: Decides about destructive calls, which are listed in its argument's `calls`.
                Without it the run is suspended in front of them, for `resume_run`.
            caller: On whose behalf.

        Returns:
            The result; if the program did not finish, an error with
            `{ran, line, message, done, after}`.

        Raises:
            ConfigError: The extra `pegboard[code]` is not installed.
        """
        from pegboard.programs.scope import RunRequest

        request = RunRequest(program=program, may_write=write, after=after, consent=consent)
        view = await self.view(caller)
        return await self.dispatcher.run_program(view, request, is_library=True)

    async def resume_run(
        self,
        run: str,
        *,
        consent: AskConsent | None = None,
        caller: Caller = LOCAL_CALLER,
    ) -> CallResult:
        """Continue a run that waits for consent; calling this gives the consent.

        Args:
            run: The handle that `run_code` gave as `run`.
            consent: Decides about further destructive calls, if the program makes others than it
                was suspended for.
            caller: Who started the run.

        Raises:
            InvalidArguments: The run is unknown, expired, was continued, or is somebody else's.
        """
        from pegboard.programs.scope import RunRequest

        request = RunRequest(resume=run, has_consent=True, may_write=True, consent=consent)
        view = await self.view(caller)
        return await self.dispatcher.run_program(view, request, is_library=True)

    def _make_call(
        self,
        name: str,
        arguments: JsonObject | str | None,
        include_fields: Sequence[str] | None,
        select: str | None,
        caller: Caller,
    ) -> ToolCall:
        """The call of the tool that a name means to the caller."""
        from pegboard.core.results.paths import parse_fields

        if self.policy.is_open:
            tool = self.find(name)
        else:
            # Only among the tools that the caller may see: an error must not name others.
            try:
                tool = resolve(self.policy.visible(self.known_catalog, caller), name)
            except ToolNotFound:
                self.load_named(name, caller)
                tool = resolve(self.policy.visible(self.known_catalog, caller), name)
        given: Any = {} if arguments is None else arguments
        shape = ResultShape(parse_fields(include_fields), select)
        return ToolCall(tool, given, shape=shape, caller=caller)

    async def run_call(self, call: ToolCall) -> CallResult:
        """The innermost handler: run a call where its tool comes from.

        Raises:
            UpstreamUnavailable: The tool comes from a catalog file, which runs nothing.
        """
        # Tools of servers and APIs have a source each; what is left are functions of this process.
        source = self._sources.get(call.tool.server or "")
        if source is not None:
            return await source.call(call)
        result = await self._functions.call(call)
        if result is not None:
            return result
        raise UpstreamUnavailable(
            f"{call.tool.name} is only described here, by a catalog file: it cannot be called.",
            tool=call.tool.name,
        )

    @property
    def dispatch(self) -> Handler:
        """Carries out a call through every layer."""
        return self.dispatcher.call

    @property
    def dispatcher(self) -> Dispatcher:
        """Every layer of a call, for the options and parts as they are now."""
        if self._dispatcher is None:
            # Here and below: `import pegboard` must stay fast, and scripts that only register need
            # no layers.
            from pegboard.pipeline import Dispatcher, build_pipeline

            handler = build_pipeline(self.options, self.run_call, self.parts)
            self._dispatcher = Dispatcher(self.options, self.parts, handler)
        return self._dispatcher

    @property
    def parts(self) -> Parts:
        """What the layers are built with: the store, observers, further layers.

        Setting it rebuilds the layers; calls under way finish with the earlier ones.
        """
        if self._parts is None:
            from pegboard.dispatch.learned_shapes import SHAPES_FOLDER, LearnedShapes
            from pegboard.pipeline import Parts

            self._parts = Parts(
                alternatives=self.alternatives,
                is_closed=self.is_closed,
                shapes=LearnedShapes(lambda: self.index_folder / SHAPES_FOLDER),
                searches=self.searches,
                layers=(self.guard,),
            )
        return self._parts

    @cached_property
    def searches(self) -> LearnedSearches:
        """What search has learned from calls on this board."""
        from pegboard.dispatch.learned_searches import LearnedSearches, board_folder

        return LearnedSearches(
            lambda: board_folder(self.index_folder, self.place),
            learning=lambda: self.options.learn_searches,
            stores_queries=lambda: self.options.store_queries,
        )

    @parts.setter
    def parts(self, parts: Parts) -> None:
        self._parts, self._dispatcher = parts, None

    @property
    def guard(self) -> Layer:
        """The layer that refuses calls to tools that their caller may not see."""
        from pegboard.dispatch.permissions import check_permissions

        return check_permissions(lambda: self.policy, lambda: self.known_catalog)

    def alternatives(self, call: ToolCall) -> list[Tool]:
        """Tools to suggest while one is failing: its related ones, else those of its category."""
        catalog = self.policy.visible(self.known_catalog, call.caller)
        related = catalog.related(call.tool)
        return related or [t for t in catalog.group(group_name(call.tool)) if t.id != call.tool.id]

    def is_closed(self, tool: Tool) -> bool:
        """Whether a tool accepts only the parameters in its schema, as Python functions do."""
        return tool.server is None

    # Viewing -----------------------------------------------------------------------------------

    async def view(self, caller: Caller = LOCAL_CALLER, **request: Unpack[ViewRequest]) -> View:
        """The board as one caller sees it on one request; `whole` runs pending loaders."""
        policy = ALLOW_ALL if request.get("everything") else self.policy
        notes = await self._run_loaders(policy, caller, request)
        if self._has_risk is None:
            # Once and for all, so that a list does not change when tools are added.
            self._has_risk = any_risk_declared(self.known_catalog, self.options.risk_rules)
        options = self.options
        if self.rollouts is not None and (mode := self.rollouts.mode_for(caller)) is not None:
            options = replace(options, mode=mode)
        visible = policy.visible(self.known_catalog, caller)
        constant = self._registry.constant_snapshot()
        return self.dispatcher.view(
            visible,
            caller,
            request,
            options=options,
            index=lambda: self.index if self.policy.is_open else self.index.restricted_to(visible),
            has_risk=self._has_risk,
            constant=None if constant is None else policy.visible(constant, caller),
            is_complete=self.is_complete,
            notes=notes,
            instructions=self.server_instructions,
        )

    def expected_mode(
        self, caller: Caller, listed: Catalog | None = None, *, is_complete: bool = True
    ) -> ModeName:
        """The mode that a caller will get, by the tools that are known now.

        Args:
            caller: Who asks.
            listed: The catalog that lists are made of, where a gateway has fixed it.
            is_complete: False while servers are missing.
        """
        from pegboard.modes.auto import choose_mode

        constant = listed or self._registry.constant_snapshot()
        catalog = self.policy.visible(constant or self.known_catalog, caller)
        wanted = self.rollouts.mode_for(caller) if self.rollouts is not None else None
        complete = is_complete and constant is None and self.is_complete
        return choose_mode(
            caller.mode or wanted or self.options.mode,
            caller,
            catalog,
            self.options,
            complete=complete,
        )

    async def _run_loaders(
        self, policy: Policy, caller: Caller, request: ViewRequest
    ) -> tuple[str, ...]:
        """Run the loaders that a request needs; why some failed, as far as the caller may know."""
        registry, needs = self._registry, request.get("needs")

        def visible(whole: Catalog) -> Catalog:
            return policy.visible(whole, caller)

        if needs is None:
            unloaded = registry.unloaded if request.get("whole", True) else ()
            load = registry.load_all
        else:
            unloaded = registry.categories_to_load(needs, visible)
            load = partial(registry.load_needed, needs, visible)
        if not unloaded:
            return ()
        from anyio import to_thread

        # A loader is somebody else's code, which may block: other requests must not wait for it.
        failures = await to_thread.run_sync(load)
        grant = policy.grant(caller)
        return tuple(why for name, why in failures.items() if grant.allows_group(name))

    # Serving -----------------------------------------------------------------------------------

    def run(self, *, http: str | None = None) -> None:
        """Serve until stopped: on standard input and output, or on `http="127.0.0.1:8000"`.

        An error in the board, its environment or the address is written to standard error, and the
        process exits with status 3.
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
        **dashboard: Any,
    ) -> Starlette:
        """An ASGI application with `/mcp`, `/mcp/<mode>`, the dashboard at `/`, and probes.

        The probes are `/health` and `/ready`; `metrics=True` adds `/metrics`. The dashboard shows
        the rollout that is under way.

        Args:
            host: The address that it will listen on; requests for another host are refused.
            environ: Has `PEGBOARD_MODE` and `ALWAYS_AVAILABLE_TOOLS`; that of the process by
                default.
            auth: Authenticates callers of `/mcp`; the dashboard has `identify`.
            dashboard: Fields of `pegboard.dashboard.Dashboard` to override, such as `identify`.
        """
        from pegboard.dashboard import build_dashboard, dashboard_routes, metrics_route
        from pegboard.dashboard.rollout_page import rollout_section
        from pegboard.server.board_operations import get_operations
        from pegboard.server.serving import board_app
        from pegboard.store.fallback import decision_store
        from pegboard.store.memory import MemoryStore

        operations = get_operations(self)
        store = self.parts.store
        # A rollout compares groups of callers, and a single user has none.
        is_shared = (
            auth is not None or "identify" in dashboard or not isinstance(store, MemoryStore)
        )
        sections = (rollout_section(decision_store(store)),) if is_shared else ()
        fields = {"sections": sections, "observer": self.parts.observer, **dashboard}
        shown = build_dashboard(self, self.parts, **fields)
        routes = [*dashboard_routes(shown), *operations.routes(names_nothing=auth is not None)]
        if operations.metrics is not None:
            routes.append(metrics_route(shown, operations.metrics))
        environ = os.environ if environ is None else environ
        return board_app(self, *routes, host=host, environ=environ, auth=auth)

    @classmethod
    def from_catalog(cls, path: str | Path, **options: Any) -> Pegboard:
        """A board of the tools in a file: listed, searched and described, not called."""
        from pathlib import Path

        from pegboard.adapters.catalog_file import CatalogFile

        board = cls(options.pop("name", None) or Path(path).stem, **options)
        found = CatalogFile.read(path)
        for tool in found.tools:
            board.add(tool)
        # All tools are from the file, so its hash names the search index that was saved for them.
        board._has_own_tools, board._catalog_hash = False, found.hash
        return board

    @classmethod
    def from_config(cls, path: str | Path, **settings: Any) -> Pegboard:
        """A board of the servers and APIs that a configuration names; opening it starts nothing.

        The catalog is the one of the last time that the servers were listed; a server that was
        never listed is started and listed on first use. A call starts its server, and stops it
        unless the board is running: `async with board:` keeps servers running between calls,
        `board.run()` serves the board as a gateway.

        Args:
            path: `pegboard.toml`, or the file in which an MCP client has its servers.
            settings: Top-level settings that override those of the file, such as `mode`.

        Raises:
            ConfigError: The file cannot be read or is not valid.
        """
        # The one import that points outwards: a gateway is made of boards, not the other way round.
        from pegboard.gateway.gateway_board import GatewayBoard

        return GatewayBoard.open(path, **settings)
