"""Which authorization server protects an MCP server, found from a refused request.

    challenge ──> protected resource metadata (RFC 9728) ──> metadata of the authorization server
                                                             (RFC 8414, or OpenID discovery)

Servers of MCP 2025-03-26 have no resource metadata: there the MCP server's own origin is the
authorization server, with default endpoints if it has no metadata either.

The server decides where a person is sent, so everything is checked: the metadata must be about this
server, name the expected issuer, and support PKCE.

The challenge is the `WWW-Authenticate` header of the refused request (RFC 6750).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    create_oauth_metadata_request,
    issuers_match,
    union_scopes,
)
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import BaseModel, ValidationError

from pegboard.oauth.http_requests import (
    Answer,
    AuthorizationServerUnavailable,
    OAuthError,
    check_endpoint,
    quote_text,
    send,
)
from pegboard.oauth.login_options import OAuthOptions

OFFLINE_ACCESS = "offline_access"
INSUFFICIENT_SCOPE = "insufficient_scope"
Model = TypeVar("Model", bound=BaseModel)


class NoLoginOffered(OAuthError):
    """The server says nothing about how to log in."""


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """The authorization server of one MCP server."""

    metadata: OAuthMetadata
    resource: str | None
    """The resource that tokens are requested for; `None` if requests do not name one."""
    scope: str | None
    """The scopes to request."""
    is_announced: bool
    """Whether it published its metadata; otherwise its endpoints are the defaults of 2025-03-26."""

    @property
    def issuer(self) -> str:
        return str(self.metadata.issuer)


async def discover(
    http: httpx2.AsyncClient,
    server_url: str,
    challenge: Challenge,
    options: OAuthOptions,
    *,
    granted_scope: str | None = None,
    extra_scope: str | None = None,
) -> AuthorizationServer:
    """Find the authorization server of an MCP server.

    Args:
        http: For requests to it.
        server_url: The MCP server.
        challenge: What it answered to a request without a valid token.
        options: What is configured.
        granted_scope: The scopes of an earlier login, which a step-up asks for again.
        extra_scope: Additional scopes to request.

    Raises:
        NoLoginOffered: The server offers no login.
        OAuthError: What it offers cannot be used or trusted.
    """
    resource = await _read_resource_metadata(http, server_url, challenge)
    advertised = [str(url) for url in resource.authorization_servers] if resource else []
    issuer = _choose_issuer(advertised, options.issuer)
    metadata = await _read_server_metadata(http, issuer, server_url)
    is_announced = metadata is not None
    if metadata is None:
        if issuer is not None:
            raise OAuthError(f"the authorization server {quote_text(issuer)} has no metadata")
        metadata = _default_metadata(server_url)
    for endpoint in (
        metadata.authorization_endpoint,
        metadata.token_endpoint,
        metadata.registration_endpoint,
        metadata.revocation_endpoint,
    ):
        if endpoint is not None:
            check_endpoint(str(endpoint), server_url)
    scope = _choose_scope(challenge, resource, metadata, options, granted_scope)
    named = None
    if options.resource:
        # The metadata may be about a parent of the address, which then is what tokens are for.
        named = str(resource.resource) if resource else resource_url_from_server_url(server_url)
    return AuthorizationServer(metadata, named, union_scopes(scope, extra_scope), is_announced)


async def discover_issuer(
    http: httpx2.AsyncClient, issuer: str, server_url: str, options: OAuthOptions
) -> AuthorizationServer:
    """The authorization server that is configured, whatever the MCP server says about it.

    Raises:
        OAuthError: It has no metadata that can be trusted.
    """
    metadata = await _read_server_metadata(http, issuer, server_url)
    if metadata is None:
        raise OAuthError(f"the authorization server {quote_text(issuer)} has no metadata")
    check_endpoint(str(metadata.token_endpoint), server_url)
    resource = resource_url_from_server_url(server_url) if options.resource else None
    return AuthorizationServer(metadata, resource, options.scope, is_announced=True)


# Protected resource metadata -------------------------------------------------------------------


async def _read_resource_metadata(
    http: httpx2.AsyncClient, server_url: str, challenge: Challenge
) -> ProtectedResourceMetadata | None:
    failure: AuthorizationServerUnavailable | None = None
    urls = build_protected_resource_metadata_discovery_urls(challenge.resource_metadata, server_url)
    for url in urls:
        check_endpoint(url, server_url)
        answer = await send(http, create_oauth_metadata_request(url))
        found = _parse(ProtectedResourceMetadata, answer)
        if found is not None:
            # Otherwise a server could make people log in to get tokens for another server.
            expected = resource_url_from_server_url(server_url)
            if not check_resource_allowed(expected, str(found.resource)):
                about = quote_text(str(found.resource))
                raise OAuthError(f"its metadata is about another server: {about}")
            return found
        if answer.status >= 500 or answer.status == 429:
            # This does not show whether there is metadata, so the defaults must not be used.
            failure = AuthorizationServerUnavailable(
                f"{urlsplit(url).hostname} answered with HTTP status {answer.status}"
            )
    if failure is not None:
        raise failure
    return None


# Metadata of the authorization server ----------------------------------------------------------


def _choose_issuer(advertised: list[str], configured: str | None) -> str | None:
    """The issuer to use; `None` for the MCP server's own origin."""
    if configured is None:
        return advertised[0] if advertised else None
    for issuer in advertised:
        if issuers_match(issuer, configured):
            return issuer
    if advertised:
        raise OAuthError(
            f"it requires a login at {quote_text(advertised[0])}, but `issuer` is {configured}. "
            f"A client of one authorization server is not used at another"
        )
    return configured


