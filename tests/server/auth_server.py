"""A small authorization server: real keys, a real JWKS endpoint, tokens to order."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from tests.conformance.clients import served

AUDIENCE = "https://tools.example/mcp"


@dataclass
class AuthorizationServer:
    """Signs tokens; its keys can be changed, and it counts how often they are asked for."""

    issuer: str = ""
    published: str = "/.well-known/openid-configuration"
    fetches: int = 0
    keys: dict[str, Any] = field(
        default_factory=lambda: {"first": ec.generate_private_key(ec.SECP256R1())}
    )

    def token(self, subject: str = "ann", *, key: str = "first", **claims: Any) -> str:
        """A token that is good in every respect, but for what `claims` change."""
        now = int(time.time())
        good = {"iss": self.issuer, "aud": AUDIENCE, "sub": subject, "scope": "tools read"}
        good |= {"iat": now, "exp": now + 600}
        payload = {k: v for k, v in {**good, **claims}.items() if v is not None}
        algorithm = "RS256" if isinstance(self.keys[key], rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(payload, self.keys[key], algorithm=algorithm, headers={"kid": key})

    def jwks(self) -> dict[str, Any]:
        """The public halves, as published."""
        found: list[dict[str, Any]] = []
        for name, key in self.keys.items():
            if isinstance(key, rsa.RSAPrivateKey):
                published: Any = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
            else:
                published = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
            found.append({**published, "kid": name})
        return {"keys": found}

    async def _keys(self, request: Request) -> JSONResponse:
        self.fetches += 1
        return JSONResponse(self.jwks())

    async def _about(self, request: Request) -> JSONResponse:
        return JSONResponse({"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"})

    def app(self) -> Starlette:
        """What it serves."""
        return Starlette(
            routes=[
                Route("/keys", self._keys),
                Route("/tenant/keys", self._keys),
                Route(self.published, self._about),
            ]
        )


@contextmanager
def authorization_server(
    path: str = "", published: str = "/.well-known/openid-configuration"
) -> Generator[AuthorizationServer]:
    """A server that runs for as long as the block; `published` is where its metadata is."""
    server = AuthorizationServer(published=published)
    with served(server.app()) as address:
        server.issuer = address + path
        yield server
