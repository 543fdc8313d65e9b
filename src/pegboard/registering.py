"""How tools come onto a board: decorated functions, loaders, tools that are ready-made.

All of them end in the registry, with the risk that configured rules give them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar, Unpack, overload

from pegboard.adapters.functions import Function, FunctionTools, Registration, ToolKeywords
from pegboard.core.options import Options, reject_unknown_keys
from pegboard.core.risk import apply_risk_rules
from pegboard.core.tool_registry import Registry
from pegboard.core.tools import Tool
from pegboard.errors import ConfigError, PegboardError

F = TypeVar("F", bound=Callable[..., Any])
Loader: TypeAlias = Callable[[], Iterable[Tool | Function]]
"""Gives the tools of a category when they are first needed."""


class Registering:
    """Puts tools into a registry.

    Args:
        registry: Where they go.
        functions: Makes tools of functions.
        options: Gives the options as configured now, with the rules for risk.
    """

    def __init__(
        self, registry: Registry, functions: FunctionTools, options: Callable[[], Options]
    ) -> None:
        self._registry = registry
        self._functions = functions
        self._options = options
        self.has_own = False
        """Whether tools were registered one by one or by a loader, not mounted all at once."""

    def decorate(self, name: Any, given: Mapping[str, Any]) -> Any:
        """What a decorator gives: the function itself where it stands bare, else what takes it."""
        registration = make_registration(name=None if callable(name) else name, **given)

        def register(fn: F) -> F:
            self.add(self._functions.make(fn, registration))
            return fn

        return register(name) if callable(name) else register

    def add(self, tool: Tool) -> Tool:
        """Take one tool, and give it as it is registered."""
        self.has_own = True
        return self._registry.add(self._accepted(tool))

    def load(self, category: str, loader: Loader, description: str) -> None:
        """Take what gives the tools or functions of a category, to be run on first use."""

        def run() -> list[Tool]:
            return [self._as_tool(item, category) for item in loader()]

        self.has_own = True
        self._registry.add_loader(category, run, description)

    def mount(self, tools: Iterable[Tool], pending: Iterable[str]) -> None:
        """Take these as all tools of all servers."""
        self._registry.mount([self._accepted(tool) for tool in tools], pending)

    def check(self, pins: Iterable[str], find: Callable[[str], Tool]) -> None:
        """Look over what is registered: related tools, pins, examples.

        Raises:
            ConfigError: A name of no tool, or an example that is not a valid call.
        """
        from pegboard.core.validation import check_examples

        self._registry.check()
        for name in pins:
            try:
                find(name)
            except PegboardError as exc:
                raise ConfigError(f"A pin names no tool: {exc.message}") from exc
        for tool in self._registry.snapshot():
            check_examples(tool)

    def _as_tool(self, item: Tool | Function, category: str) -> Tool:
        if isinstance(item, Tool):
            return self._accepted(replace(item, category=item.category or category))
        return self._accepted(self._functions.make(item, Registration(category=category)))

    def _accepted(self, tool: Tool) -> Tool:
        """The tool with its examples read and the risk that rules give it."""
        invocations: list[Any] = [example.invocation for example in tool.examples]
        if not all(isinstance(given, Mapping) for given in invocations):
            from pegboard.core.validation import with_read_examples  # it takes long to import

            tool = with_read_examples(tool)
        return self._with_risk(tool)

    def _with_risk(self, tool: Tool) -> Tool:
        """Configured rules win over what a tool says of itself."""
        options = self._options()
        return apply_risk_rules(tool, options.risk_rules, strict=options.strict_risk)


class CategoryHandle:
    """A category of a board; registers tools in it."""

    def __init__(self, registering: Registering, name: str) -> None:
        self._registering = registering
        self.name = name

    @overload
    def tool(self, name: F, /) -> F: ...

    @overload
    def tool(self, name: str | None = None, **given: Unpack[ToolKeywords]) -> Callable[[F], F]: ...

    def tool(self, name: Any = None, **given: Any) -> Any:
        """Like `Pegboard.tool`, in this category."""
        return self._registering.decorate(name, {**given, "category": self.name})


def make_registration(**given: Any) -> Registration:
    """What a decorator says, or an error that names the nearest known keyword."""
    reject_unknown_keys(given, Registration, "keyword")
    return Registration(**given)
