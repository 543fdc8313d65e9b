"""One login of one person: from the URL to open, through the redirect, to a stored grant.

    Login.begin      finds the authorization server, the client, and the address to open
    login.receive    takes the redirect, checks it, redeems the code and stores the grant

A redirect is external input: anybody can open such a URL on this machine. Nothing in it is trusted
unless its `state` is that of this login, and a wrong `state` does not end the login.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.utils import union_scopes, validate_authorization_response_iss
from mcp.shared.auth import OAuthMetadata

from pegboard.core.json import JsonObject
from pegboard.errors import PegboardError
from pegboard.oauth.access_tokens import ServerTokens
from pegboard.oauth.clients import OAuthClient, client_of_grant, find_client, request_tokens
from pegboard.oauth.discovery import (
    INSUFFICIENT_SCOPE,
    OFFLINE_ACCESS,
    AuthorizationServer,
    Challenge,
    discover,
    parse_challenge,
)
from pegboard.oauth.grant_storage import GrantUnreadable
from pegboard.oauth.grants import Grant, parse_grant
from pegboard.oauth.http_requests import OAuthError, open_http, quote_text, send

_PROBE = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
_PROBE_HEADERS = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
}


class WrongRedirect(OAuthError):
    """A redirect that does not belong to this login, which continues."""


class LoginNotNeeded(OAuthError):
    """The server answers without a login."""


@dataclass(frozen=True, slots=True)
class LoginRequest:
    """Who logs in to which server, and how they come back."""

    tokens: ServerTokens
    principal: str
    redirect_uri: str
    challenge: Challenge | None = None
    """What the server answered; if this is not known, it is sent a request."""
    metadata_url: str | None = None
    """The address of the client ID metadata document, if one is hosted."""
    scope: str | None = None
    """Additional scopes to request."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Headers that the server requires in addition to the token."""


