"""A layer that learns from calls: the shapes of results, and what follows which search."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from pegboard.core.calls import CallResult, ToolCall
from pegboard.ports import Handler

_log = logging.getLogger(__name__)


class CallLearner(Protocol):
    """Learns from calls that ran."""

    def learn(self, call: ToolCall, result: CallResult) -> Awaitable[None]:
        """Learn from one call."""
        ...


def learn_from_calls(learner: CallLearner) -> Callable[[Handler], Handler]:
    """A layer that shows every call and its result to a learner."""

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            result = await inner(call)
            try:
                await learner.learn(call, result)
            except Exception:  # the call has run, whatever fails here
                _log.exception("Nothing was learned from a call to %s.", call.tool.id)
            return result

        return handle

    return layer
