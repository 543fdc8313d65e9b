"""Requests to token and revocation endpoints."""

from __future__ import annotations

import httpx2

from pegboard.oauth.clients import OAuthClient
from pegboard.oauth.grants import Grant, TokenResponse, parse_token_response
from pegboard.oauth.http_requests import (
    Answer,
    AuthorizationRefused,
    AuthorizationServerUnavailable,
    raise_for_refusal,
    send,
)


async def request_tokens(
    http: httpx2.AsyncClient,
    endpoint: str,
    form: dict[str, str],
    client: OAuthClient,
    *,
    issuer: str,
) -> TokenResponse:
    """The tokens that a grant is exchanged for.

    Raises:
        AuthorizationRefused: The authorization server refused the request.
        AuthorizationServerUnavailable: It gave no usable answer.
        ConfigError: The client's private key cannot be used.
    """
    answer = await _post(http, endpoint, form, client, issuer)
    try:
        return parse_token_response(answer.json())
    except ValueError as exc:
        raise AuthorizationServerUnavailable(f"{issuer}: {exc}") from exc


async def refresh(http: httpx2.AsyncClient, grant: Grant, client: OAuthClient) -> TokenResponse:
    """New tokens for a grant; raises as `request_tokens`."""
    form = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token or ""}
    if grant.resource:
        form["resource"] = grant.resource
    return await request_tokens(http, grant.token_endpoint, form, client, issuer=grant.issuer)


async def revoke(http: httpx2.AsyncClient, grant: Grant, client: OAuthClient) -> bool:
    """Have the authorization server forget a grant (RFC 7009); false if it has no way to.

    Raises:
        OAuthError: It did not.
    """
    if grant.revocation_endpoint is None:
        return False
    # Revoking the refresh token ends the whole grant; an access token may be all there is.
    for hint, token in (
        ("refresh_token", grant.refresh_token),
        ("access_token", grant.access_token),
    ):
        if token is None:
            continue
        form = {"token": token, "token_type_hint": hint}
        try:
            await _post(http, grant.revocation_endpoint, form, client, grant.issuer)
        except AuthorizationRefused:
            if client.method != "none":
                raise
            # The SDK's server wants a secret of a client that has none; an empty one is the same
            # (RFC 6749, section 2.3.1).
            form["client_secret"] = ""
            await _post(http, grant.revocation_endpoint, form, client, grant.issuer)
    return True


async def _post(
    http: httpx2.AsyncClient,
    endpoint: str,
    form: dict[str, str],
    client: OAuthClient,
    issuer: str,
) -> Answer:
    headers = client.authenticate(form, audience=issuer)
    # Without `Accept`, GitHub answers with a form.
    request = httpx2.Request(
        "POST", endpoint, data=form, headers={"Accept": "application/json", **headers}
    )
    answer = await send(http, request)
    sent = {**form, "secret": client.client_secret or ""}
    raise_for_refusal(answer, sent)
    return answer
