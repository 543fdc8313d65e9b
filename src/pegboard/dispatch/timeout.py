"""Bounds how long a call may take; a call that shows progress is given more time, up to a limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import anyio

from pegboard.core import defaults
from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.tools import Tool
from pegboard.errors import ConfigError, UpstreamTimeout
from pegboard.ports import Handler, Layer, call_progress


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeoutPolicy:
    """Seconds a call may take: the tool's own, else its upstream's, else `default`.

    `longest` bounds a call that keeps showing progress. `None` means no bound.
    """

    default: float | None = defaults.CALL_TIMEOUT
    upstreams: Mapping[str, float] = field(default_factory=dict[str, float])
    longest: float | None = 600.0

    def __post_init__(self) -> None:
        for seconds in (self.default, self.longest, *self.upstreams.values()):
            if seconds is not None and seconds <= 0:
                raise ConfigError(f"A timeout is a positive number of seconds; got {seconds}.")

    def seconds(self, tool: Tool) -> float | None:
        """What applies to one tool."""
        if tool.timeout is not None:
            return tool.timeout
        return self.upstreams.get(tool.server or "", self.default)


def timeout(policy: TimeoutPolicy | None = None) -> Layer:
    """A layer that raises `UpstreamTimeout` when a call takes too long. Cancellation passes."""
    bounds = policy or TimeoutPolicy()

    def layer(handler: Handler) -> Handler:
        async def bounded(call: ToolCall) -> CallResult:
            seconds = bounds.seconds(call.tool)
            if seconds is None:
                return await handler(call)
            with anyio.move_on_after(seconds) as scope:
                token = call_progress.set(_extending(scope, seconds, bounds.longest))
                try:
                    return await handler(call)
                finally:
                    call_progress.reset(token)
            raise _too_late(call.tool, seconds)

        return bounded

    return layer


def _extending(
    scope: anyio.CancelScope, seconds: float, longest: float | None
) -> Callable[[], None]:
    began = scope.deadline - seconds
    last = float("inf") if longest is None else began + max(seconds, longest)

    def extend() -> None:
        if not scope.cancel_called:
            scope.deadline = min(anyio.current_time() + seconds, last)

    return extend


def _too_late(tool: Tool, seconds: float) -> UpstreamTimeout:
    if tool.risk == "read":
        advice = "Try again, or ask for less at once."
    else:
        advice = "It may still take effect: check before you repeat it."
    return UpstreamTimeout(
        f"{tool.name} did not answer within {seconds:g} s. {advice}",
        tool=tool.name,
        server=tool.server,
        timeout=seconds,
    )
