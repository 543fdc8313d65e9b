"""Whether a tool may be called: switched on, with a warning when it is deprecated."""

from __future__ import annotations

from pegboard.core.calls import CallResult, ToolCall
from pegboard.errors import ToolDisabled
from pegboard.ports import Handler

WARNING_KEY = "io.github.pegboard/warning"


def check_enabled(handler: Handler) -> Handler:
    """Refuse a disabled tool; add a warning to the result of a deprecated one."""

    async def handle(call: ToolCall) -> CallResult:
        tool = call.tool
        if not tool.enabled:
            raise ToolDisabled(f"{tool.name} is switched off.", tool=tool.name)
        result = await handler(call)
        if tool.deprecated and result.is_complete:
            return _add_warning(result, f"{tool.name} is deprecated: {tool.deprecated}")
        return result

    return handle


def _add_warning(result: CallResult, warning: str) -> CallResult:
    block = {"type": "text", "text": f"Warning: {warning}"}
    meta = {**result.meta, WARNING_KEY: warning}
    return CallResult({**result.wire, "content": [*result.content, block], "_meta": meta})
