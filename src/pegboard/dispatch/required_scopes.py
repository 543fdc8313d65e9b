"""The scope layer: does the caller's token have the scope that this risk needs?

Clients of HTTP are refused earlier where that is possible, with a status that makes them ask for
the scope (`server/protected_resource.py`). This layer is for everything that cannot be seen in a
request, such as a call within a batch or a program.
"""

from __future__ import annotations

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.risk import RiskScopes
from pegboard.errors import NotPermitted
from pegboard.ports import Handler, Layer


def require_scopes(scopes: RiskScopes) -> Layer:
    """A layer that rejects calls whose token lacks the scope for the risk of the tool."""

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            missing = scopes.missing(call.tool, call.caller.scopes)
            if missing is not None and not call.caller.is_local_user:
                raise NotPermitted(
                    f"{call.tool.name} needs an access token with the scope {missing!r}: log in "
                    f"again and request it.",
                    tool=call.tool.name,
                    scope=missing,
                )
            return await inner(call)

        return handle

    return layer
