"""The enabled layer: rejects disabled tools, and adds a warning to results of deprecated ones."""

from __future__ import annotations

from pegboard.core.calls import CallResult, ToolCall
from pegboard.errors import ToolDisabled
from pegboard.ports import Handler

WARNING_KEY = "io.github.pegboard/warning"


def check_enabled(inner: Handler) -> Handler:
    """A layer that rejects a disabled tool and warns about a deprecated one."""

    async def handle(call: ToolCall) -> CallResult:
        tool = call.tool
        if not tool.enabled:
            raise ToolDisabled(f"{tool.name} is disabled.", tool=tool.name)
        result = await inner(call)
        if not tool.deprecated or not result.is_complete:
            return result
        # Both for the model, as a text block, and for programs, in `_meta`.
        warning = f"{tool.name} is deprecated: {tool.deprecated}"
        block = {"type": "text", "text": f"Warning: {warning}"}
        meta = {**result.meta, WARNING_KEY: warning}
        return CallResult({**result.wire, "content": [*result.content, block], "_meta": meta})

    return handle
