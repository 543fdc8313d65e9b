"""The permission layer: may this caller call this tool, and is its definition trusted?

Modes and names work on a catalog that contains only what the caller may see, so this is the last
line of defense, against a call that was built from a tool that the caller was never shown. Its
answer is the same as for a tool that does not exist. That a tool is held back is not secret: the
refusal gives the reason, and what an operator can do.
"""

from __future__ import annotations

from collections.abc import Callable

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.name_lookup import nearest_tools
from pegboard.core.policy import Policy
from pegboard.core.tool_lock import hold_reason
from pegboard.core.tools import Catalog
from pegboard.errors import NotPermitted, ToolNotFound
from pegboard.ports import Handler, Layer


def check_permissions(policy: Callable[[], Policy], catalog: Callable[[], Catalog]) -> Layer:
    """A layer that rejects hidden tools as unknown, and held ones with the reason."""

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            tool, rules = call.tool, policy()  # read now: the policy can be reloaded
            if not rules.allows(call.caller, tool):
                # Suggestions come from what the caller may see, or they would reveal the rest.
                seen = rules.visible(catalog(), call.caller)
                raise ToolNotFound(tool.name, nearest_tools(seen, tool.name))
            # The placeholder of a tool that is held back is disabled, like few others.
            if not tool.enabled and (reason := hold_reason(tool)):
                raise NotPermitted(f"{tool.name} is held back: {reason}", tool=tool.name)
            return await inner(call)

        return handle

    return layer