class Login:
    """A login that somebody has to complete in a browser; made by `begin`."""

    def __init__(
        self,
        request: LoginRequest,
        server: AuthorizationServer,
        client: OAuthClient,
        *,
        state: str | None = None,
        verifier: str | None = None,
    ) -> None:
        self._request = request
        self._server = server
        self._client = client
        self._state = state or secrets.token_urlsafe(32)
        self._verifier = verifier or secrets.token_urlsafe(64)
        self._is_redeemed = False
        self._lock = anyio.Lock()
        self.done = anyio.Event()
        """Set when it has succeeded or failed."""
        self.failure: str | None = None
        digest = hashlib.sha256(self._verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": client.client_id,
            "redirect_uri": request.redirect_uri,
            "state": self._state,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        if server.resource:
            query["resource"] = server.resource
        if server.scope:
            query["scope"] = server.scope
            if OFFLINE_ACCESS in server.scope.split():
                query["prompt"] = "consent"  # OpenID Connect Core, section 11
        endpoint = str(server.metadata.authorization_endpoint)
        self.address = f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"
        """What the person opens in a browser; there is nothing secret in it."""

    @classmethod
    async def begin(cls, request: LoginRequest) -> Self:
        """Prepare a login.

        Raises:
            LoginNotNeeded: The server answers without one.
            NoLoginOffered: The server says nothing about logins.
            OAuthError: It cannot be prepared.
        """
        tokens, key = request.tokens, request.tokens.key(request.principal)
        try:
            # Before anybody is sent to a browser: a login that cannot be stored would be useless.
            await tokens.storage.check(key)
            earlier = await tokens.storage.load(key)
        except GrantUnreadable:
            earlier = None  # it is about to be replaced
        except TimeoutError as exc:
            raise OAuthError(f"a login could not be stored: {exc}") from exc
        except OSError as exc:
            raise OAuthError(
                f"a login could not be stored ({exc}): set PEGBOARD_HOME to a folder that can be "
                f"written to"
            ) from exc
        except PegboardError as exc:  # the shared store does not answer, or a keyring is locked
            raise OAuthError(f"a login could not be stored: {exc.message.rstrip('.')}") from exc
        async with open_http() as http:
            challenge = request.challenge or await probe(http, tokens.url, request.headers)
            if earlier is not None and earlier.needed_scope:
                scope = union_scopes(challenge.scope, earlier.needed_scope)
                challenge = replace(challenge, scope=scope, error=INSUFFICIENT_SCOPE)
            server = await discover(
                http,
                tokens.url,
                challenge,
                tokens.options,
                granted_scope=earlier.scope if earlier is not None else None,
                extra_scope=request.scope,
            )
            methods = server.metadata.code_challenge_methods_supported or []
            # Servers of 2025-03-26 without metadata announce nothing, and have to support it.
            is_assumed = tokens.options.pkce == "assume" or not server.is_announced
            if "S256" not in methods and not is_assumed:
                raise OAuthError(
                    f"{server.issuer} does not say that it supports PKCE, which protects the "
                    f'login. If it does (Entra, Cognito), set `pkce = "assume"` in the server\'s '
                    f"`oauth` table"
                )
            client = await find_client(
                http,
                server,
                tokens.options,
                redirect_uri=request.redirect_uri,
                metadata_url=request.metadata_url,
                earlier=earlier,
            )
        if earlier is not None and client.is_registered and client.client_id == earlier.client_id:
            # Cleared when the login succeeds, which shows that the client works.
            await tokens.amend(request.principal, login_begun_at=time.time())
        return cls(request, server, client)

    def to_json(self) -> JsonObject:
        """What another process needs to complete it; secret."""
        return {
            "grant": self._build_grant().to_json(),
            "metadata": self._server.metadata.model_dump(mode="json", exclude_none=True),
            "state": self._state,
            "verifier": self._verifier,
        }

    @classmethod
    def from_json(cls, tokens: ServerTokens, principal: str, value: JsonObject) -> Self:
        """The login that another process has begun for a principal, from its `to_json`."""
        grant = parse_grant(value["grant"])
        server = AuthorizationServer(
            OAuthMetadata.model_validate(value["metadata"]),
            grant.resource,
            grant.scope,
            is_announced=True,
        )
        return cls(
            LoginRequest(tokens, principal, grant.redirect_uri or ""),
            server,
            client_of_grant(grant, tokens.options),
            state=value["state"],
            verifier=value["verifier"],
        )

    @property
    def host(self) -> str:
        """Where the person logs in."""
        return urlsplit(self.address).hostname or ""

    async def receive(self, redirect: str) -> None:
        """Take the address that the browser was sent to, and complete the login.

        Raises:
            WrongRedirect: It belongs to another login, or to none; this one continues.
            OAuthError: The login has failed.
        """
        answer = self.parse_redirect(redirect)
        async with self._lock:
            if self.done.is_set() or self._is_redeemed:
                raise WrongRedirect("This address was used already.")
            self._is_redeemed = True
            try:
                await self._redeem(answer)
            except (OAuthError, PegboardError) as exc:
                self.failure = str(exc).rstrip(".")
                raise OAuthError(self.failure) from exc
            finally:
                self.done.set()

    def parse_redirect(self, redirect: str) -> dict[str, str]:
        """The answer of the authorization server in an address, if it belongs to this login.

        Raises:
            WrongRedirect: It does not.
        """
        try:
            # People paste it with quotes or brackets around it.
            query = urlsplit(redirect.strip(" \t\r\n\"'<>")).query
        except ValueError:  # such as an open bracket, which begins an IPv6 address
            query = ""
        answer = {k: v[0] for k, v in parse_qs(query).items()}
        # The address of the login itself has the right `state` too, and people paste it.
        is_redirect = "state" in answer and ("code" in answer or "error" in answer)
        is_own = secrets.compare_digest(answer.get("state", "").encode(), self._state.encode())
        if not is_redirect or not is_own:
            what = "belongs to another login" if is_redirect else "is not a redirect"
            raise WrongRedirect(
                f"This address {what}. Paste the whole address that the browser was sent to: it "
                f"starts with {self._request.redirect_uri}?"
            )
        return answer

    def give_up(self, reason: str) -> None:
        """End the login without success, unless it has ended."""
        if not self.done.is_set():
            self.failure = reason
            self.done.set()

    async def _redeem(self, answer: dict[str, str]) -> None:
        metadata, tokens = self._server.metadata, self._request.tokens
        try:
            # Checked before a code is used: `iss` tells whether the answer is from this issuer. A
            # refusal without it, as some servers send, ends the login anyway.
            if "iss" in answer or "error" not in answer:
                validate_authorization_response_iss(answer.get("iss"), metadata)
        except OAuthFlowError as exc:
            raise OAuthError(
                f"the answer is from another authorization server than {self._server.issuer}"
            ) from exc
        if "error" in answer:
            detail = answer.get("error_description") or answer["error"]
            declined = answer["error"] == "access_denied"
            what = "the login was declined" if declined else "the login failed"
            raise OAuthError(f"{what}: {quote_text(detail)}")
        form = {
            "grant_type": "authorization_code",
            "code": answer["code"],
            "redirect_uri": self._request.redirect_uri,
            "code_verifier": self._verifier,
        }
        if self._server.resource:
            form["resource"] = self._server.resource
        # A code that was redeemed must not be lost, even if the caller gave up meanwhile.
        with anyio.CancelScope(shield=True):
            async with open_http() as http:
                response = await request_tokens(
                    http,
                    str(metadata.token_endpoint),
                    form,
                    self._client,
                    issuer=self._server.issuer,
                )
            grant = self._build_grant().with_tokens(response, time.time())
            key = tokens.key(self._request.principal)
            try:
                async with tokens.storage.lock(key):
                    await tokens.storage.save(key, grant)
            except OSError as exc:
                raise OAuthError(f"it worked, but cannot be stored: {exc}") from exc
            tokens.forget(self._request.principal)

    def _build_grant(self) -> Grant:
        client, metadata = self._client, self._server.metadata
        revocation = metadata.revocation_endpoint
        return Grant(
            issuer=self._server.issuer,
            token_endpoint=str(metadata.token_endpoint),
            revocation_endpoint=str(revocation) if revocation else None,
            client_id=client.client_id,
            client_secret=client.client_secret if client.is_registered else None,
            client_auth=client.method,
            registered_scope=client.registered_scope,
            redirect_uri=self._request.redirect_uri,
            resource=self._server.resource,
            scope=self._server.scope,
        )


async def probe(http: httpx2.AsyncClient, url: str, headers: Mapping[str, str]) -> Challenge:
    """What a server answers to a request without a token; any request will do.

    Raises:
        LoginNotNeeded: It answers without a login.
        OAuthError: It cannot be reached.
    """
    headers = {**_PROBE_HEADERS, **headers}
    request = httpx2.Request("POST", url, json=_PROBE, headers=headers)
    answer = await send(http, request, with_body=False)
    if answer.status == 405:  # an older server, which has a stream of events instead
        answer = await send(http, httpx2.Request("GET", url, headers=headers), with_body=False)
    if answer.status == 401 or (answer.status == 403 and answer.challenge):
        return parse_challenge(answer.challenge)
    raise LoginNotNeeded(f"it asks for no login: it answered with HTTP status {answer.status}")