async def _read_server_metadata(
    http: httpx2.AsyncClient, issuer: str | None, server_url: str
) -> OAuthMetadata | None:
    failure: AuthorizationServerUnavailable | None = None
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, server_url):
        check_endpoint(url, server_url)
        answer = await send(http, create_oauth_metadata_request(url))
        if answer.status >= 500 or answer.status == 429:
            failure = AuthorizationServerUnavailable(
                f"{urlsplit(url).hostname} answered with HTTP status {answer.status}"
            )
        found = _parse(OAuthMetadata, answer)
        if found is None:
            continue
        # Metadata must name the issuer that it was requested for (RFC 8414, section 3.3), character
        # by character: two issuers that look alike may be different. The final slash is optional
        # only if the server itself is the issuer.
        expected, named = issuer or _origin(server_url), str(found.issuer)
        if named != expected and not (issuer is None and issuers_match(named, expected)):
            raise OAuthError(
                f"the metadata of {quote_text(expected)} names another issuer, {quote_text(named)}"
            )
        return found
    if failure is not None:
        raise failure
    return None


def _default_metadata(server_url: str) -> OAuthMetadata:
    """The endpoints of a server of MCP 2025-03-26 without metadata."""
    origin = _origin(server_url)
    return OAuthMetadata.model_validate(
        {
            "issuer": origin,
            "authorization_endpoint": f"{origin}/authorize",
            "token_endpoint": f"{origin}/token",
            "registration_endpoint": f"{origin}/register",
        }
    )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _parse(model: type[Model], answer: Answer) -> Model | None:
    if answer.status != 200:
        return None
    try:
        return model.model_validate_json(answer.body)
    except ValidationError:
        return None


# Scopes ----------------------------------------------------------------------------------------


def _choose_scope(
    challenge: Challenge,
    resource: ProtectedResourceMetadata | None,
    metadata: OAuthMetadata,
    options: OAuthOptions,
    granted_scope: str | None,
) -> str | None:
    """The scopes to request: the configured ones, those of the challenge, or all of the server.

    A step-up requests the old ones too: otherwise other calls would lack scopes with the new token.
    """
    wanted = options.scope or challenge.scope
    if wanted is None and resource is not None and resource.scopes_supported:
        wanted = " ".join(resource.scopes_supported)
    if challenge.is_step_up:  # MCP 2026-07-28, "Step-Up Authorization Flow"
        wanted = union_scopes(granted_scope, union_scopes(wanted, challenge.scope))
    # A refresh token needs this scope at some servers, and others refuse a scope they do not list.
    can_stay_offline = OFFLINE_ACCESS in (metadata.scopes_supported or ())
    if wanted and can_stay_offline and options.scope is None:
        wanted = union_scopes(wanted, OFFLINE_ACCESS)
    return wanted or None


_MAX_HEADER_LENGTH = 8_000
_PARAMETER = re.compile(r'(?<![\w-])([\w-]++)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))')


@dataclass(frozen=True, slots=True)
class Challenge:
    """The parameters of a `WWW-Authenticate` header that are about OAuth."""

    scope: str | None = None
    """The scopes that the request needs."""
    resource_metadata: str | None = None
    """The address of the server's protected resource metadata."""
    error: str | None = None

    @property
    def is_step_up(self) -> bool:
        """Whether the token is valid, but has too few scopes."""
        return self.error == INSUFFICIENT_SCOPE


def parse_challenge(header: str | None) -> Challenge:
    """The challenge in a header; an empty one where there is none."""
    text = (header or "")[:_MAX_HEADER_LENGTH]
    found: dict[str, str] = {}
    # A quoted text is matched as a whole: nothing inside it is a parameter.
    for name, quoted, plain in _PARAMETER.findall(text):
        found.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) or plain)
    known = {name: found.get(name) or None for name in ("scope", "resource_metadata", "error")}
    return Challenge(**known)
