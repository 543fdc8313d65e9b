"""Our errors on the wire: what a model can mend is a result, misuse a JSON-RPC error."""

from __future__ import annotations

from pegboard.core.calls import CallResult
from pegboard.core.json import Json, JsonObject
from pegboard.errors import PegboardError
from pegboard.faces.fanning import error_shape


class Misuse(PegboardError):
    """A request that no change of a tool's arguments would mend: answered with -32602."""

    kind = "misuse"

    def __init__(self, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.data = data


def failure(exc: PegboardError) -> CallResult:
    """A failed call as a result that a model can read and mend."""
    return CallResult.text(exc.message, structured={"error": error_shape(exc)}, is_error=True)


def misuse(exc: PegboardError) -> Misuse:
    """The same error as misuse, with what helps to mend it as data."""
    data: JsonObject = {"kind": exc.kind, **exc.details}
    return Misuse(exc.message, data)
