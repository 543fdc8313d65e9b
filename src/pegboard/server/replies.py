"""Our errors on the wire: what a model can mend is a result, misuse a JSON-RPC error."""

from __future__ import annotations

from pegboard.core.calls import CallResult
from pegboard.core.json import Json, JsonObject
from pegboard.core.results.shapes import error_to_json
from pegboard.core.tools import Tool
from pegboard.dispatch.spill import notice_fits_schema
from pegboard.errors import PegboardError


class InvalidParams(PegboardError):
    """A request that no change of a tool's arguments would mend: answered with -32602."""

    kind = "misuse"

    def __init__(self, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.data = data


def error_result(exc: PegboardError, tool: Tool | None = None) -> CallResult:
    """A failed call as a result that a model can read and mend.

    Args:
        exc: What went wrong.
        tool: The tool whose output schema the client was told. The TypeScript SDK 1.x checks even
            failures against it, so where it does not let the error pass, the text must do.
    """
    shape = error_to_json(exc)
    structured: JsonObject | None = {"error": shape}
    if (
        tool is not None
        and tool.output_schema is not None
        and not notice_fits_schema(structured, tool)
    ):
        structured = None
    return CallResult.text(shape["message"], structured=structured, is_error=True)


def as_invalid_params(exc: PegboardError) -> InvalidParams:
    """The same error as misuse, with what helps to mend it as data."""
    data: JsonObject = {"kind": exc.kind, **exc.details}
    return InvalidParams(exc.message, data)
