"""Authentication of the HTTP endpoint: bearer tokens, verified here, passed along by the SDK.

    keys   static keys, of which only the hashes are known
    jwt    tokens of an OAuth 2.1 authorization server: the signature is checked with its published
           keys, as are issuer, audience and expiry; the endpoint says where to get one (RFC 9728)
    none   no authentication; for other machines only if the operator confirms it twice

The principal of a request is the token's subject. Rules may also name its scopes and groups.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import anyio
import httpx2
import jwt
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.provider import AccessToken, TokenVerifier

from pegboard.core.calls import LOCAL_CALLER
from pegboard.core.events import SignInFailed
from pegboard.core.json import Json, JsonObject
from pegboard.errors import ConfigError
from pegboard.server.protected_resource import ProtectedResource, build_challenge

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Receive, Scope, Send

logger = logging.getLogger(__name__)

GROUPS = "groups"
UNAUTHENTICATED = "PEGBOARD_UNAUTHENTICATED"
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512",
              "ES256", "ES384", "ES512", "EdDSA")  # fmt: skip
_LEEWAY = 30.0
_KEYS_FRESH = 600.0
_KEYS_PAUSE = 10.0
"""Seconds between two fetches for unknown key ids, so that forged tokens cause no load."""
_FETCH_TIME = 10.0
_MAX_TOKEN_LENGTH = 16_384
RECHECK = 1.0
"""Seconds between two checks of the tokens of open streams."""
_LISTEN = "subscriptions/listen"
INVALID_TOKEN = "invalid_token"
INSUFFICIENT_SCOPE = "insufficient_scope"
_DESCRIPTIONS = {
    None: "Authentication required",
    INVALID_TOKEN: "The access token is not valid here, or has expired",
}
_UNREADABLE = (httpx2.HTTPError, ValueError, KeyError, TypeError)
"""Exceptions when reading a JSON document from another host."""


@dataclass(frozen=True, slots=True)
class StaticKey:
    """A key, known by its hash; its principal, and what else rules may refer to."""

    principal: str
    sha256: str
    scopes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class StaticKeys:
    """Verifies static keys."""

    def __init__(self, keys: Iterable[StaticKey]) -> None:
        self._keys: dict[str, StaticKey] = {}
        for key in keys:
            hashed = key.sha256.lower()
            if len(hashed) != 64 or not set(hashed) <= set("0123456789abcdef"):
                raise ConfigError(
                    f"The key of {key.principal!r} is not a SHA-256 hash in hexadecimal; "
                    "make one with: printf %s KEY | sha256sum"
                )
            # `local` is the principal without authentication: no key may have this name.
            if key.principal == LOCAL_CALLER.principal:
                raise ConfigError(
                    f"{LOCAL_CALLER.principal!r} is reserved: choose another principal."
                )
            self._keys[hashed] = key

    async def verify_token(self, token: str) -> AccessToken | None:
        """The principal of a key; `None` for any other text."""
        if len(token) > _MAX_TOKEN_LENGTH:  # no key is that long, and hashing it takes time
            return None
        # Looked up by the hash, so the time that it takes reveals nothing about the key.
        key = self._keys.get(hashlib.sha256(token.encode()).hexdigest())
        if key is None:
            return None
        return AccessToken(
            token="",  # the key itself is not needed any more, so it cannot leak
            client_id=key.principal,
            subject=key.principal,
            scopes=list(key.scopes),
            claims={GROUPS: list(key.groups)},
        )


class Fetch(Protocol):
    """Fetches a JSON document."""

    async def __call__(self, url: str, /) -> Json: ...


async def fetch_json(url: str) -> Json:
    """The JSON document at an address."""
    async with httpx2.AsyncClient(timeout=_FETCH_TIME, follow_redirects=False) as client:
        answer = await client.get(url)
        answer.raise_for_status()
        return answer.json()


class KeySet:
    """The signing keys of an authorization server, fetched when needed and cached for a while."""

    def __init__(
        self,
        issuer: str,
        url: str | None = None,
        *,
        fetch: Fetch = fetch_json,
        clock: Callable[[], float] = time.monotonic,
        timeout: float = _FETCH_TIME,
    ) -> None:
        self._timeout = timeout
        self._issuer = issuer
        self._url = url
        self._fetch = fetch
        self._clock = clock
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._fetched_at: float | None = None
        self._lock = anyio.Lock()

    async def key(self, key_id: str | None) -> jwt.PyJWK | None:
        """The key of that id; unknown ids cause a fetch, but not too often."""
        if self._is_due(key_id):
            async with self._lock:
                if self._is_due(key_id):  # still: another request may have fetched them meanwhile
                    await self._refresh()
        return self._keys.get(key_id)

    def _is_due(self, key_id: str | None) -> bool:
        if self._fetched_at is None:
            return True
        age = self._clock() - self._fetched_at
        return age >= (_KEYS_FRESH if key_id in self._keys else _KEYS_PAUSE)

    async def _refresh(self) -> None:
        self._fetched_at = self._clock()  # also when it fails, so that failures are not repeated
        try:
            # For the whole request: the client's own timeout applies to each read.
            with anyio.fail_after(self._timeout):
                document = await self._fetch(self._url or await self._discover_url())
            found = jwt.PyJWKSet.from_dict(document)
        except TimeoutError:
            reason = f"no answer within {self._timeout:g} s"
            logger.warning("The keys of %s cannot be read: %s", self._issuer, reason)
            return
        except (*_UNREADABLE, jwt.PyJWTError) as exc:
            logger.warning("The keys of %s cannot be read: %s", self._issuer, exc)
            return
        self._keys = {key.key_id: key for key in found.keys}

    async def _discover_url(self) -> str:
        """The address of the keys, from the metadata of the issuer.

        Raises:
            ValueError: None of the addresses has metadata of this issuer that names its keys.
        """
        problems: list[str] = []
        for address in list_metadata_urls(self._issuer):
            try:
                document = await self._fetch(address)
                if document["issuer"] != self._issuer:
                    raise ValueError(f"its metadata names the issuer {document['issuer']!r}")
                keys = str(document["jwks_uri"])
                if urlsplit(self._issuer).scheme == "https" != urlsplit(keys).scheme:
                    raise ValueError(f"its keys are not at an https address: {keys}")
                return keys
            except _UNREADABLE as exc:
                problems.append(f"{address}: {exc!r}")
        raise ValueError("; ".join(problems))


def list_metadata_urls(issuer: str) -> list[str]:
    """Where an authorization server may publish its metadata: RFC 8414, and OpenID Connect."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    inserted = [
        f"{origin}/.well-known/{name}{path}"
        for name in ("oauth-authorization-server", "openid-configuration")
    ]
    return [*inserted, f"{origin}{path}/.well-known/openid-configuration"] if path else inserted


