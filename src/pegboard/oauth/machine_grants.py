"""Tokens without a person at a browser: client credentials, token exchange, ID-JAG.

| `grant` | what is exchanged for a token of the server |
|---|---|
| `client_credentials` | nothing: the client itself is who calls, for all principals |
| `token_exchange` | a token of the principal (RFC 8693) |
| `id_jag` | an assertion that the company's identity provider issues for a token of the principal |

They need no refresh token: when a token ends, the exchange is made again.
"""

from __future__ import annotations

import time
from typing import Final

import httpx2

from pegboard.credentials import Credentials
from pegboard.errors import ConfigError
from pegboard.oauth.challenge import Challenge
from pegboard.oauth.clients import OAuthClient, configured_client
from pegboard.oauth.discovery import AuthorizationServer, discover, discover_issuer
from pegboard.oauth.grants import Grant
from pegboard.oauth.http_requests import OAuthError, check_endpoint, open_http
from pegboard.oauth.options import OAuthOptions
from pegboard.oauth.token_endpoint import request_tokens

TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"
ID_TOKEN: Final = "urn:ietf:params:oauth:token-type:id_token"
ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"


async def obtain_grant(
    server: str, url: str, principal: str, options: OAuthOptions, *, scope: str | None = None
) -> Grant:
    """Tokens of a principal for a server.

    Args:
        server: Its name.
        url: Its address.
        principal: Who calls.
        options: Those of the server; `grant` says what to exchange.
        scope: The scopes that the server has asked for.

    Raises:
        OAuthError: There are none.
        PegboardError: The settings are wrong, or there is nothing to exchange for this principal.
    """
    if options.issuer is None and not _is_bound_to_issuer(options):
        raise ConfigError(
            f'{server}: `grant = "{options.grant}"` needs the `issuer`, so that the credentials '
            f"of the client are sent there and nowhere else.",
            server=server,
        )
    async with open_http() as http:
        if options.grant == "id_jag" and options.issuer is not None:
            found = await discover_issuer(http, options.issuer, url, options)
        else:
            found = await discover(http, url, Challenge(scope=scope), options)
        client = _find_client(server, found, options)
        form = await _build_form(http, server, url, principal, found, options)
        if found.resource and options.grant != "id_jag":
            form["resource"] = found.resource
        if found.scope:
            form["scope"] = found.scope
        endpoint = str(found.metadata.token_endpoint)
        response = await request_tokens(http, endpoint, form, client, issuer=found.issuer)
    grant = Grant(
        issuer=found.issuer,
        token_endpoint=endpoint,
        client_id=client.client_id,
        client_auth=client.method,
        resource=found.resource,
        scope=found.scope,
    )
    return grant.with_tokens(response, time.time())


def _is_bound_to_issuer(options: OAuthOptions) -> bool:
    """Whether what is sent would be of no use to an issuer that only the MCP server vouches for."""
    if options.grant == "id_jag":
        # The identity provider issues assertions for authorization servers that it knows.
        return options.identity_provider is not None
    return options.grant == "client_credentials" and options.private_key is not None


def _find_client(server: str, found: AuthorizationServer, options: OAuthOptions) -> OAuthClient:
    supported = found.metadata.token_endpoint_auth_methods_supported
    client = configured_client(options, supported)
    if client is None:
        raise ConfigError(f"{server}: `oauth.client_id` is missing.", server=server)
    return client


async def _build_form(
    http: httpx2.AsyncClient,
    server: str,
    url: str,
    principal: str,
    found: AuthorizationServer,
    options: OAuthOptions,
) -> dict[str, str]:
    if options.grant == "client_credentials":
        return {"grant_type": "client_credentials"}
    subject = _read_subject_token(server, principal, options)
    if options.grant == "token_exchange":
        return {
            "grant_type": TOKEN_EXCHANGE,
            "subject_token": subject,
            "subject_token_type": options.subject_token_type or ACCESS_TOKEN,
            "requested_token_type": ACCESS_TOKEN,
        }
    if options.identity_provider is not None:
        subject = await _request_assertion(http, url, subject, found, options)
    return {"grant_type": JWT_BEARER, "assertion": subject}


def _read_subject_token(server: str, principal: str, options: OAuthOptions) -> str:
    """The token of a principal that is exchanged; a template is filled as in `headers`."""
    template = options.subject_token
    if template is None:
        raise ConfigError(
            f'{server}: `grant = "{options.grant}"` needs a `subject_token`.', server=server
        )
    filled = Credentials().headers({"token": template}, principal, server=server)
    return filled.get("token", template)


async def _request_assertion(
    http: httpx2.AsyncClient,
    url: str,
    subject: str,
    found: AuthorizationServer,
    options: OAuthOptions,
) -> str:
    """The identity assertion (ID-JAG) that the identity provider issues for the server."""
    endpoint = check_endpoint(options.identity_provider or "", url)
    secret = options.identity_client_secret
    client = OAuthClient(
        client_id=options.identity_client_id or options.client_id or "",
        client_secret=secret,
        method="client_secret_post" if secret else "none",
    )
    form = {
        "grant_type": TOKEN_EXCHANGE,
        "requested_token_type": ID_JAG,
        "audience": found.issuer,
        "resource": found.resource or url,
        "subject_token": subject,
        "subject_token_type": options.subject_token_type or ID_TOKEN,
    }
    try:
        return (await request_tokens(http, endpoint, form, client, issuer=endpoint)).access_token
    except OAuthError as exc:
        raise OAuthError(f"the identity provider issued no assertion: {exc}") from exc
