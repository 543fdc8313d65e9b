"""The retry layer: repeats failed calls where that is safe.

That is: calls to tools that declare themselves read-only or idempotent, after failures to reach the
backend (unavailable, timeout); after a pause with jitter, and within a time limit.
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

    The pause after attempt n is random, from 0 to `pause * 2**(n-1)`, at most `longest_pause`, and
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

    def delay(self, attempt: int, exc: UpstreamError, chance: float) -> float:
        """The pause after a failed attempt; `chance` is random, from 0 to 1."""
        # Full jitter: clients that failed together must not come back together.
        delay = chance * min(self.longest_pause, self.pause * 2 ** (attempt - 1))
        retry_after = exc.details.get("retry_after")
        return max(delay, retry_after) if isinstance(retry_after, (int, float)) else delay


def is_repeatable(tool: Tool) -> bool:
    """Whether the tool declares that calling it twice does no more than calling it once.

    Annotations only: a risk that was inferred from the name is a guess, and no reason to repeat.
    """
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
    """A layer that repeats failed calls to repeatable tools.

    It gives up when the pause would outlast the deadline of an enclosing cancel scope: better the
    real error now than a cancellation later.
    """
    plan = policy or RetryPolicy()

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            latest = clock() + plan.within
            for attempt in range(1, plan.attempts):
                try:
                    return await inner(call)
                except (UpstreamUnavailable, UpstreamTimeout) as exc:
                    # Decided now and not before the call: nearly all calls succeed.
                    if not is_repeatable(call.tool):
                        raise
                    delay = plan.delay(attempt, exc, random())
                    now = clock()
                    time_left = anyio.current_effective_deadline() - anyio.current_time()
                    if now + delay > latest or delay >= time_left:
                        raise
                    event = CallRetried(
                        at=now,
                        id=call.id,
                        tool=call.tool.id,
                        attempt=attempt,
                        error=exc.kind,
                        delay=delay,
                        upstream=call.tool.server,
                    )
                    record_event(observer, event)
                await sleep(delay)
                call_notes().attempts = attempt + 1
            return await inner(call)  # the last attempt: its error is the caller's

        return handle

    return layer
