"""`read_result`: continues to read a result that was too large to send whole.

Only `proxy` lists it, but results are stored in other modes too. So every mode answers it: by its
name, and, for clients that call nothing unlisted, as the `name` of a call meta-tool.
"""

from __future__ import annotations

from pegboard.core.calls import CallResult
from pegboard.core.json import Json, JsonObject
from pegboard.errors import InvalidArguments
from pegboard.modes.mode import MetaTool, View, check_arguments, object_schema

READ_RESULT = "read_result"

_TEXT: JsonObject = {"type": "string"}
_NUMBER: JsonObject = {"type": "integer"}
_PARAMETERS = object_schema(
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


def build_read_result(view: View) -> MetaTool:
    """The meta-tool itself."""
    text = "Read on in a large result"
    return MetaTool(
        READ_RESULT, text, _PARAMETERS, _answer, {"readOnlyHint": True}, is_listed=False
    )


def is_read_result(view: View, name: Json) -> bool:
    """Whether a call meta-tool should read a stored result, rather than call a tool so named."""
    return (
        name == READ_RESULT and view.read_result is not None and not view.catalog.named(READ_RESULT)
    )


async def read_page(view: View, arguments: Json) -> CallResult:
    """The page that a call meta-tool was asked for."""
    return await _answer(view, check_arguments(build_read_result(view), arguments))


async def _answer(view: View, arguments: JsonObject) -> CallResult:
    if view.read_result is None:
        raise InvalidArguments("No results are stored here.")
    return await view.read_result(arguments, view.caller)
