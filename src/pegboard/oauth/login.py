"""One login of one person: from the address to open, over the redirect, to a stored grant.

    Login.begin      finds the authorization server, the client, and the address to open
    login.receive    takes the redirect, checks it, redeems the code and stores the grant

A redirect is external input: anybody can open such an address on this machine. Nothing of it is
believed before its `state` is the one of this login, and a wrong one does not end the login.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.utils import validate_authorization_response_iss

from pegboard.oauth.challenge import Challenge, parse_challenge
from pegboard.oauth.clients import OAuthClient, find_client
from pegboard.oauth.discovery import OFFLINE_ACCESS, AuthorizationServer, discover
from pegboard.oauth.grant_storage import GrantUnreadable
from pegboard.oauth.grants import Grant
from pegboard.oauth.http_requests import OAuthError, open_http, quote_text, send
from pegboard.oauth.token_endpoint import request_tokens
from pegboard.oauth.tokens import ServerTokens

_PROBE = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
_PROBE_HEADERS = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
}


class WrongRedirect(OAuthError):
    """A redirect that does not belong to this login, which goes on."""


class LoginNotNeeded(OAuthError):
    """The server answers without a login."""


@dataclass(frozen=True, slots=True)
class LoginRequest:
    """Who logs in to which server, and how they come back."""

    tokens: ServerTokens
    principal: str
    redirect_uri: str
    challenge: Challenge | None = None
    """What the server answered; it is asked where this is not known."""
    metadata_url: str | None = None
    """The address of the client ID metadata document, if one is hosted."""
    scope: str | None = None
    """Scopes to request besides."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Headers that the server wants besides the token."""


class Login:
    """A login that somebody has to complete in a browser; made by `begin`."""

    def __init__(
        self,
        request: LoginRequest,
        server: AuthorizationServer,
        client: OAuthClient,
    ) -> None:
        self._request = request
        self._server = server
        self._client = client
        self._state = secrets.token_urlsafe(32)
        self._verifier = secrets.token_urlsafe(64)
        self._is_redeemed = False
        self._lock = anyio.Lock()
        self.done = anyio.Event()
        """Set when it has succeeded or failed."""
        self.failure: str | None = None
        self.address = self._build_address()
        """What the person opens in a browser; there is nothing secret in it."""

    @classmethod
    async def begin(cls, request: LoginRequest) -> Self:
        """Prepare a login.

        Raises:
            LoginNotNeeded: The server answers without one.
            NoLoginOffered: The server says nothing about logins.
            OAuthError: It cannot be prepared.
        """
        tokens = request.tokens
        try:
            earlier = await tokens.storage.load(tokens.key(request.principal))
        except GrantUnreadable:
            earlier = None  # it is about to be replaced
        async with open_http() as http:
            challenge = request.challenge or await probe(http, tokens.url, request.headers)
            server = await discover(
                http,
                tokens.url,
                challenge,
                tokens.options,
                granted_scope=earlier.scope if earlier is not None else None,
                extra_scope=request.scope,
            )
            _check_pkce(server, tokens.options.pkce)
            client = await find_client(
                http,
                server,
                tokens.options,
                redirect_uri=request.redirect_uri,
                metadata_url=request.metadata_url,
                earlier=earlier,
            )
        return cls(request, server, client)

    @property
    def host(self) -> str:
        """Where the person logs in."""
        return urlsplit(self.address).hostname or ""

    def _build_address(self) -> str:
        digest = hashlib.sha256(self._verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._client.client_id,
            "redirect_uri": self._request.redirect_uri,
            "state": self._state,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        if self._server.resource:
            query["resource"] = self._server.resource
        if scope := self._server.scope:
            query["scope"] = scope
            if OFFLINE_ACCESS in scope.split():
                query["prompt"] = "consent"  # OpenID Connect Core, section 11
        endpoint = str(self._server.metadata.authorization_endpoint)
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def receive(self, redirect: str) -> None:
        """Take the address that the browser was sent to, and complete the login.

        Raises:
            WrongRedirect: It belongs to another login, or to none; this one goes on.
            OAuthError: The login has failed.
        """
        answer = {k: v[0] for k, v in parse_qs(urlsplit(redirect.strip()).query).items()}
        if not secrets.compare_digest(answer.get("state", "").encode(), self._state.encode()):
            what = "belongs to another login" if "state" in answer else "is not a redirect"
            raise WrongRedirect(
                f"This address {what}. Paste the whole address that the browser was sent to: it "
                f"starts with {self._request.redirect_uri}?"
            )
        async with self._lock:
            if self.done.is_set() or self._is_redeemed:
                raise WrongRedirect("This address was used already.")
            self._is_redeemed = True
            try:
                await self._redeem(answer)
            except OAuthError as exc:
                self.failure = str(exc)
                raise
            finally:
                self.done.set()

    def give_up(self, reason: str) -> None:
        """End the login without success, unless it has ended."""
        if not self.done.is_set():
            self.failure = reason
            self.done.set()

    async def _redeem(self, answer: dict[str, str]) -> None:
        metadata, tokens = self._server.metadata, self._request.tokens
        try:
            # Before a code is used: it tells whether the answer is from this issuer. A refusal
            # without it, as some servers send, ends the login all the same.
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
        if not answer.get("code"):
            raise OAuthError("the redirect has no code in it")
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
            async with tokens.storage.lock(key):
                await tokens.storage.save(key, grant)
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
            redirect_uri=self._request.redirect_uri,
            resource=self._server.resource,
            scope=self._server.scope,
        )


def _check_pkce(server: AuthorizationServer, policy: str) -> None:
    if policy == "assume" or not server.is_announced:
        return
    if "S256" not in (server.metadata.code_challenge_methods_supported or []):
        raise OAuthError(
            f"{server.issuer} does not say that it supports PKCE, which protects the login. If it "
            f'does (Entra, Cognito), set `pkce = "assume"` in the server\'s `oauth` table'
        )


async def probe(http: httpx2.AsyncClient, url: str, headers: Mapping[str, str]) -> Challenge:
    """What a server answers to a request without a token: any will do.

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
    raise LoginNotNeeded(f"it answers without a login (HTTP status {answer.status})")