@dataclass(frozen=True, kw_only=True)
class JwtTokens:
    """Verifies access tokens that are JSON Web Tokens (RFC 9068)."""

    issuer: str
    audience: str | tuple[str, ...]
    """Whom a token must be for; with several, any of them."""
    keys: KeySet
    groups_claim: str = GROUPS
    keep_token: Callable[[], bool] = lambda: False
    """Whether the token itself stays with the request, for servers that exchange it."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """The identity in a token; `None` if anything about it is wrong."""
        if len(token) > _MAX_TOKEN_LENGTH:
            return None
        try:
            header = jwt.get_unverified_header(token)
            key = await self.keys.key(header.get("kid"))
            # The header is not trusted: `none` and HMAC with the public key as secret are attacks.
            if key is None or header.get("alg") not in ALGORITHMS:
                return None
            claims: JsonObject = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=self.audience,
                issuer=self.issuer,
                leeway=_LEEWAY,
                options={"require": ["exp", "sub", "aud", "iss"]},
            )
        except jwt.PyJWTError as exc:
            logger.info("A token was refused: %s", type(exc).__name__)
            return None
        subject = claims["sub"]
        if not isinstance(subject, str) or not subject or subject == LOCAL_CALLER.principal:
            return None
        return AccessToken(
            token=token if self.keep_token() else "",
            client_id=str(claims.get("client_id") or claims.get("azp") or subject),
            subject=subject,
            scopes=_split_claim(claims.get("scope", claims.get("scp"))),
            expires_at=int(claims["exp"] + _LEEWAY),
            claims={"iss": claims["iss"], GROUPS: _split_claim(claims.get(self.groups_claim))},
        )


@dataclass(frozen=True, kw_only=True)
class Auth:
    """How an endpoint authenticates its callers."""

    verifier: TokenVerifier
    required_scopes: tuple[str, ...] = ()
    issuer: str | None = None
    resource: str | None = None
    """The public address of the endpoint, where tokens come from an authorization server."""
    scopes: tuple[str, ...] = field(default=())
    """The scopes that clients should request at first, besides the required ones."""
    further_scopes: tuple[str, ...] = field(default=())
    """Scopes that clients may request when a call needs them."""
    missing_scope: Callable[[Scope, JsonObject], str | None] | None = None
    """The scope that the token of a request lacks for a `tools/call` with these parameters."""
    refused: Callable[[SignInFailed], None] = lambda event: None
    """Called when a request has a token that is not accepted."""

    def protect(self, app: Starlette, path: str = "/mcp") -> None:
        """Let only authenticated requests through to an application of the SDK."""
        from starlette.middleware import Middleware
        from starlette.middleware.authentication import AuthenticationMiddleware
        from starlette.routing import Route

        routes, streams = app.router.routes, LongLivedStreams(self)
        for position, route in enumerate(routes):
            if isinstance(route, Route) and route.path == path:
                endpoint = streams.endpoint(route.endpoint)
                if self.missing_scope is not None:
                    from pegboard.server.protected_resource import ScopeGate

                    endpoint = ScopeGate(endpoint, self)
                endpoint = RequireToken(endpoint, self)
                routes[position] = Route(path, endpoint=endpoint)
        app.router.lifespan_context = streams.watch_during(app.router.lifespan_context)
        if self.protected is not None:
            routes.extend(self.protected.routes())
        backend = BearerAuthBackend(self.verifier)
        app.user_middleware.append(Middleware(AuthenticationMiddleware, backend=backend))
        app.user_middleware.append(Middleware(AuthContextMiddleware))

    async def identify(self, token: str | None) -> AccessToken | None:
        """The identity in a token, if it is valid now and has the required scopes."""
        known = await self.verifier.verify_token(token) if token else None
        if known is None or not set(self.required_scopes) <= set(known.scopes):
            return None
        if known.expires_at is not None and known.expires_at <= time.time():
            return None
        return known

    @cached_property
    def protected(self) -> ProtectedResource | None:
        """The metadata that tells clients how to get a token; `None` if there is no issuer.

        Raises:
            ConfigError: An address or a scope is not valid.
        """
        if not self.issuer or not self.resource:
            return None
        scopes = _unique(self.required_scopes, self.scopes, self.further_scopes)
        return ProtectedResource(url=self.resource, issuer=self.issuer, scopes=scopes)

    async def refuse(
        self, scope: Scope, send: Send, *, error: str | None, missing: str | None = None
    ) -> None:
        """Answer a request whose token is missing, not valid, or lacks a scope.

        Args:
            scope: The request.
            send: Where the answer goes.
            error: The code of RFC 6750; `None` for a request without a token, which is not a
                failure.
            missing: The scope that the token lacks.
        """
        if error is not None:
            client = scope.get("client")
            event = SignInFailed(
                at=time.time(),
                path=scope["path"],
                error="unknown_token" if error == INVALID_TOKEN else error,
                address=client[0] if client else None,
            )
            self.refused(event)
        token = getattr(scope.get("user"), "access_token", None)
        wanted = _unique(self.required_scopes, self.scopes)
        if missing is not None:
            # Includes those that it has: clients replace a token with one that has exactly these
            # scopes.
            known = _unique(self.required_scopes, self.scopes, self.further_scopes)
            granted = [one for one in token.scopes if one in known] if token else []
            wanted = _unique(self.required_scopes, granted, [missing])
        mode = scope.get("path_params", {}).get("mode")
        metadata = self.protected.metadata_url(mode) if self.protected else None
        description = _DESCRIPTIONS[error] if missing is None else f"Scope {missing} is required"
        challenge = build_challenge(metadata, wanted, error, description if error else None)
        body = json.dumps({"error": error or INVALID_TOKEN, "error_description": description})
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"www-authenticate", challenge.encode("latin-1", "replace")),
        ]
        status = 401 if missing is None else 403
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body.encode()})


class RequireToken:
    """An ASGI endpoint that only requests with a valid token reach."""

    def __init__(self, app: ASGIApp, auth: Auth) -> None:
        self._app = app
        self._auth = auth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = getattr(scope.get("user"), "access_token", None)
        if token is None:
            # A request without a token is not an attempt to sign in.
            has_token = any(name.lower() == b"authorization" for name, _ in scope["headers"])
            await self._auth.refuse(scope, send, error=INVALID_TOKEN if has_token else None)
            return
        for required in self._auth.required_scopes:
            if required not in token.scopes:
                await self._auth.refuse(scope, send, error=INSUFFICIENT_SCOPE, missing=required)
                return
        await self._app(scope, receive, send)


class OwnerToken:
    """Verifies one token that was generated for this run; it belongs to the local user."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        """The local user, for this one token."""
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self._token):
            return None
        who = LOCAL_CALLER.principal
        return AccessToken(token="", client_id=who, subject=who, scopes=[])


class LongLivedStreams:
    """Ends notification streams when the token that opened them is no longer valid.

    A call in progress is answered: its token was valid when it was made.
    """

    def __init__(self, auth: Auth) -> None:
        self._auth = auth
        self._open: dict[anyio.CancelScope, str] = {}

    def endpoint(self, app: ASGIApp) -> ASGIApp:
        """The endpoint, with its long-lived streams tracked."""
        from starlette.datastructures import Headers

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            headers = Headers(scope=scope)
            if scope["method"] != "GET" and headers.get("mcp-method") != _LISTEN:
                await app(scope, receive, send)
                return
            with anyio.CancelScope() as stream:
                # By the token, since one check then covers all streams that it opened.
                self._open[stream] = headers.get("authorization", "").partition(" ")[2]
                try:
                    await app(scope, receive, send)
                finally:
                    del self._open[stream]
            if stream.cancel_called:
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        return watched

    def watch_during(self, lifespan: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The lifespan, during which the tokens of open streams are checked regularly."""

        @asynccontextmanager
        async def during(app: Any) -> AsyncGenerator[Any]:
            async with lifespan(app) as state, anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch)
                yield state
                tasks.cancel_scope.cancel()

        return during

    async def _watch(self) -> None:
        while True:
            await anyio.sleep(RECHECK)
            for token in set(self._open.values()):
                if await self._auth.identify(token) is None:
                    for stream in [s for s, used in self._open.items() if used == token]:
                        stream.cancel()


def refuse_exposure(
    host: str, auth: Auth | None, environ: Mapping[str, str], *, allowed: bool
) -> None:
    """Refuse to serve other machines without authentication, unless that is confirmed twice.

    Raises:
        ConfigError: The server would be open to everybody who can reach it.
    """
    if auth is not None or is_loopback(host):
        return
    if allowed and environ.get(UNAUTHENTICATED) == "1":
        logger.warning("Everybody who can reach %s may use every tool: no authentication.", host)
        return
    raise ConfigError(
        f"{host} can be reached from other machines, and there is no authentication. "
        "Set `auth`, or listen on 127.0.0.1. To leave it open anyway, confirm it twice: "
        f"`unauthenticated = true` under [http], and {UNAUTHENTICATED}=1 in the environment."
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _unique(*scopes: Iterable[str]) -> tuple[str, ...]:
    """All of these scopes once, in order."""
    return tuple(dict.fromkeys(chain.from_iterable(scopes)))


def _split_claim(value: Json) -> list[str]:
    """A claim as a list: it may be words in a string, a list, or missing."""
    if isinstance(value, str):
        return value.split()
    if isinstance(value, list):
        return [word for word in value if isinstance(word, str)]
    return []
