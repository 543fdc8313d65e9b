"""What becomes of clients' tokens while the authorization server has a fault."""

from __future__ import annotations

from typing import Any

import anyio
import httpx2
import jwt
import pytest
from tests.oauth.authorization_server import AuthorizationServer, authorization_server

from pegboard.server.auth import JwtTokens, KeySet

pytestmark = pytest.mark.anyio
AUDIENCE = "https://tools.example/mcp"


def token_of(issuer: AuthorizationServer) -> str:
    """A token of ann, as the server issues them now."""
    return issuer.issue("client", ["tools"], AUDIENCE, "ann").access_token


def verifier(issuer: AuthorizationServer, **keys: Any) -> JwtTokens:
    found = KeySet(issuer.issuer, f"{issuer.issuer}/keys", **keys)
    return JwtTokens(issuer=issuer.issuer, audience=AUDIENCE, keys=found)


@pytest.mark.parametrize("fault", ["down", "html"])
async def test_known_keys_stay_in_use_and_unknown_ones_are_found_afterwards(fault: str) -> None:
    now = 0.0
    with authorization_server(signs=True) as issuer:
        token = token_of(issuer)
        tokens, late = (verifier(issuer, clock=lambda: now) for _ in range(2))
        assert await tokens.verify_token(token) is not None
        setattr(issuer.faults, fault, True)
        now = 1_000.0
        assert await tokens.verify_token(token) is not None
        assert await late.verify_token(token) is None
        setattr(issuer.faults, fault, False)
        assert await late.verify_token(token) is None  # not asked again with every request
        now = 1_011.0
        assert await late.verify_token(token) is not None


async def test_a_slow_server_delays_a_request_for_a_bounded_time() -> None:
    with authorization_server(signs=True) as issuer:
        token = token_of(issuer)
        issuer.faults.slow = 2.0
        with anyio.fail_after(1.5):
            assert await verifier(issuer, timeout=0.2).verify_token(token) is None
            keys = KeySet(issuer.issuer, timeout=0.2)
            found = JwtTokens(issuer=issuer.issuer, audience=AUDIENCE, keys=keys)
            assert await found.verify_token(token) is None


async def test_keys_of_metadata_that_names_another_issuer_are_not_used() -> None:
    with authorization_server(signs=True) as issuer:
        issuer.faults.other_issuer = "https://login.example"
        keys = KeySet(issuer.issuer)
        assert await keys.key("only") is None
        async with httpx2.AsyncClient() as http:
            about = await http.get(f"{issuer.issuer}/.well-known/oauth-authorization-server")
        assert about.json()["issuer"] == "https://login.example"


@pytest.mark.parametrize(
    ("skew", "lifetime", "is_valid"),
    [(20, 3600, True), (120, 3600, False), (-20, 10, True), (-120, 10, False)],
)
async def test_clocks_may_differ_by_half_a_minute(
    skew: float, lifetime: float, is_valid: bool
) -> None:
    with authorization_server(signs=True, lifetime=lifetime) as issuer:
        issuer.faults.clock_skew = skew
        token = token_of(issuer)
        claims = jwt.decode(token, options={"verify_signature": False})
        assert claims["exp"] - claims["iat"] == lifetime
        assert (await verifier(issuer).verify_token(token) is not None) is is_valid
