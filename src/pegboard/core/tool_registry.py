"""The tools of one board while it is built and run: categories, loaders, enabled or not.

    add, mount, loaders, set_enabled  -->  Registry  --snapshot()-->  Catalog (immutable)

All readers use `snapshot()`, which returns the same `Catalog` until something changes. A loader
runs on first use, and once, even if many threads need it at the same time. A loader that fails is
reported, does not affect the other categories, and is tried again after a pause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import NamedTuple, TypeAlias

from pegboard.core.name_lookup import resolve
from pegboard.core.similar_names import nearest
from pegboard.core.tools import Catalog, Category, Tool, set_enabled, split_qualified_name
from pegboard.errors import ConfigError, PegboardError, ToolNotFound

Loader: TypeAlias = Callable[[], Iterable[Tool]]
CatalogFilter: TypeAlias = Callable[[Catalog], Catalog]
"""Returns the part of a catalog that a caller may see."""

RETRY_AFTER = 10.0
"""Seconds before a loader that failed is tried again."""
NO_CATEGORY = "general"
"""The group of tools that have no category; no loader provides any."""


class LoadTarget(NamedTuple):
    """What a request is about: a category, a tool by name, or a tool of a category."""

    name: str | None = None
    category: str | None = None


@dataclass(eq=False, slots=True)
class _LazyCategory:
    """A category with a loader, and the state of the loader."""

    loader: Loader
    lock: RLock = field(default_factory=RLock)
    loaded: bool = False
    failed_at: float | None = None
    error: str | None = None


class Registry:
    """Tools, categories and loaders of one board."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = RLock()
        self._tools: dict[str, Tool] = {}
        self._categories: dict[str, str] = {}
        self._mounted: dict[str, str] = {}
        self._pending: dict[str, _LazyCategory] = {}
        self._catalog: Catalog | None = None
        self._constant: Catalog | None = None
        self._loaded: set[str] = set()
        self._listeners: dict[object, Callable[[], object]] = {}

    def subscribe(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call `listener` after every change, in the same thread; returns how to unsubscribe."""
        token = object()
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    def describe_category(self, name: str, description: str = "") -> None:
        """Register a category, or set the description of a known one."""
        if not name or name != name.strip():
            raise ConfigError(f"A category needs a name without outer spaces; got {name!r}.")
        with self._lock:
            if description or name not in self._categories:
                self._categories[name] = description
            self._changed()

    def add(self, tool: Tool) -> Tool:
        """Register one tool; its id must be new."""
        with self._lock:
            self._put(tool)
            self._changed()
        return tool

    def mount(self, tools: Iterable[Tool], pending: Iterable[str] = ()) -> None:
        """Replace all tools of all servers; `pending` names servers without known tools yet."""
        with self._lock:
            before = self._tools
            self._tools = {i: t for i, t in before.items() if t.server is None}
            self._mounted = dict.fromkeys(pending, "")
            try:
                for tool in tools:
                    self._put(tool)
            except BaseException:
                self._tools = before  # all of them, or none
                raise
            finally:
                self._changed()

    def add_loader(self, category: str, loader: Loader, description: str = "") -> None:
        """Register a loader for a category; it runs when the category is first used."""
        with self._lock:
            if category in self._pending:
                raise ConfigError(f"The category {category!r} has a loader already.")
            self.describe_category(category, description)
            self._pending[category] = _LazyCategory(loader)

    def is_loaded(self, category: str) -> bool:
        """Whether the tools of a category are loaded; always true without a loader."""
        if category not in self._categories:
            raise ToolNotFound(category, nearest(category, list(self._categories)), what="category")
        pending = self._pending.get(category)
        return pending is None or pending.loaded

    @property
    def unloaded(self) -> tuple[str, ...]:
        """The categories whose loaders have not run or have failed, by name."""
        return tuple(sorted(name for name, p in self._pending.items() if not p.loaded))

    def load(self, category: str) -> None:
        """Run a category's loader if it has not run.

        Raises:
            ConfigError: The loader failed, now or less than `RETRY_AFTER` ago.
        """
        pending = self._pending.get(category)
        if pending is None or pending.loaded:
            return
        with pending.lock:
            if pending.loaded:  # pyright: ignore[reportUnnecessaryComparison] another thread ran it
                return
            if pending.failed_at is not None and self._clock() - pending.failed_at < RETRY_AFTER:
                raise ConfigError(self._failure(category, pending.error))
            self._run_loader(category, pending)

    def load_all(self) -> dict[str, str]:
        """Run every loader that has not run; returns the failures by category."""
        return self._load_each(self.unloaded)

    def load_needed(
        self, targets: Sequence[LoadTarget], visible: CatalogFilter = lambda whole: whole
    ) -> dict[str, str]:
        """Run the loaders that the targets need; returns the failures by category.

        Args:
            targets: What the request is about.
            visible: The part of the catalog that the caller may see.
        """
        failures = self._load_each(self.categories_to_load(targets, visible))
        # `docs.search` may be the name of a tool, and not a tool of the category `docs`.
        rest = [name for name in self.categories_to_load(targets, visible) if name not in failures]
        return failures | self._load_each(rest)

    def categories_to_load(
        self, targets: Sequence[LoadTarget], visible: CatalogFilter = lambda whole: whole
    ) -> tuple[str, ...]:
        """The categories that must be loaded before the request can be answered.

        A category that is named, by itself or in front of a tool, is loaded by itself. All of them
        are loaded only for a name that no loaded tool has and that starts with no category.
        """
        unloaded = self.unloaded
        if not unloaded:
            return ()
        known = visible(self.snapshot())
        needed: list[str] = []
        for name, category in targets:
            if category not in (None, NO_CATEGORY):
                if category in self._categories or any(tool.server == category for tool in known):
                    needed += [category] if category in unloaded else []
                else:
                    # A loader may provide tools of other categories than its own.
                    needed += unloaded
            elif name is not None and not known.matching(name):
                groups = [group for group, _ in split_qualified_name(name) if group in unloaded]
                needed += groups or unloaded
        return tuple(dict.fromkeys(needed))

    def _load_each(self, categories: Iterable[str]) -> dict[str, str]:
        failures: dict[str, str] = {}
        for category in categories:
            try:
                self.load(category)
            except PegboardError as exc:
                failures[category] = exc.message
        return failures

    def tools(self, category: str | None = None, *, include_disabled: bool = False) -> list[Tool]:
        """All tools, or those of one category, after their loaders have run.

        Raises:
            ToolNotFound: There is no such category; `.nearest` lists similar names.
        """
        if category is None:
            self.load_all()
        elif not self.is_loaded(category):
            self.load(category)
        return [
            t
            for t in self.snapshot()
            if (t.enabled or include_disabled) and category in (None, t.category)
        ]

    def snapshot(self) -> Catalog:
        """The current catalog, without running loaders."""
        with self._lock:
            if self._catalog is None:
                known = {**self._mounted, **self._categories}
                categories = [Category(n, d) for n, d in known.items()]
                self._catalog = Catalog(self._tools.values(), categories)
            return self._catalog

    def constant_snapshot(self) -> Catalog | None:
        """The catalog as if no loader had run; `None` when there are no loaders.

        MCP 2026-07-28 forbids a list that changes as a side effect of other requests, such as
        running a loader. So the list of a mode may depend only on this.
        """
        with self._lock:
            if not self._pending:
                return None
            if self._constant is None:
                whole = self.snapshot()
                here = [t for t in whole if t.id not in self._loaded]
                self._constant = Catalog(here, whole.categories)
            return self._constant

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Enable or disable a tool, or all tools of a category."""
        with self._lock:
            catalog = self.snapshot()
            if name in self._categories and not catalog.named(name):
                chosen: Sequence[Tool] = [t for t in catalog if t.category == name]
            else:
                chosen = [resolve(catalog, name)]
            for tool in chosen:
                self._tools[tool.id] = set_enabled(tool, enabled)
            self._changed()

    def check_related(self) -> None:
        """Check the related tools, which is only possible once everything is registered.

        Raises:
            ConfigError: A tool names a related tool that does not exist.
        """
        catalog = self.snapshot()
        for tool in catalog:
            if tool.server is not None:
                continue  # a mistake of a server must not stop this board
            for other in tool.related:
                try:
                    resolve(catalog, other)
                except PegboardError as exc:
                    if self.unloaded:  # it may be in a category that is not loaded yet
                        continue
                    raise ConfigError(
                        f"{tool.id!r} names a related tool that does not exist: {exc.message}",
                        tool=tool.id,
                    ) from exc

    def _put(self, tool: Tool) -> None:
        if tool.id in self._tools:
            raise ConfigError(
                f"A tool {tool.id!r} is registered already: give one another name or category.",
                tool=tool.id,
            )
        self._tools[tool.id] = tool
        if tool.category and tool.server is None:
            self._categories.setdefault(tool.category, "")

    def notify_listeners(self) -> None:
        """Call the listeners, although no tool has changed: what is shown of them has."""
        for listener in list(self._listeners.values()):
            listener()

    def _changed(self) -> None:
        self._catalog = self._constant = None
        self.notify_listeners()

    def _run_loader(self, category: str, pending: _LazyCategory) -> None:
        try:
            tools = list(pending.loader())
            with self._lock:
                before = dict(self._tools)
                try:
                    for tool in tools:
                        self._put(tool)
                except ConfigError:
                    self._tools = before  # all of a category, or none of it
                    raise
                self._loaded |= {tool.id for tool in tools}
                self._catalog = None
                # After a failure, clients have lists without these tools. Otherwise the lists are
                # the same as before: they do not depend on loaders.
                if pending.failed_at is not None:
                    self._changed()
        except Exception as exc:  # a loader is not our code and may raise anything
            pending.failed_at = self._clock()
            pending.error = f"{type(exc).__name__}: {exc}"
            raise ConfigError(self._failure(category, pending.error)) from exc
        pending.loaded, pending.failed_at, pending.error = True, None, None

    def _failure(self, category: str, error: str | None) -> str:
        return (
            f"The tools of category {category!r} could not be loaded ({error}). "
            f"The other categories work; this one is tried again after {RETRY_AFTER:.0f} s."
        )
