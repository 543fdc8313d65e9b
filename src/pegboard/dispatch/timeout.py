"""The timeout layer: bounds how long a call may take.

A call that reports progress gets more time, up to a limit.
"""

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

    `longest` limits a call that keeps reporting progress. `None` means no limit.
    """

    default: float | None = defaults.CALL_TIMEOUT
    upstreams: Mapping[str, float] = field(default_factory=dict[str, float])
    longest: float | None = 600.0

    def __post_init__(self) -> None:
        for seconds in (self.default, self.longest, *self.upstreams.values()):
            if seconds is not None and seconds <= 0:
                raise ConfigError(f"A timeout is a positive number of seconds; got {seconds}.")

    def seconds(self, tool: Tool) -> float | None:
        """The timeout of one tool."""
        if tool.timeout is not None:
            return tool.timeout
        return self.upstreams.get(tool.server or "", self.default)


def timeout(policy: TimeoutPolicy | None = None) -> Layer:
    """A layer that raises `UpstreamTimeout` when a call takes too long. Cancellation passes."""
    limits = policy or TimeoutPolicy()

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            seconds = limits.seconds(call.tool)
            if seconds is None:
                return await inner(call)
            # Not `fail_after`: a `TimeoutError` of the tool itself must stay distinguishable.
            with anyio.move_on_after(seconds) as scope:
                token = call_progress.set(_deadline_extender(scope, seconds, limits.longest))
                try:
                    return await inner(call)
                finally:
                    call_progress.reset(token)
            tool = call.tool
            advice = (
                "Try again, or request less at once."
                if tool.risk == "read"
                else "It may still take effect: check before you repeat it."
            )
            raise UpstreamTimeout(
                f"{tool.name} did not answer within {seconds:g} s. {advice}",
                tool=tool.name,
                server=tool.server,
                timeout=seconds,
            )

        return handle

    return layer


def _deadline_extender(
    scope: anyio.CancelScope, seconds: float, longest: float | None
) -> Callable[[], None]:
    """A function that restarts the clock of a call, up to its longest duration."""
    began = scope.deadline - seconds
    last = float("inf") if longest is None else began + max(seconds, longest)

    def extend() -> None:
        # Progress that arrives after the deadline must not revive a call that was given up.
        if not scope.cancel_called:
            scope.deadline = min(anyio.current_time() + seconds, last)

    return extend
