"""Tries again where that is safe.

That is: tools that say they are read-only or idempotent, and failures on the way there
(unavailable, timeout); after a pause with jitter, and within a bound of time.
"""

from __future__ import annotations

import random as _random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from pegboard.core import defaults
from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.events import CallRetried
from pegboard.core.risk import annotated_risk
from pegboard.core.tools import Tool
from pegboard.dispatch.call_events import call_notes
from pegboard.errors import ConfigError, UpstreamError, UpstreamTimeout, UpstreamUnavailable
from pegboard.ports import Handler, Layer, Observer, record_event


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how soon; durations in seconds.

    The pause after attempt n is drawn from 0 to `pause * 2**(n-1)`, at most `longest_pause`, and is
    never shorter than the `retry_after` of the error. No attempt begins later than `within` after
    the first one did.
    """

    attempts: int = defaults.CALL_RETRIES + 1
    pause: float = 0.2
    longest_pause: float = 5.0
    within: float = 60.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or min(self.pause, self.longest_pause, self.within) < 0:
            raise ConfigError(
                f"Retries need at least one attempt and no negative duration; got {self}."
            )


def is_repeatable(tool: Tool) -> bool:
    """Whether calling the tool twice does no more than calling it once, by its own word."""
    hints = tool.annotations
    return annotated_risk(hints) == "read" or hints.get("idempotentHint") is True


def retry(
    *,
    policy: RetryPolicy | None = None,
    observer: Observer | None = None,
    random: Callable[[], float] = _random.random,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    clock: Callable[[], float] = time.time,
) -> Layer:
    """A layer that repeats failed calls of repeatable tools.

    It gives up when the pause would outlast the deadline of an enclosing cancel scope: better the
    real error now than a cancellation later.
    """
    plan = policy or RetryPolicy()

    def layer(handler: Handler) -> Handler:
        async def repeated(call: ToolCall) -> CallResult:
            if not is_repeatable(call.tool):
                return await handler(call)
            latest = clock() + plan.within
            for attempt in range(1, plan.attempts):
                try:
                    return await handler(call)
                except (UpstreamUnavailable, UpstreamTimeout) as exc:
                    delay = _pause(plan, attempt, exc, random())
                    now = clock()
                    if now + delay > latest or delay >= _time_left():
                        raise
                    record_event(observer, _retried(call, attempt, exc, at=now, delay=delay))
                await sleep(delay)
                call_notes().attempts = attempt + 1
            return await handler(call)

        return repeated

    return layer


def _pause(plan: RetryPolicy, attempt: int, exc: UpstreamError, chance: float) -> float:
    drawn = chance * min(plan.longest_pause, plan.pause * 2 ** (attempt - 1))
    asked = exc.details.get("retry_after")
    return max(drawn, asked) if isinstance(asked, (int, float)) else drawn


def _time_left() -> float:
    return anyio.current_effective_deadline() - anyio.current_time()


def _retried(
    call: ToolCall, attempt: int, exc: UpstreamError, *, at: float, delay: float
) -> CallRetried:
    return CallRetried(
        at=at,
        id=call.id,
        tool=call.tool.id,
        attempt=attempt,
        error=exc.kind,
        delay=delay,
        upstream=call.tool.server,
    )
