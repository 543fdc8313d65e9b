"""Our errors on the wire: a result where a model can fix the call, else a JSON-RPC error."""

from __future__ import annotations

from pegboard.core.calls import CallResult
from pegboard.core.json import Json, JsonObject
from pegboard.core.results.shapes import error_to_json
from pegboard.core.tools import Tool
from pegboard.dispatch.spill import notice_fits_schema
from pegboard.errors import PegboardError


class InvalidParams(PegboardError):
    """A request that is wrong whatever the tool's arguments are: answered with -32602."""

    kind = "misuse"

    def __init__(self, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.data = data


def error_result(exc: PegboardError, tool: Tool | None = None) -> CallResult:
    """A failed call as a result that a model can read and react to.

    Args:
        exc: What went wrong.
        tool: The tool whose output schema the client knows. The TypeScript SDK 1.x checks even
            failures against it, so where the error does not satisfy it, only the text is sent.
    """
    shape = error_to_json(exc)
    structured: JsonObject | None = {"error": shape}
    if tool is not None and tool.output_schema is not None:
        structured = structured if notice_fits_schema(structured, tool) else None
    return CallResult.text(shape["message"], structured=structured, is_error=True)


def as_invalid_params(exc: PegboardError) -> InvalidParams:
    """The same error as a JSON-RPC error, with the details that help to fix it as data."""
    data: JsonObject = {"kind": exc.kind, **exc.details}
    return InvalidParams(exc.message, data)
