"""Refuses a `tools/call` whose token lacks a scope by HTTP status 403, so that clients request it.

The layer `dispatch/required_scopes.py` refuses such calls anyway, but with a result, which goes to
the model. A status with a challenge goes to the client, which logs in again for the scope that the
challenge names and repeats the call (2026-07-28, authorization: step-up). Only what the body of the
request tells can be refused here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pegboard.core.json import Json, JsonObject
from pegboard.modes.mode import needs_from_calls, needs_from_names
from pegboard.server.http_sessions import MAX_BYTES, read_body, replay

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from pegboard.server.auth import Auth

_CALL = "tools/call"
CALLING_META_TOOLS = frozenset(
    {
        "call_tool", "call_write_tool", "call_destructive_tool", "call_tools", "tools_dispatch",
        "tools_dispatch_parallel", "invoke_tool",
    }
)  # fmt: skip
_read_name = needs_from_names("name", "tool", "toolName")


class ScopeGate:
    """An ASGI endpoint behind authentication; `auth.missing_scope` says what a call lacks."""

    def __init__(self, app: ASGIApp, auth: Auth) -> None:
        self._app = app
        self._auth = auth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = dict(scope["headers"]).get(b"mcp-method", _CALL.encode())
        if scope["method"] != "POST" or method != _CALL.encode():
            await self._app(scope, receive, send)
            return
        messages, body = await read_body(receive, MAX_BYTES)
        params = _parse_call(body)
        check = self._auth.missing_scope
        missing = check(scope, params) if check is not None and params is not None else None
        if missing is not None:
            await self._auth.refuse(scope, send, error="insufficient_scope", missing=missing)
            return
        await self._app(scope, replay(messages, receive), send)


def _parse_call(body: bytes) -> JsonObject | None:
    """The parameters of a `tools/call`; `None` for any other body, which is not ours to judge."""
    try:
        message: Json = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("method") != _CALL:
        return None
    params: Json = message.get("params")
    return params if isinstance(params, dict) else None


def called_names(params: JsonObject) -> Iterator[str]:
    """The names of the tools that a `tools/call` runs, also through a meta-tool."""
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        return
    yield name
    if name not in CALLING_META_TOOLS or not isinstance(arguments, dict):
        return
    inner: Json = arguments.get("arguments")
    batch = inner if isinstance(inner, dict) and isinstance(inner.get("calls"), list) else {}
    for found in (*_read_name(arguments), *needs_from_calls(arguments), *needs_from_calls(batch)):
        if found.name is not None:
            yield found.name
