"""How Pegboard identifies itself to an authorization server, and requests tokens there.

In the order that MCP prescribes: a client that was registered by hand, then a client ID metadata
document, then dynamic registration. A client belongs to the issuer that it was registered with, and
is never presented to another.
"""

from __future__ import annotations

import base64
import secrets
import time
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import quote

import httpx2
from mcp.client.auth.utils import is_valid_client_metadata_url
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata
from pydantic import ValidationError

from pegboard.core.json import Json
from pegboard.errors import ConfigError
from pegboard.oauth.discovery import AuthorizationServer, NoLoginOffered
from pegboard.oauth.grants import Grant, TokenResponse, parse_token_response
from pegboard.oauth.http_requests import (
    Answer,
    AuthorizationRefused,
    AuthorizationServerUnavailable,
    OAuthError,
    raise_for_refusal,
    send,
)
from pegboard.oauth.login_options import ClientAuthMethod, OAuthOptions

CLIENT_NAME: Final = "Pegboard"
ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ASSERTION_LIFETIME: Final = 300
_SECRET_FIELDS: Final = frozenset(
    {
        "assertion", "client_assertion", "client_secret", "code", "code_verifier", "refresh_token",
        "subject_token", "token",
    }
)  # fmt: skip
_SECRET_METHODS: Final = ("client_secret_basic", "client_secret_post")


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    """A client at one authorization server, with its credentials."""

    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    method: ClientAuthMethod = "none"
    private_key: str | None = field(default=None, repr=False)
    key_id: str | None = None
    is_registered: bool = False
    """Whether Pegboard registered it: its secret is stored with the grant."""
    registered_scope: str | None = None

    def authenticate(self, data: dict[str, str], *, audience: str) -> dict[str, str]:
        """Add the client's credentials to a form; returns the headers to send with it.

        Args:
            data: The form of a request to a token or revocation endpoint.
            audience: The issuer, for an assertion that is signed for it.

        Raises:
            ConfigError: The private key cannot be used.
        """
        if self.method == "client_secret_basic":
            # Not in the form as well: strict servers refuse a client that authenticates twice.
            pair = f"{quote(self.client_id, safe='')}:{quote(self.client_secret or '', safe='')}"
            return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
        data["client_id"] = self.client_id
        if self.method == "client_secret_post":
            data["client_secret"] = self.client_secret or ""
        elif self.method == "private_key_jwt":
            data["client_assertion_type"] = ASSERTION_TYPE
            data["client_assertion"] = self._sign_assertion(audience)
        return {}

    def _sign_assertion(self, audience: str) -> str:
        import jwt
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key((self.private_key or "").encode(), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as exc:
            raise ConfigError(
                "The `private_key` of an `oauth` table is not a private key in PEM format without "
                "a password."
            ) from exc
        algorithm = "RS256"
        if isinstance(key, ec.EllipticCurvePrivateKey):
            algorithm = {256: "ES256", 384: "ES384"}.get(key.curve.key_size, "ES512")
        elif isinstance(key, ed25519.Ed25519PrivateKey):
            algorithm = "EdDSA"
        now = int(time.time())
        claims = {
            "iss": self.client_id,
            "sub": self.client_id,
            "aud": audience,
            "iat": now,
            "exp": now + _ASSERTION_LIFETIME,
            "jti": secrets.token_urlsafe(16),
        }
        headers = {"kid": self.key_id} if self.key_id else None
        return jwt.encode(claims, self.private_key or "", algorithm=algorithm, headers=headers)


def configured_client(
    options: OAuthOptions, supported: list[str] | None = None
) -> OAuthClient | None:
    """The client that was registered by hand, if there is one.

    Args:
        options: What is configured.
        supported: The authentication methods that the authorization server announces.
    """
    if options.client_id is None:
        return None
    method: ClientAuthMethod = "none"
    if options.private_key:
        method = "private_key_jwt"
    elif options.client_secret:
        # Without a list, RFC 8414 says that this method is supported. With both, the other
        # one is safer: the SDK's server requires `client_id` in the form; strict ones reject it.
        has_post = supported is not None and "client_secret_post" in supported
        is_basic = supported is None or ("client_secret_basic" in supported and not has_post)
        method = "client_secret_basic" if is_basic else "client_secret_post"
    return OAuthClient(
        client_id=options.client_id,
        client_secret=options.client_secret,
        method=options.client_auth or method,
        private_key=options.private_key,
        key_id=options.key_id,
    )


def client_of_grant(grant: Grant, options: OAuthOptions) -> OAuthClient:
    """The client that a grant was made with; its secret is the configured one, if it has one."""
    method = cast(ClientAuthMethod, grant.client_auth)
    if options.client_id == grant.client_id:
        return OAuthClient(
            client_id=grant.client_id,
            client_secret=options.client_secret,
            method=method,
            private_key=options.private_key,
            key_id=options.key_id,
        )
    return OAuthClient(
        client_id=grant.client_id,
        client_secret=grant.client_secret,
        method=method,
        is_registered=True,
        registered_scope=grant.registered_scope,
    )


async def find_client(
    http: httpx2.AsyncClient,
    server: AuthorizationServer,
    options: OAuthOptions,
    *,
    redirect_uri: str,
    metadata_url: str | None,
    earlier: Grant | None = None,
) -> OAuthClient:
    """The client to log in with.

    Args:
        http: For a registration.
        server: The authorization server.
        options: What is configured.
        redirect_uri: Where the browser is sent afterwards.
        metadata_url: The address of the client ID metadata document, if one is hosted.
        earlier: An earlier login, whose registration is used again if it is still the right one.

    Raises:
        OAuthError: There is no client, and none can be registered.
    """
    supported = server.metadata.token_endpoint_auth_methods_supported
    by_hand = configured_client(options, supported)
    if by_hand is not None:
        return by_hand
    metadata_url = options.client_metadata_url or metadata_url
    if metadata_url and server.metadata.client_id_metadata_document_supported:
        if not is_valid_client_metadata_url(metadata_url):
            raise OAuthError(
                f"`client_metadata_url` must be an https:// URL with a path: {metadata_url}"
            )
        return OAuthClient(client_id=metadata_url)
    if earlier is not None and _is_reusable(earlier, server, redirect_uri, metadata_url):
        return client_of_grant(earlier, options)
    return await _register(http, server, redirect_uri)


def _is_reusable(
    earlier: Grant, server: AuthorizationServer, redirect_uri: str, metadata_url: str | None
) -> bool:
    """Whether the client that was registered for an earlier login can be used for this one too."""
    # Some servers let a client request only the scopes that it was registered for.
    registered = earlier.registered_scope or earlier.scope or ""
    return (
        earlier.issuer == server.issuer
        and earlier.redirect_uri == redirect_uri
        and earlier.client_id != metadata_url
        and earlier.ended not in ("invalid_client", "unauthorized_client")
        # Nobody came back from the last login: the server may have forgotten the client, and
        # reports that only in the browser.
        and earlier.login_begun_at is None
        and set((server.scope or "").split()) <= set(registered.split())
    )


async def _register(
    http: httpx2.AsyncClient, server: AuthorizationServer, redirect_uri: str
) -> OAuthClient:
    """Register Pegboard (RFC 7591)."""
    endpoint = server.metadata.registration_endpoint
    if endpoint is None:
        raise OAuthError(
            f"{server.issuer} does not support dynamic client registration. Register a client "
            f"there by hand, with the redirect URL {redirect_uri}, and set `client_id` (and "
            f"`issuer`, and `client_secret` if it has one) in the server's `oauth` table"
        )
    wanted = OAuthClientMetadata.model_validate(
        {
            "client_name": CLIENT_NAME,
            "redirect_uris": [redirect_uri],
            "token_endpoint_auth_method": "none",
            "scope": server.scope,
        }
    ).model_dump(mode="json", exclude_none=True)
    request = httpx2.Request("POST", str(endpoint), json=wanted)
    try:
        answer = await send(http, request)
        raise_for_refusal(answer, {})
    except AuthorizationRefused as exc:
        raise OAuthError(f"the registration failed: {exc}") from exc
    except AuthorizationServerUnavailable as exc:
        if not server.is_announced:
            # Most likely it has nothing to do with OAuth, and wants an API key.
            raise NoLoginOffered("it offers no login: check its `headers`") from exc
        raise
    return _read_registration(answer.json(), server.scope)


def _read_registration(value: Json, scope: str | None) -> OAuthClient:
    try:
        found = OAuthClientInformationFull.model_validate(value)
    except ValidationError as exc:
        raise OAuthError("the answer to the registration has no client id") from exc
    method = found.token_endpoint_auth_method
    if method is None:
        method = "client_secret_basic" if found.client_secret else "none"
    if method not in ("none", *_SECRET_METHODS) or (method != "none" and not found.client_secret):
        raise OAuthError(
            "the authorization server registered a client with an authentication method that "
            "Pegboard cannot use: register a client by hand, and set `client_id`"
        )
    return OAuthClient(
        client_id=found.client_id,
        client_secret=found.client_secret,
        method=cast(ClientAuthMethod, method),
        is_registered=True,
        registered_scope=scope,
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
    elif grant.scope:
        # Entra, which has no `resource`, would otherwise issue a token for Microsoft Graph.
        form["scope"] = grant.scope
    return await request_tokens(http, grant.token_endpoint, form, client, issuer=grant.issuer)


async def revoke(http: httpx2.AsyncClient, grant: Grant, client: OAuthClient) -> bool:
    """Revoke a grant at the authorization server (RFC 7009); false if it does not support that.

    Raises:
        OAuthError: It did not.
    """
    if grant.revocation_endpoint is None:
        return False
    # Revoking the refresh token ends the whole grant; an access token may be all there is.
    is_revoked = False
    for hint, token in (
        ("refresh_token", grant.refresh_token),
        ("access_token", grant.access_token),
    ):
        if token is None:
            continue
        form = {"token": token, "token_type_hint": hint}
        try:
            await _post(http, grant.revocation_endpoint, form, client, grant.issuer)
        except AuthorizationRefused as exc:
            if exc.error == "unsupported_token_type" and hint == "access_token" and is_revoked:
                break  # for example, a JSON Web Token: it expires, and can no longer be renewed
            if client.method != "none":
                raise
            # The SDK's server requires a secret even from a client without one; an empty one is
            # equivalent (RFC 6749, section 2.3.1).
            form["client_secret"] = ""
            await _post(http, grant.revocation_endpoint, form, client, grant.issuer)
        is_revoked = True
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
    # Only what is secret: the code of an error such as `bad_refresh_token` has to stay readable.
    secret = {name: value for name, value in form.items() if name in _SECRET_FIELDS}
    raise_for_refusal(answer, {**secret, "secret": client.client_secret or ""})
    return answer
