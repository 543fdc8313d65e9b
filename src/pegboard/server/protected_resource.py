"""What clients read to get a token: RFC 9728 metadata, and challenges, also for a missing scope.

Each address of the endpoint is a resource of its own, because a strict client refuses metadata
about an address other than the one that it called (RFC 9728, section 3.3):

    https://tools.example.com/mcp         /.well-known/oauth-protected-resource/mcp
    https://tools.example.com/mcp/index   /.well-known/oauth-protected-resource/mcp/index

A client requests a token for the address that it calls (RFC 8707). They are all one gateway, so a
token for any of them is valid for all of them, and for nothing else.

A `tools/call` whose token lacks a scope is refused with status 403 (`ScopeGate`). The layer
`dispatch/required_scopes.py` refuses such calls anyway, but with a result, which goes to the model.
A status with a challenge goes to the client, which logs in again for the scope that the challenge
names and repeats the call (2026-07-28, authorization: step-up). Only what the body of the request
tells can be refused this way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pegboard.core.json import Json, JsonObject
from pegboard.core.options import MODES, check_mode
from pegboard.errors import ConfigError
from pegboard.modes.mode import needs_from_calls, needs_from_names
from pegboard.server.http_sessions import MAX_BYTES, read_body, replay_messages

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route
    from starlette.types import ASGIApp, Receive, Scope, Send

    from pegboard.server.auth import Auth


WELL_KNOWN = "/.well-known/oauth-protected-resource"
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_ADDRESS = re.compile(r"https?://[^\s\"\\#]+")


@dataclass(frozen=True, kw_only=True)
class ProtectedResource:
    """The endpoint, as authorization servers and clients know it.

    Raises:
        ConfigError: An address or a scope is not valid.
    """

    url: str
    """The public address of `/mcp`."""
    issuer: str
    """The issuer, exactly as in the authorization server's metadata: clients compare every
    character."""
    scopes: tuple[str, ...] = ()
    """All scopes that a token for it may have."""

    def __post_init__(self) -> None:
        for what, address in (("issuer", self.issuer), ("resource", self.url)):
            if not _ADDRESS.fullmatch(address) or not urlsplit(address).netloc:
                raise ConfigError(
                    f"`{what}` under [auth] is {address!r}; it must be an http or https URL "
                    f"without a fragment."
                )
        check_scopes(self.scopes)

    def address(self, mode: str | None = None) -> str:
        """The public address of `/mcp`, or of `/mcp/<mode>`."""
        return f"{self.url.rstrip('/')}/{mode}" if mode else self.url

    @property
    def audiences(self) -> tuple[str, ...]:
        """The addresses that a token may be for."""
        return (self.url, *(self.address(mode) for mode in ("auto", *MODES)))

    def metadata_url(self, mode: str | None = None) -> str:
        """Where the metadata of an address is (RFC 9728, section 3.1)."""
        parts = urlsplit(self.address(mode))
        return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path.rstrip('/')}"

    def metadata(self, mode: str | None = None) -> dict[str, Any]:
        """The metadata of an address."""
        found: dict[str, Any] = {
            "resource": self.address(mode),
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
        }
        return {**found, "scopes_supported": list(self.scopes)} if self.scopes else found

    def routes(self) -> list[Route]:
        """The routes of the metadata; web pages whose origin is allowed may read it."""
        from mcp.server.auth.routes import cors_middleware
        from starlette.responses import JSONResponse
        from starlette.routing import Route

        async def show(request: Request) -> Response:
            mode = request.path_params.get("mode")
            try:
                body = self.metadata(check_mode(mode) if mode else None)
            except ConfigError as exc:
                return JSONResponse({"error": exc.message}, status_code=404)
            return JSONResponse(body, headers={"Cache-Control": "public, max-age=3600"})

        methods = ["GET", "OPTIONS"]
        path = urlsplit(self.metadata_url()).path
        paths = (path, f"{path}/{{mode}}")
        return [Route(p, cors_middleware(show, methods), methods=methods) for p in paths]


def check_scopes(scopes: Iterable[str]) -> None:
    """Refuse a scope that cannot stand in a challenge (RFC 6749, section 3.3).

    Raises:
        ConfigError: It has a space, a quote or another such character.
    """
    for scope in scopes:
        if not _SCOPE.fullmatch(scope):
            raise ConfigError(
                f"The scope {scope!r} under [auth] is not valid: a scope is one word, without "
                f"spaces, quotes and backslashes."
            )


def build_challenge(
    metadata_url: str | None,
    scopes: Iterable[str],
    error: str | None = None,
    description: str | None = None,
) -> str:
    """The value of `WWW-Authenticate`: what was wrong, where to get a token, with which scopes."""
    given = {
        "error": error,
        "error_description": description,
        "scope": " ".join(scopes),
        "resource_metadata": metadata_url,
    }
    present = [f'{name}="{value}"' for name, value in given.items() if value]
    # A challenge has at least one parameter (RFC 6750, section 3).
    return "Bearer " + (", ".join(present) or 'realm="pegboard"')


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
        await self._app(scope, replay_messages(messages, receive), send)


def _parse_call(body: bytes) -> JsonObject | None:
    """The parameters of a `tools/call`; `None` for any other body, which needs no scope."""
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
