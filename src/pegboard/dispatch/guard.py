"""The last word on a call: may this caller call this tool, and is its definition one we trust?

Faces and names work on a catalogue that holds only what the caller may see, so this refuses what
should never arrive here: a call that somebody built from a tool that they were not shown. It says
the same as where no such tool exists. A tool that is held back is no secret: the refusal says why,
and what an operator can do.
"""

from __future__ import annotations

from collections.abc import Callable

from pegboard.core.calls import Call, CallResult
from pegboard.core.lock import held_because
from pegboard.core.names import nearest_tools
from pegboard.core.policy import Policy
from pegboard.core.tools import Catalog
from pegboard.errors import NotPermitted, ToolNotFound
from pegboard.ports import Handler, Layer


def guard(policy: Callable[[], Policy], catalog: Callable[[], Catalog]) -> Layer:
    """A layer that refuses hidden tools as unknown, and held ones with the reason."""

    def layer(inner: Handler) -> Handler:
        async def guarded(call: Call) -> CallResult:
            tool, rules = call.tool, policy()
            if not rules.allows(call.caller, tool):
                seen = rules.visible(catalog(), call.caller)
                raise ToolNotFound(tool.name, nearest_tools(seen, tool.name))
            if reason := held_because(tool):
                raise NotPermitted(f"{tool.name} is held back: {reason}", tool=tool.name)
            return await inner(call)

        return guarded

    return layer
