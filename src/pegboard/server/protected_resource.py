"""What clients read to get a token: RFC 9728 metadata, and `WWW-Authenticate` challenges.

Each address of the endpoint is a resource of its own, because a strict client refuses metadata
about an address other than the one that it called (RFC 9728, section 3.3):

    https://tools.example.com/mcp         /.well-known/oauth-protected-resource/mcp
    https://tools.example.com/mcp/index   /.well-known/oauth-protected-resource/mcp/index

A client requests a token for the address that it calls (RFC 8707). They are all one gateway, so a
token for any of them is good for all of them, and for nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pegboard.core.options import MODES, check_mode
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

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
    """The authorization server, exactly as it calls itself: clients compare every character."""
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
