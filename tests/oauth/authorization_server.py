"""The SDK's authorization server, on a port of its own, with the faults that real ones have.

    with authorization_server() as issuer, protected_server(issuer) as url:
        issuer.faults.slow = 5.0

The user consents at once. `login_hint` in the address says who it is, `ann` by default; the user
`nobody` declines. `issuer.secrets` is everything secret that the server has handed out, and
`issuer.log` what it was asked for.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

import anyio
import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from mcp.server import Server
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    IdentityAssertionParams,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool
from pydantic import AnyHttpUrl, ConfigDict, TypeAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.conformance.clients import served
from tests.e2e.test_serving import free_port

SCOPES = ["tools", "read", "write"]
DECLINES = "nobody"
_METADATA = "/.well-known/oauth-authorization-server"
parse_url = TypeAdapter(AnyHttpUrl, config=ConfigDict(url_preserve_empty_path=True)).validate_python
_user: ContextVar[str] = ContextVar("user", default="ann")


@dataclass
class Faults:
    """What is wrong with an authorization server; may change while it runs."""

    down: bool = False
    """Whether every request is answered with 503."""
    html: bool = False
    """Whether every request is answered with a web page and 200, as by a login portal."""
    slow: float = 0.0
    """Seconds that every answer takes."""
    slow_tokens: float = 0.0
    """Seconds that the token endpoint takes."""
    hides_pkce: bool = False
    """Whether its metadata does not mention PKCE, which it supports."""
    refuses_resource: bool = False
    """Whether it refuses requests with `resource` (RFC 8707)."""
    other_issuer: str | None = None
    """What its metadata says in place of its own issuer."""
    clock_skew: float = 0.0
    """Seconds by which its clock is ahead."""


class AuthorizationServer:
    """Clients, codes and tokens in memory: the provider behind the SDK's routes.

    Args:
        issuer: Its own address.
        lifetime: Seconds until an access token ends.
        rotates: Whether a refresh token is good once; the second use revokes all of its family.
        registers: Whether clients can register themselves.
        signs: Whether access tokens are JSON Web Tokens, whose keys it publishes at `/keys`.
        identity_provider: The issuer whose identity assertions (ID-JAG) it accepts.
    """

    def __init__(
        self,
        issuer: str,
        *,
        lifetime: float = 3600,
        rotates: bool = True,
        registers: bool = True,
        signs: bool = False,
        identity_provider: str | None = None,
    ) -> None:
        self.issuer = issuer
        self.lifetime = lifetime
        self.rotates = rotates
        self.faults = Faults()
        self.secrets: set[str] = set()
        self.log: list[str] = []
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self._registers = registers
        self._identity_provider = identity_provider
        self._key = ec.generate_private_key(ec.SECP256R1()) if signs else None
        self._codes: dict[str, AuthorizationCode] = {}
        self._access: dict[str, AccessToken] = {}
        self._refresh: dict[str, RefreshToken] = {}
        self._spent: set[str] = set()

    # Switches.

    def expire(self) -> None:
        """End every access token now."""
        self._access.clear()

    def forget(self) -> None:
        """End every token, of both kinds."""
        self._access.clear()
        self._refresh.clear()

    def count(self, what: str) -> int:
        """How often something was asked for: `register`, `authorize`, `refresh_token`, ..."""
        return self.log.count(what)

    # The provider of the SDK.

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.log.append("register")
        self.clients[str(client_info.client_id)] = client_info
        if client_info.client_secret:
            self.secrets.add(client_info.client_secret)

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        self.log.append("authorize")
        if _user.get() == DECLINES:
            raise AuthorizeError(error="access_denied", error_description="The user declined.")
        code = self._new_secret("code")
        self._codes[code] = AuthorizationCode(
            code=code,
            client_id=str(client.client_id),
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            expires_at=time.time() + 300,
            scopes=params.scopes or ["tools"],
            code_challenge=params.code_challenge,
            resource=params.resource,
            subject=_user.get(),
        )
        answer = construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)
        return f"{answer}&{urlencode({'iss': self.issuer})}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        if authorization_code in self._spent:
            self.log.append("reuse")
            self.forget()
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        self.log.append("authorization_code")
        del self._codes[authorization_code.code]
        self._spent.add(authorization_code.code)
        code = authorization_code
        return self.issue(str(client.client_id), code.scopes, code.resource, code.subject)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        if refresh_token in self._spent:
            self.log.append("reuse")
            self.forget()
        return self._refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.log.append("refresh_token")
        if self.rotates:
            # Another request may have been faster since it was loaded.
            if self._refresh.pop(refresh_token.token, None) is None:
                raise TokenError(error="invalid_grant", error_description="It was used already.")
            self._spent.add(refresh_token.token)
        token = refresh_token
        return self.issue(str(client.client_id), scopes, token.resource, token.subject)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return await self.verify_token(token)

    async def verify_token(self, token: str) -> AccessToken | None:
        found = self._access.get(token)
        ended = found is not None and (found.expires_at or 0) <= time.time()
        return None if ended else found

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.log.append("revoke")
        self.forget()

    async def exchange_identity_assertion(
        self, client: OAuthClientInformationFull, params: IdentityAssertionParams
    ) -> OAuthToken:
        self.log.append("identity_assertion")
        self.secrets.add(params.assertion)
        keys = jwt.PyJWKClient(f"{self._identity_provider}/jwks")
        assert jwt.get_unverified_header(params.assertion)["typ"] == "oauth-id-jag+jwt"
        try:
            key = await anyio.to_thread.run_sync(keys.get_signing_key_from_jwt, params.assertion)
            claims: dict[str, Any] = jwt.decode(
                params.assertion,
                key,
                algorithms=["RS256"],
                audience=self.issuer,
                issuer=self._identity_provider,
                options={"require": ["exp", "sub", "resource"]},
            )
        except jwt.PyJWTError as exc:
            raise TokenError(error="invalid_grant", error_description=str(exc)) from exc
        return self.issue(str(client.client_id), ["tools"], claims["resource"], claims["sub"])

    def issue(
        self, client: str, scopes: list[str], resource: str | None, subject: str | None
    ) -> OAuthToken:
        """New tokens for a user, as at the end of a login."""
        now = time.time()
        ends = now + self.lifetime
        access = self._new_secret("access")
        if self._key is not None:
            ahead = self.faults.clock_skew
            claims = {
                "iss": self.issuer, "aud": resource, "sub": subject, "client_id": client,
                "scope": " ".join(scopes), "iat": int(now + ahead), "nbf": int(now + ahead),
                "exp": int(ends + ahead), "jti": access,
            }  # fmt: skip
            access = jwt.encode(claims, self._key, algorithm="ES256", headers={"kid": "only"})
            self.secrets.add(access)
        refresh = self._new_secret("refresh")
        known: dict[str, Any] = {
            "client_id": client, "scopes": scopes, "resource": resource, "subject": subject
        }  # fmt: skip
        self._access[access] = AccessToken(token=access, expires_at=int(ends), **known)
        self._refresh[refresh] = RefreshToken(token=refresh, **known)
        return OAuthToken(
            access_token=access,
            refresh_token=refresh,
            expires_in=max(0, int(self.lifetime)),
            scope=" ".join(scopes),
        )

    def _new_secret(self, kind: str) -> str:
        made = f"{kind}-{secrets.token_urlsafe(24)}"
        self.secrets.add(made)
        return made

    # What it serves.

    def app(self) -> ASGIApp:
        provider: Any = self
        routes = create_auth_routes(
            provider,
            parse_url(self.issuer),
            client_registration_options=ClientRegistrationOptions(
                enabled=self._registers, valid_scopes=SCOPES, default_scopes=["tools"]
            ),
            revocation_options=RevocationOptions(enabled=True),
            identity_assertion_enabled=self._identity_provider is not None,
        )
        return _Faulty(Starlette(routes=[*routes, Route("/keys", self._keys)]), self)

    async def _keys(self, request: Request) -> Response:
        assert self._key is not None
        published: Any = ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return JSONResponse({"keys": [{**published, "kid": "only"}]})


class _Faulty:
    """Middleware that plays the faults, and knows the user by `login_hint`."""

    def __init__(self, app: ASGIApp, server: AuthorizationServer) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        faults, path = self._server.faults, scope["path"]
        await anyio.sleep(max(faults.slow, faults.slow_tokens if path == "/token" else 0.0))
        if (problem := self._find_problem(faults)) is not None:
            await problem(scope, receive, send)
            return
        query = parse_qs(scope["query_string"].decode())
        _user.set(query.get("login_hint", ["ann"])[-1])
        if path in ("/token", "/register", "/revoke"):
            body = await Request(scope, receive).body()
            self._record_secrets(body)
            query |= parse_qs(body.decode())
            receive = _replay(body)
        if faults.refuses_resource and "resource" in query:
            await self._refuse_resource(query)(scope, receive, send)
        elif path.startswith(_METADATA):
            await self._publish(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _find_problem(self, faults: Faults) -> Response | None:
        if faults.down:
            return Response("down for maintenance", 503)
        return HTMLResponse("<html><h1>Please log in</h1></html>") if faults.html else None

    def _record_secrets(self, body: bytes) -> None:
        given = parse_qs(body.decode())
        for name in ("code_verifier", "client_secret", "client_assertion"):
            self._server.secrets.update(given.get(name, ()))

    def _refuse_resource(self, query: dict[str, list[str]]) -> Response:
        error = {"error": "invalid_target", "error_description": "AADSTS9010010"}
        if "redirect_uri" in query and "response_type" in query:
            state = query.get("state", [""])[0]
            address = f"{query['redirect_uri'][0]}?{urlencode({**error, 'state': state})}"
            return Response(status_code=302, headers={"location": address})
        return JSONResponse(error, 400)

    async def _publish(self, scope: Scope, receive: Receive, send: Send) -> None:
        sent: list[Message] = []

        async def collect(message: Message) -> None:
            sent.append(message)

        await self._app(scope, receive, collect)
        if sent[0]["status"] != 200:
            for message in sent:
                await send(message)
            return
        about = json.loads(b"".join(message.get("body", b"") for message in sent))
        about |= {"authorization_response_iss_parameter_supported": True}
        if self._server.faults.hides_pkce:
            del about["code_challenge_methods_supported"]
        if self._server.faults.other_issuer is not None:
            about["issuer"] = self._server.faults.other_issuer
        await JSONResponse(about)(scope, receive, send)


def _replay(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


@contextmanager
def authorization_server(**options: Any) -> Generator[AuthorizationServer]:
    """A server that runs for as long as the block; the options are those of the class."""
    port = free_port()
    server = AuthorizationServer(f"http://127.0.0.1:{port}", **options)
    with served(server.app(), port=port):
        yield server


# An MCP server that wants its tokens.


@dataclass
class ProtectedServer:
    """An MCP server for which a token of the issuer is needed; `url` is its address."""

    issuer: AuthorizationServer
    url: str
    required_scopes: list[str] = field(default_factory=lambda: ["tools"])
    call_scope: str | None = None
    """An additional scope that calls need; the server names it only when it is missing."""
    slow: float = 0.0
    """Seconds that each call takes."""
    is_personal: bool = False
    """Whether each user has a tool of their own, `<user>_notes`."""
    quotes_token: bool = False
    """Whether calls fail with an error that repeats the token."""
    seen: list[str] = field(default_factory=list[str])
    """Who made each call, in order."""

    def app(self, *, legacy: bool, json_response: bool) -> ASGIApp:
        server: Server[Any] = Server("protected", on_list_tools=self._list, on_call_tool=self._call)
        app = server.streamable_http_app(
            json_response=json_response,
            token_verifier=self.issuer,
            auth=AuthSettings(
                issuer_url=parse_url(self.issuer.issuer),
                resource_server_url=parse_url(self.url),
                required_scopes=self.required_scopes,
                validate_token_resource=True,
            ),
        )
        app = _NeedsScope(app, self)
        return _OnlyLegacy(app) if legacy else app

    async def _list(self, ctx: Any, params: Any) -> ListToolsResult:
        names = ["whoami"] + ([f"{_current_user()}_notes"] if self.is_personal else [])
        tools = [
            Tool(
                name=name,
                description="Tell who calls.",
                input_schema={"type": "object"},
                annotations={"readOnlyHint": True},  # pyright: ignore[reportArgumentType] validated
            )
            for name in names
        ]
        return ListToolsResult(tools=tools)

    async def _call(self, ctx: Any, params: Any) -> CallToolResult:
        await anyio.sleep(self.slow)
        self.seen.append(_current_user())
        if self.quotes_token:
            token = get_access_token()
            quoted = token.token if token else ""
            raise MCPError(-32000, f"refused: Bearer {quoted}", {"authorization": quoted})
        return CallToolResult(content=[TextContent(type="text", text=_current_user())])


def _current_user() -> str:
    token = get_access_token()
    return token.subject or "" if token else ""


class _NeedsScope:
    """Answers calls whose token lacks the scope for them with 403 and a challenge."""

    def __init__(self, app: ASGIApp, server: ProtectedServer) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, needed = dict(scope.get("headers") or ()), self._server.call_scope
        if needed is None or headers.get(b"mcp-method") != b"tools/call":
            await self._app(scope, receive, send)
            return
        given = headers.get(b"authorization", b"").decode().removeprefix("Bearer ")
        token = await self._server.issuer.verify_token(given)
        if token is None or needed in token.scopes:
            await self._app(scope, receive, send)
            return
        challenge = f'Bearer error="insufficient_scope", scope="{needed}"'
        await Response("", 403, {"www-authenticate": challenge})(scope, receive, send)


class _OnlyLegacy:
    """Answers requests of MCP 2026-07-28 as a server that knows older versions only."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers") or ())
        is_modern = headers.get(b"mcp-protocol-version") == b"2026-07-28"
        if scope["type"] != "http" or not is_modern or b"authorization" not in headers:
            await self._app(scope, receive, send)
            return
        number = json.loads(await Request(scope, receive).body()).get("id")
        error = {"code": -32601, "message": "Method not found"}
        answer = JSONResponse({"jsonrpc": "2.0", "id": number, "error": error}, 400)
        await answer(scope, receive, send)


@contextmanager
def protected_server(
    issuer: AuthorizationServer,
    *,
    legacy: bool = False,
    json_response: bool = False,
    **options: Any,
) -> Generator[ProtectedServer]:
    """An MCP server that runs for as long as the block; `legacy` has sessions, bound to a user."""
    port = free_port()
    server = ProtectedServer(issuer, f"http://127.0.0.1:{port}/mcp", **options)
    with served(server.app(legacy=legacy, json_response=json_response), port=port):
        yield server
