"""`read_result`: goes on reading a result that was too large to send whole.

Only `proxy` lists it, but results are kept in other faces too. So it is answered in all of them:
by its name, and, for clients that call nothing unlisted, as the tool of a call meta-tool.
"""

from __future__ import annotations

from pegboard.core.calls import CallResult
from pegboard.core.json import Json, JsonObject
from pegboard.errors import InvalidArguments
from pegboard.faces.checking import checked_arguments
from pegboard.faces.face import MetaTool, View, parameters

NAME = "read_result"

_TEXT: JsonObject = {"type": "string"}
_NUMBER: JsonObject = {"type": "integer"}
_PARAMETERS = parameters(
    {
        "handle": _TEXT,
        "path": _TEXT,
        "offset": _NUMBER,
        "limit": _NUMBER,
        "grep": _TEXT,
        "select": _TEXT,
    },
    ["handle"],
)


def read_result() -> MetaTool:
    """The meta-tool itself."""
    text = "Read on in a large result"
    return MetaTool(NAME, text, _PARAMETERS, _answer, {"readOnlyHint": True})


def is_reading(view: View, name: Json) -> bool:
    """Whether a call meta-tool was asked to read on, and not to call a tool of that name."""
    return name == NAME and view.read_result is not None and not view.catalog.named(NAME)


async def read_on(view: View, arguments: Json) -> CallResult:
    """The page that a call meta-tool was asked for."""
    return await _answer(view, checked_arguments(read_result(), arguments))


async def _answer(view: View, arguments: JsonObject) -> CallResult:
    if view.read_result is None:
        raise InvalidArguments("No results are kept here.")
    return await view.read_result(arguments, view.caller)
