"""Tokens without a person: client credentials, signed or with a secret, token exchange, ID-JAG.

The authorization server of these tests is small and real: it checks what it is sent, and issues
tokens that the MCP server accepts.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.conformance.clients import served
from tests.e2e.test_serving import free_port
from tests.oauth.support import LOCAL, tokens_for

from pegboard.oauth.access_tokens import Bearer
from pegboard.oauth.clients import ASSERTION_TYPE
from pegboard.oauth.machine_grants import ID_JAG, JWT_BEARER, TOKEN_EXCHANGE

pytestmark = pytest.mark.anyio

SECRET = "the-secret-of-the-machine"
KEYS: dict[str, Any] = {
    "RS256": rsa.generate_private_key(65537, 2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
}


def pem(key: Any) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


class Issuer:
    """An authorization server, an identity provider and a protected resource in one."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.forms: list[dict[str, str]] = []
        self.lifetime = 100

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/oauth-authorization-server", self._metadata),
                Route("/.well-known/oauth-protected-resource/mcp", self._resource),
                Route("/token", self._token, methods=["POST"]),
                Route("/idp", self._identity, methods=["POST"]),
                Route("/mcp", self._mcp, methods=["GET", "POST"]),
            ]
        )

    async def _metadata(self, request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            }
        )

    async def _resource(self, request: Request) -> Response:
        return JSONResponse({"resource": f"{self.url}/mcp", "authorization_servers": [self.url]})

    async def _token(self, request: Request) -> Response:
        form = {k: str(v) for k, v in (await request.form()).items()}
        self.forms.append(form)
        if not self._is_client(request, form):
            return JSONResponse({"error": "invalid_client"}, 401)
        exchanged = form.get("subject_token", "") + form.get("assertion", "")
        token = f"token-{len(self.forms)}-{exchanged}"
        return JSONResponse(
            {"access_token": token, "token_type": "Bearer", "expires_in": self.lifetime}
        )

    def _is_client(self, request: Request, form: dict[str, str]) -> bool:
        if form.get("client_assertion_type") == ASSERTION_TYPE:
            algorithm = jwt.get_unverified_header(form["client_assertion"])["alg"]
            key = KEYS[algorithm].public_key()
            claims = jwt.decode(
                form["client_assertion"], key, algorithms=[algorithm], audience=self.url
            )
            return claims["iss"] == claims["sub"] == "machine"
        pair = base64.b64encode(f"machine:{SECRET}".encode()).decode()
        return request.headers.get("authorization") == f"Basic {pair}" and "client_id" not in form

    async def _identity(self, request: Request) -> Response:
        form = {k: str(v) for k, v in (await request.form()).items()}
        self.forms.append(form)
        if form["requested_token_type"] != ID_JAG or form["audience"] != self.url:
            return JSONResponse({"error": "invalid_request"}, 400)
        return JSONResponse({"access_token": "the-id-jag", "token_type": "N_A"})

    async def _mcp(self, request: Request) -> Response:
        given = request.headers.get("authorization", "")
        return Response(given, 200 if given.startswith("Bearer token-") else 401)


@pytest.fixture
def issuer() -> Generator[Issuer]:
    issuer = Issuer(free_port())
    with served(issuer.app(), port=int(issuer.url.rpartition(":")[2])):
        yield issuer


async def call(at: Issuer, folder: Path, principal: str = LOCAL, **options: Any) -> str:
    tokens = tokens_for(
        f"{at.url}/mcp", folder, **{"client_id": "machine", "issuer": at.url, **options}
    )
    async with httpx2.AsyncClient(auth=Bearer(tokens, principal)) as http:
        answer = await http.post(f"{at.url}/mcp", json={})
    return answer.text if answer.status_code == 200 else f"{tokens.problem(principal)}"


async def test_client_credentials_are_for_everybody_and_shared_by_processes(
    issuer: Issuer, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"grant": "client_credentials", "client_secret": SECRET}
    for principal in (LOCAL, "ann", "bob"):
        assert await call(issuer, tmp_path, principal, **options) == "Bearer token-1-"
    assert issuer.forms == [{"grant_type": "client_credentials", "resource": f"{issuer.url}/mcp"}]


async def test_a_token_that_ends_is_requested_again(issuer: Issuer, tmp_path: Path) -> None:
    options: dict[str, Any] = {"grant": "client_credentials", "client_secret": SECRET}
    await call(issuer, tmp_path, **options)
    [stored] = (tmp_path / "logins").glob("*.json")
    about = json.loads(stored.read_text())
    about["grant"]["expires_at"] = 1.0
    stored.write_text(json.dumps(about))
    assert await call(issuer, tmp_path, **options) == "Bearer token-2-"


@pytest.mark.parametrize("algorithm", KEYS)
async def test_a_private_key_signs_for_the_issuer(
    issuer: Issuer, tmp_path: Path, algorithm: str
) -> None:
    options: dict[str, Any] = {"grant": "client_credentials", "private_key": pem(KEYS[algorithm])}
    assert await call(issuer, tmp_path, **options) == "Bearer token-1-"
    # It is of no use to another issuer, so its own may be discovered.
    options["issuer"] = None
    assert await call(issuer, tmp_path / "other", **options) == "Bearer token-2-"


async def test_what_is_wrong_is_said_without_the_secret(issuer: Issuer, tmp_path: Path) -> None:
    wrong = await call(issuer, tmp_path, grant="client_credentials", client_secret="not-the-secret")
    assert "invalid_client" in wrong
    assert "not-the-secret" not in wrong
    bad_key = await call(issuer, tmp_path, grant="client_credentials", private_key="not a key")
    assert "private key in PEM format" in bad_key
    missing = await call(issuer, tmp_path, grant="token_exchange", client_secret=SECRET)
    assert "subject_token" in missing
    tokens = tokens_for(f"{issuer.url}/mcp", tmp_path, grant="client_credentials", client_id="c")
    assert await tokens.get(LOCAL) is None
    assert "issuer" in (tokens.problem(LOCAL) or "")


async def test_each_principal_exchanges_a_token_of_their_own(
    issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for who in ("ann", "bob"):
        monkeypatch.setenv(f"TOKEN_{who}", f"of-{who}")
    options: dict[str, Any] = {
        "grant": "token_exchange",
        "client_secret": SECRET,
        "subject_token": "{{env:TOKEN_{principal}}}",
    }
    assert await call(issuer, tmp_path, "ann", **options) == "Bearer token-1-of-ann"
    assert await call(issuer, tmp_path, "bob", **options) == "Bearer token-2-of-bob"
    assert "no" in await call(issuer, tmp_path, "eve", **options)
    assert {form["grant_type"] for form in issuer.forms} == {TOKEN_EXCHANGE}


async def test_an_assertion_of_the_identity_provider_is_exchanged(
    issuer: Issuer, tmp_path: Path
) -> None:
    used = await call(
        issuer,
        tmp_path,
        grant="id_jag",
        client_secret=SECRET,
        subject_token="the-id-token",
        identity_provider=f"{issuer.url}/idp",
        identity_client_id="at-the-idp",
    )
    assert used == "Bearer token-2-the-id-jag"
    assert issuer.forms[0]["subject_token"] == "the-id-token"
    assert issuer.forms[0]["client_id"] == "at-the-idp"
    assert issuer.forms[1]["grant_type"] == JWT_BEARER
