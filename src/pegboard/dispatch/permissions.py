"""The last word on a call: may this caller call this tool, and is its definition one we trust?

Modes and names work on a catalogue that holds only what the caller may see, so this refuses what
should never arrive here: a call that somebody built from a tool that they were not shown. It says
the same as where no such tool exists. A tool that is held back is no secret: the refusal says why,
and what an operator can do.
"""

from __future__ import annotations

from collections.abc import Callable

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.policy import Policy
from pegboard.core.tool_lock import hold_reason
from pegboard.core.tool_names import nearest_tools
from pegboard.core.tools import Catalog
from pegboard.errors import NotPermitted, ToolNotFound
from pegboard.ports import Handler, Layer


def check_permissions(policy: Callable[[], Policy], catalog: Callable[[], Catalog]) -> Layer:
    """A layer that refuses hidden tools as unknown, and held ones with the reason."""

    def layer(inner: Handler) -> Handler:
        async def guarded(call: ToolCall) -> CallResult:
            tool, rules = call.tool, policy()
            if not rules.allows(call.caller, tool):
                seen = rules.visible(catalog(), call.caller)
                raise ToolNotFound(tool.name, nearest_tools(seen, tool.name))
            if reason := hold_reason(tool):
                raise NotPermitted(f"{tool.name} is held back: {reason}", tool=tool.name)
            return await inner(call)

        return guarded

    return layer
