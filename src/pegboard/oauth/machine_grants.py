"""Tokens that need no login in a browser: client credentials, token exchange, ID-JAG.

| `grant` | what is exchanged for a token of the server |
|---|---|
| `client_credentials` | nothing: the client itself is who calls, for all principals |
| `token_exchange` | a token of the principal (RFC 8693) |
| `id_jag` | an assertion that the company's identity provider issues for a token of the principal |

A token of the principal is the one that they have for this gateway, or one that the operator
provides (`subject_token`). The first is exchanged and never passed on, which MCP forbids.

They need no refresh token: when a token ends, the exchange is made again.
"""

from __future__ import annotations

import time
from typing import Final

import httpx2

from pegboard.credentials import Credentials
from pegboard.errors import ConfigError
from pegboard.oauth.clients import OAuthClient, configured_client, request_tokens
from pegboard.oauth.discovery import AuthorizationServer, Challenge, discover, discover_issuer
from pegboard.oauth.grants import Grant
from pegboard.oauth.http_requests import OAuthError, check_endpoint, open_http
from pegboard.oauth.login_options import OAuthOptions

TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"
ID_TOKEN: Final = "urn:ietf:params:oauth:token-type:id_token"
ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"


async def obtain_grant(
    server: str,
    url: str,
    principal: str,
    options: OAuthOptions,
    *,
    caller_token: str | None = None,
    scope: str | None = None,
) -> Grant:
    """Tokens of a principal for a server.

    Args:
        server: Its name.
        url: Its address.
        principal: Who calls.
        options: Those of the server; `grant` says what to exchange.
        caller_token: The token that the caller has for this gateway, to exchange by default.
        scope: The scopes that the server has asked for.

    Raises:
        OAuthError: There are none.
        PegboardError: The settings are wrong, or there is nothing to exchange for this principal.
    """
    # Whether the credentials are useless to a wrong issuer, which the MCP server might name: a
    # signature is for one issuer, and the identity provider issues assertions only for issuers it
    # knows.
    is_bound = (options.grant == "client_credentials" and options.private_key is not None) or (
        options.grant == "id_jag" and options.identity_provider is not None
    )
    if options.issuer is None and not is_bound:
        raise ConfigError(
            f'{server}: `grant = "{options.grant}"` needs the `issuer`, so that the credentials '
            f"of the client are sent there and nowhere else.",
            server=server,
        )
    subject = _find_subject_token(server, principal, options, caller_token)
    async with open_http() as http:
        if options.grant == "id_jag" and options.issuer is not None:
            found = await discover_issuer(http, options.issuer, url, options)
        else:
            found = await discover(http, url, Challenge(scope=scope), options)
        client = configured_client(options, found.metadata.token_endpoint_auth_methods_supported)
        if client is None:
            raise ConfigError(f"{server}: `oauth.client_id` is missing.", server=server)
        form = {"grant_type": options.grant}
        if options.grant == "token_exchange":
            form = {
                "grant_type": TOKEN_EXCHANGE,
                "subject_token": subject,
                "subject_token_type": options.subject_token_type or ACCESS_TOKEN,
                "requested_token_type": ACCESS_TOKEN,
            }
        elif options.grant == "id_jag":
            if options.identity_provider is not None:
                subject = await _request_assertion(http, url, subject, found, options)
            form = {"grant_type": JWT_BEARER, "assertion": subject}
        if found.resource and options.grant != "id_jag":
            form["resource"] = found.resource
        if found.scope:
            form["scope"] = found.scope
        endpoint = str(found.metadata.token_endpoint)
        response = await request_tokens(http, endpoint, form, client, issuer=found.issuer)
    return Grant(
        issuer=found.issuer,
        token_endpoint=endpoint,
        client_id=client.client_id,
        client_auth=client.method,
        resource=found.resource,
        scope=found.scope,
    ).with_tokens(response, time.time())


def _find_subject_token(
    server: str, principal: str, options: OAuthOptions, caller_token: str | None
) -> str:
    """The token of a principal that is exchanged: their own, or what a template is filled with."""
    if options.grant == "client_credentials":
        return ""
    template = options.subject_token
    if template is None and caller_token is None:
        raise ConfigError(
            f"{server}: the caller has no token to exchange. Callers have one if clients log in to "
            f'this gateway (`kind = "jwt"` in `[auth]`); otherwise set `subject_token`.',
            server=server,
        )
    if template is None:
        return caller_token or ""
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
        # Callers have access tokens of this gateway; what the operator provides is an ID token.
        "subject_token_type": options.subject_token_type
        or (ACCESS_TOKEN if options.exchanges_caller_token else ID_TOKEN),
    }
    try:
        return (await request_tokens(http, endpoint, form, client, issuer=endpoint)).access_token
    except OAuthError as exc:
        raise OAuthError(f"the identity provider issued no assertion: {exc}") from exc
