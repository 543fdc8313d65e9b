"""The way of a board's calls: from a name to its tool, through the layers, to where it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from pegboard.core.calls import Call, Caller, CallResult, Outcome, ResultShape, ToolCall
from pegboard.core.tool_names import resolve
from pegboard.core.tools import Catalog, Tool, group_name
from pegboard.errors import ToolNotFound, UpstreamUnavailable

if TYPE_CHECKING:
    from pegboard.adapters.functions import FunctionTools
    from pegboard.core.json import JsonObject
    from pegboard.core.options import Options
    from pegboard.core.policy import Policy
    from pegboard.pipeline import Parts
    from pegboard.ports import Handler, Layer, Source


class Called(Protocol):
    """What a board says of itself to be called."""

    options: Options
    policy: Policy

    @property
    def catalog(self) -> Catalog: ...

    @property
    def known_catalog(self) -> Catalog: ...

    def find(self, name: str) -> Tool: ...

    def load_named(self, name: str, caller: Caller = ...) -> None: ...

    async def run_call(self, call: ToolCall) -> CallResult: ...


class Calling:
    """Makes the calls of a board's tools, and carries them out."""

    def __init__(self, board: Called, functions: FunctionTools) -> None:
        self._board = board
        self._functions = functions
        self._dispatch: Handler | None = None
        self.sources: Mapping[str, Source] = {}
        """What runs the tools of each server."""

    @cached_property
    def parts(self) -> Parts:
        """What dispatch is made with, unless it is replaced before use."""
        from pegboard.pipeline import Parts

        return Parts(alternatives=self.alternatives, is_closed=is_closed, layers=(self.guard,))

    @property
    def dispatch(self) -> Handler:
        """Carries out a call through every layer."""
        if self._dispatch is None:
            from pegboard.pipeline import build_pipeline

            self._dispatch = build_pipeline(self._board.options, self._board.run_call, self.parts)
        return self._dispatch

    def renew(self) -> None:
        """Put the layers together anew, by the options and parts of then."""
        self._dispatch = None

    @property
    def guard(self) -> Layer:
        """The layer that refuses calls of tools that their caller may not see."""
        from pegboard.dispatch.permissions import check_permissions

        return check_permissions(lambda: self._board.policy, lambda: self._board.known_catalog)

    def make(
        self, name: str, arguments: JsonObject | str | None, shape: ResultShape, caller: Caller
    ) -> ToolCall:
        """The call of the tool that a name means to the caller."""
        given: Any = {} if arguments is None else arguments
        is_open = self._board.policy.is_open
        tool = self._board.find(name) if is_open else self._find_for(caller, name)
        return ToolCall(tool, given, shape=shape, caller=caller)

    def _find_for(self, caller: Caller, name: str) -> Tool:
        visible = self._board.policy.visible
        try:
            return resolve(visible(self._board.known_catalog, caller), name)
        except ToolNotFound:
            self._board.load_named(name, caller)
        return resolve(visible(self._board.known_catalog, caller), name)

    async def call_many(
        self,
        calls: Sequence[Call],
        caller: Caller,
        *,
        max_concurrency: int,
        deadline: float | None,
    ) -> list[Outcome]:
        """One outcome per request, in their order, whether or not a call can be made of it."""
        from pegboard.dispatch.fan_out import call_requests

        def make(asked: Call) -> ToolCall:
            shape = build_shape(asked.include_fields, asked.select)
            return self.make(asked.name, dict(asked.arguments), shape, caller)

        return await call_requests(
            self.dispatch, calls, make, max_concurrency=max_concurrency, deadline=deadline
        )

    async def run(self, call: ToolCall) -> CallResult:
        """Hand a call to where its tool comes from: a server, or a function of this process.

        Raises:
            UpstreamUnavailable: The tool comes from a catalogue file, which runs nothing.
        """
        source = self.sources.get(call.tool.server or "")
        if source is not None:
            return await source.call(call)
        result = await self._functions.call(call)
        if result is not None:
            return result
        raise UpstreamUnavailable(
            f"{call.tool.name} is only described here, by a catalogue file: it cannot be called.",
            tool=call.tool.name,
        )

    def alternatives(self, call: ToolCall) -> list[Tool]:
        """What the caller could use in place of a tool: its related ones, else those beside it."""
        catalog = self._board.policy.visible(self._board.known_catalog, call.caller)
        related = catalog.related(call.tool)
        return related or [t for t in catalog.group(group_name(call.tool)) if t.id != call.tool.id]


def is_closed(tool: Tool) -> bool:
    """Whether a tool takes no parameters but those in its schema, as Python functions do."""
    return tool.server is None


def build_shape(include_fields: Sequence[str] | None, select: str | None) -> ResultShape:
    """The part of a result that is asked for; fields may be one text, which is a sequence too."""
    from pegboard.core.results.paths import parse_fields

    return ResultShape(parse_fields(include_fields), select)
