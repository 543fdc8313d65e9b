"""The tools of a board: how they get onto it, and how they are found.

    @board.tool, board.add    one by one, now
    board.load                a whole category, by a loader that runs on first use
    board.mount               all tools of all servers at once, as a gateway does
                                      │
                                      ▼
                    registry ──snapshot──> `Catalog` ──> search index

Every tool ends up in the registry, with the risk that the configured rules give it. Everything that
reads works on a snapshot, an immutable `Catalog`. The search index follows the catalog; vectors are
computed in the background while clients are served, and saved to disk.

`Pegboard` adds calling, viewing and serving to this.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Unpack, overload

from pegboard.adapters.functions import Function, FunctionTools, Registration, ToolKeywords
from pegboard.core.caches import SchemaCache
from pegboard.core.calls import LOCAL_CALLER, Caller
from pegboard.core.name_lookup import resolve
from pegboard.core.options import Options, reject_unknown_keys
from pegboard.core.policy import Policy
from pegboard.core.risk import apply_risk_rules
from pegboard.core.tool_registry import LoadTarget, Registry
from pegboard.core.tools import Catalog, Category, Risk, Tool
from pegboard.errors import ConfigError, PegboardError

if TYPE_CHECKING:
    from pathlib import Path

    from pegboard.core.search import Match, SearchIndex
    from pegboard.embed.live_index import LiveIndex
    from pegboard.ports import Embedder

F = TypeVar("F", bound=Callable[..., Any])
Loader: TypeAlias = Callable[[], Iterable[Tool | Function]]
"""Gives the tools of a category when they are first needed."""


class BoardCatalog:
    """The tools of a board, their categories and their search index."""

    def __init__(self, options: Options, policy: Policy, embedder: Embedder | None) -> None:
        self.options = options
        self.policy = policy
        """Who may see and call what; may be replaced at any time."""
        self.schema_cache = SchemaCache(
            time.monotonic, capacity=options.schema_cache_size, ttl=options.schema_cache_ttl
        )
        self.embedder = embedder
        self.folder: Path | None = None
        """Where vectors and indexes are saved; `None` for the usual place. Set it before use."""
        self._functions = FunctionTools(self.schema_cache)
        self._registry = Registry(time.monotonic)
        self._has_own_tools = False
        self._catalog_hash: str | None = None

    # Registering -------------------------------------------------------------------------------

    @overload
    def tool(self, name: F, /) -> F: ...

    @overload
    def tool(self, name: str | None = None, **given: Unpack[ToolKeywords]) -> Callable[[F], F]: ...

    def tool(self, name: Any = None, **given: Any) -> Any:
        """Register the decorated function as a tool, and return the function unchanged.

        Works bare (`@board.tool`) and called (`@board.tool(category="issues")`). `ToolKeywords`
        lists the keywords; an unknown one is refused with the nearest known one.
        """
        reject_unknown_keys(given, Registration, "keyword")
        registration = Registration(name=None if callable(name) else name, **given)

        def register(fn: F) -> F:
            self.add(self._functions.make(fn, registration))
            return fn

        return register(name) if callable(name) else register

    def category(self, name: str, *, description: str = "") -> CategoryHandle:
        """Declare a category, and get a handle that registers tools in it."""
        self._registry.describe_category(name, description)
        return CategoryHandle(self, name)

    def load(self, category: str, loader: Loader, *, description: str = "") -> None:
        """Register a loader of tools or functions for a category: run once, on first use."""

        def run() -> list[Tool]:
            tools = (
                replace(item, category=item.category or category)
                if isinstance(item, Tool)
                else self._functions.make(item, Registration(category=category))
                for item in loader()
            )
            return [self.prepare_tool(tool) for tool in tools]

        self._has_own_tools = True
        self._registry.add_loader(category, run, description)

    def add(self, tool: Tool) -> Tool:
        """Register a ready-made tool; it must come from a source that can call it."""
        self._has_own_tools = True
        return self._registry.add(self.prepare_tool(tool))

    def enable(self, name: str) -> None:
        """Switch a tool, or every tool of a category, on."""
        self._registry.set_enabled(name, True)

    def disable(self, name: str) -> None:
        """Switch a tool, or every tool of a category, off: not listed, not found, not callable."""
        self._registry.set_enabled(name, False)

    def on_change(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call `listener` whenever tools are added, removed or switched; returns how to stop."""
        return self._registry.subscribe(listener)

    def announce(self) -> None:
        """Notify listeners that lists have changed although the tools have not."""
        self._registry.notify_listeners()

    def check(self) -> None:
        """Check the whole board: related tools, pins, examples.

        Raises:
            ConfigError: A name does not belong to any tool, or an example is not a valid call.
        """
        from pegboard.core.validation import check_examples

        self._registry.check_related()
        for name in self.options.pins:
            try:
                self.find(name)
            except PegboardError as exc:
                raise ConfigError(f"A pin names no tool: {exc.message}") from exc
        # Not when a tool is registered: checking an example generates its schema, which a start
        # avoids.
        for tool in self._registry.snapshot():
            check_examples(tool)

    def _mount(self, tools: Iterable[Tool], pending: Iterable[str], source: str | None) -> None:
        """Replace all tools of all servers."""
        # Without a hash meanwhile: an index must not be saved under the hash of other tools.
        self._catalog_hash = None
        self._registry.mount([self.prepare_tool(tool) for tool in tools], pending)
        self._catalog_hash = source

    def prepare_tool(self, tool: Tool) -> Tool:
        """The tool with its examples parsed, and with the risk that configured rules give it."""
        # Examples from code may be texts of calls; those from servers are objects already.
        invocations: list[Any] = [example.invocation for example in tool.examples]
        if not all(isinstance(given, Mapping) for given in invocations):
            from pegboard.core.validation import parse_examples  # slow to import

            tool = parse_examples(tool)
        rules, strict = self.options.risk_rules, self.options.strict_risk
        return apply_risk_rules(tool, rules, strict=strict)

    # Reading -----------------------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        """The whole catalog; runs loaders that have not run."""
        self._registry.load_all()
        return self._registry.snapshot()

    @property
    def known_catalog(self) -> Catalog:
        """The catalog as far as it is loaded."""
        return self._registry.snapshot()

    @property
    def is_complete(self) -> bool:
        """Whether every loader has run."""
        return not self._registry.unloaded

    def is_loaded(self, category: str) -> bool:
        """Whether the tools of a category are loaded."""
        return self._registry.is_loaded(category)

    def tools(self, category: str | None = None, include_disabled: bool = False) -> list[Tool]:
        """All tools, or those of one category."""
        return self._registry.tools(category, include_disabled=include_disabled)

    def categories(self) -> list[Category]:
        """All categories, with how many enabled tools each has."""
        return list(self.catalog.categories)

    def describe(self, *names: str) -> list[Tool]:
        """The tools of these names, in order.

        Raises:
            ToolNotFound: One is unknown; `.nearest` lists similar names.
            AmbiguousName: One names several tools.
        """
        return [self.find(name) for name in names]

    def find(self, name: str) -> Tool:
        """The tool of one name.

        Runs only the loader of the category that the name starts with. All loaders run only for a
        bare name that no loaded tool has.
        """
        # A loader may be slow, or start something: it does not run for a name that is known.
        if not self.known_catalog.matching(name):
            self.load_named(name)
        return resolve(self.known_catalog, name)

    def load_named(self, name: str, caller: Caller = LOCAL_CALLER) -> None:
        """Run the loaders that may give the caller a tool of this name."""
        visible = self.policy.visible
        self._registry.load_needed([LoadTarget(name)], lambda whole: visible(whole, caller))

    # Searching ---------------------------------------------------------------------------------

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
        """The search index of the whole catalog."""
        return self.live_index.index(*self._catalog_and_hash())

    @cached_property
    def live_index(self) -> LiveIndex:
        """Keeps the search index up to date, in memory and on disk."""
        from pegboard.embed.live_index import open_live_index

        return open_live_index(self.index_folder, self.embedder)

    @property
    def index_folder(self) -> Path:
        """The folder of vectors and indexes."""
        from pegboard.private_files import home_folder

        return self.folder or home_folder(os.environ)

    @property
    def is_index_saved(self) -> bool:
        """Whether the index is on disk, so that the next start loads it from there."""
        return self.live_index.is_saved

    def prepare(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Compute all vectors now, for tests and image builds; a served board does this by itself.

        Args:
            progress: Called with how many vectors are computed, and how many there are in total.
        """
        catalog, source = self._catalog_and_hash()
        self.live_index.prepare(catalog, progress, source)

    def _catalog_and_hash(self) -> tuple[Catalog, str | None]:
        """The catalog and the hash of what it was read from, or `None` if that is not known.

        An index on disk is loaded again when the hash is the same, without reading any schema. So
        the hash must cover every tool: it is unknown on a board that has tools of its own.
        """
        _ = self.catalog  # runs loaders, and lists servers that were never listed
        before = self._catalog_hash
        catalog = self.catalog
        # Another thread may mount other tools at any time: then the two do not belong together.
        is_known = before == self._catalog_hash and not self._has_own_tools
        return catalog, before if is_known else None


class CategoryHandle:
    """A category of a board; registers tools in it."""

    def __init__(self, board: BoardCatalog, name: str) -> None:
        self._board = board
        self.name = name

    @overload
    def tool(self, name: F, /) -> F: ...

    @overload
    def tool(self, name: str | None = None, **given: Unpack[ToolKeywords]) -> Callable[[F], F]: ...

    def tool(self, name: Any = None, **given: Any) -> Any:
        """Like `Pegboard.tool`, in this category."""
        return self._board.tool(name, **{**given, "category": self.name})
