"""Tokens that callers have for a gateway, exchanged for tokens of the servers behind it.

The gateway is a process, and `oidc-provider` issues the tokens of both. The server accepts only
tokens for itself, so one that was passed on instead would be refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import AccessToken
from mcp.shared.auth import OAuthClientInformationFull
from tests.conformance.clients import served
from tests.e2e.test_serving import free_port, running_gateway
from tests.gateway.support import said
from tests.oauth.authorization_server import (
    ProtectedServer,
    authorization_server,
    protected_server,
)
from tests.oauth.browser import SdkLogin
from tests.oauth.oidc_provider import BY_HAND, OidcProvider, oidc_provider

from pegboard.oauth.machine_grants import JWT_BEARER
from pegboard.server.auth import JwtTokens, KeySet

pytestmark = pytest.mark.anyio


class Verifier:
    """Accepts signed tokens of an issuer for one resource, and remembers what it was given."""

    def __init__(self, issuer: str, resource: str) -> None:
        self.issuer = issuer
        self.given: set[str] = set()
        self._tokens = JwtTokens(issuer=issuer, audience=resource, keys=KeySet(issuer))

    async def verify_token(self, token: str) -> AccessToken | None:
        self.given.add(token)
        found = await self._tokens.verify_token(token)
        # The SDK compares the resource too, which such a token has as its audience.
        return found.model_copy(update={"resource": self._tokens.audience}) if found else None


@contextmanager
def protected_by(
    issuer: str, *, legacy: bool = False, port: int | None = None
) -> Generator[tuple[ProtectedServer, Verifier]]:
    port = port or free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    verifier: Any = Verifier(issuer, url)
    server = ProtectedServer(verifier, url, required_scopes=["tools"], is_personal=True)
    with served(server.app(legacy=legacy, json_response=False), port=port):
        yield server, verifier


@asynccontextmanager
async def gateway_before(
    server: ProtectedServer, provider: OidcProvider, port: int, folder: Path, **oauth: str
) -> AsyncGenerator[str]:
    """A gateway whose callers log in at the provider; `oauth` are settings of the server."""
    config = folder / "pegboard.toml"
    settings = "\n".join(f"{name} = {json.dumps(value)}" for name, value in oauth.items())
    config.write_text(
        f"""
        mode = "eager"
        [auth]
        kind = "jwt"
        issuer = "{provider.issuer}"
        audience = "http://127.0.0.1:{port}/mcp"
        [servers.up]
        url = "{server.url}"
        [servers.up.oauth]
        {settings}
        """
    )
    async with running_gateway(folder, config, port=port, env=os.environ):
        yield f"http://127.0.0.1:{port}/mcp"


@asynccontextmanager
async def client_at(url: str, login: SdkLogin) -> AsyncGenerator[Client]:
    async with (
        httpx2.AsyncClient(auth=login.auth, timeout=20) as http,
        Client(streamable_http_client(url, http_client=http), cache=None) as client,
    ):
        yield client


async def read_all(folder: Path) -> bytes:
    files = [path async for path in anyio.Path(folder).rglob("*") if await path.is_file()]
    return b"".join([await path.read_bytes() for path in files])


@pytest.mark.parametrize("legacy", [False, True], ids=["modern server", "legacy server"])
async def test_each_caller_reaches_the_server_with_a_token_of_their_own(
    legacy: bool, tmp_path: Path
) -> None:
    port = free_port()
    async with oidc_provider(f"http://127.0.0.1:{port}/mcp") as provider:
        with protected_by(provider.issuer, legacy=legacy) as (server, verifier):
            async with gateway_before(
                server,
                provider,
                port,
                tmp_path,
                grant="token_exchange",
                client_id="machine",
                client_secret="secret-of-machine",
                issuer=provider.issuer,
            ) as url:
                own: set[str] = set()
                for who in ("ann", "bob", "ann"):
                    login = SdkLogin(url, user=who, client=BY_HAND)
                    async with client_at(url, login) as client:
                        names = {tool.name for tool in (await client.list_tools()).tools}
                        assert names == {"up_whoami", f"up_{who}_notes"}
                        for _ in range(2):
                            assert said(await client.call_tool("up_whoami", {})) == who
                    assert login.storage.tokens is not None
                    own.add(login.storage.tokens.access_token)
        # One exchange for each token of a caller, not one for each call.
        exchanged = [e["subject"] for e in provider.events if e["event"] == "token-exchange"]
        assert exchanged == ["ann", "bob", "ann"]
        assert not own & verifier.given, "the token for the gateway was passed on"
    written = await read_all(tmp_path)
    assert not any(token.encode() in written for token in own | verifier.given)


async def test_the_identity_provider_vouches_for_a_caller_at_another_authorization_server(
    tmp_path: Path,
) -> None:
    """Enterprise-managed authorization: two exchanges, and the person logs in once."""
    port = free_port()
    async with oidc_provider(f"http://127.0.0.1:{port}/mcp") as provider:
        with (
            authorization_server(registers=False, identity_provider=provider.issuer) as issuer,
            protected_server(issuer, is_personal=True) as server,
        ):
            issuer.clients["pegboard"] = OAuthClientInformationFull(
                client_id="pegboard",
                client_secret="secret-of-pegboard",
                redirect_uris=None,
                grant_types=[JWT_BEARER],
                token_endpoint_auth_method="client_secret_post",
            )
            async with gateway_before(
                server,
                provider,
                port,
                tmp_path,
                grant="id_jag",
                client_id="pegboard",
                client_secret="secret-of-pegboard",
                client_auth="client_secret_post",
                issuer=issuer.issuer,
                identity_provider=f"{provider.issuer}/token",
                identity_client_id="at-the-identity-provider",
                identity_client_secret="secret-of-identity",
            ) as url:
                for who in ("ann", "bob"):
                    login = SdkLogin(url, user=who, client=BY_HAND)
                    async with client_at(url, login) as client:
                        assert said(await client.call_tool("up_whoami", {})) == who
                    assert len(login.opened) == 1
            assert issuer.count("identity_assertion") == 2
            assert issuer.count("authorize") == 0
            written = await read_all(tmp_path / "home")
            assert not any(secret.encode() in written for secret in issuer.secrets)
