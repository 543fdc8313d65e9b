"""Authorization servers and MCP servers that lie, stall, flood, or send what cannot be used."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from tests.oauth.hostile_server import (
    RESOURCE_METADATA,
    SERVER_METADATA,
    HostileServer,
    hostile_server,
)
from tests.oauth.support import LOCAL, begun, log_in, tokens_for

from pegboard.oauth.access_tokens import Bearer
from pegboard.oauth.http_requests import (
    MAX_ANSWER_BYTES,
    AuthorizationServerUnavailable,
    OAuthError,
    open_http,
    send,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def running() -> Generator[HostileServer]:
    with hostile_server() as server:
        yield server


@pytest.fixture
def server(running: HostileServer) -> HostileServer:
    running.reset()
    return running


async def refused(server: HostileServer, folder: Path, **options: Any) -> str:
    """Why a login fails, before or after the browser."""
    try:
        async with begun(tokens_for(server.url, folder, **options)) as login:
            async with httpx2.AsyncClient(follow_redirects=True, timeout=20) as http:
                await http.get(login.address)
            assert login.done.is_set()
            assert login.failure is not None, "it succeeded"
            return login.failure
    except OAuthError as exc:
        return str(exc)


async def test_the_server_of_these_tests_behaves_unless_told_otherwise(
    server: HostileServer, tmp_path: Path
) -> None:
    tokens = tokens_for(server.url, tmp_path)
    assert (await log_in(tokens)).failure is None
    assert await tokens.get(LOCAL) == "access-1"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"access_token": "a\r\nX-Admin: 1"}, "cannot be sent in a header"),
        ({"access_token": "a\x00b"}, "cannot be sent in a header"),
        ({"access_token": "tökén"}, "cannot be sent in a header"),
        ({"access_token": "a" * 100_000}, "cannot be sent in a header"),
        ({"access_token": ["a"]}, "no access token"),
        ({"access_token": ""}, "no access token"),
        ({"token_type": "DPoP"}, "not bearer tokens"),
        ({"token_type": ["Bearer"]}, "not bearer tokens"),
        ({"token_type": "x" * 50_000 + "\x1b[31m"}, "not bearer tokens"),
    ],
)
async def test_tokens_that_cannot_be_used_end_the_login_with_the_reason(
    server: HostileServer, tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    server.answers["/token"] = server.tokens(**changed)
    reason = await refused(server, tmp_path)
    assert said in reason
    assert len(reason) < 500
    assert reason.isprintable()
    tokens = tokens_for(server.url, tmp_path)
    assert await tokens.storage.load(tokens.key(LOCAL)) is None


@pytest.mark.parametrize("lifetime", [-5, 0, "-1", "soon", 1e308, 10**400, True, None, [], 1e-9])
async def test_odd_lifetimes_leave_a_token_that_is_used_until_it_is_refused(
    server: HostileServer, tmp_path: Path, lifetime: Any
) -> None:
    server.answers["/token"] = server.tokens(expires_in=lifetime)
    assert (await log_in(tokens_for(server.url, tmp_path))).failure is None
    restarted = tokens_for(server.url, tmp_path)
    for _ in range(3):
        assert await restarted.get(LOCAL) == "access-0"
    assert server.count("/token") <= 2, "every call refreshed it"


async def test_scopes_with_quotes_and_control_characters_stay_in_the_address(
    server: HostileServer, tmp_path: Path
) -> None:
    server.challenge += ', scope="a \\"b\\" c", error_description="x, scope=evil"'
    server.answers["/token"] = server.tokens(scope='a"\r\nb\x1b[31m')
    async with begun(tokens_for(server.url, tmp_path)) as login:
        assert "\r" not in login.address
        assert "evil" not in login.address
        assert "scope=a+%22b%22+c" in login.address
        async with httpx2.AsyncClient(follow_redirects=True) as http:
            await http.get(login.address)
    assert login.failure is None


@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        (SERVER_METADATA, {"issuer": "https://evil.example"}, "no metadata"),
        (SERVER_METADATA, HTMLResponse("<h1>Log in to the hotel</h1>"), "no metadata"),
        (SERVER_METADATA, RedirectResponse("http://169.254.169.254/"), "no metadata"),
        (SERVER_METADATA, Response(b"x" * (MAX_ANSWER_BYTES + 1)), "too long"),
        (SERVER_METADATA, Response(b'{"a":' * 100_000), "no metadata"),
        (RESOURCE_METADATA, {"resource": "https://other.example/mcp"}, "another server"),
        ("/register", RedirectResponse("http://169.254.169.254/"), "status 307"),
        ("/register", {"client_id": ["c"]}, "no client id"),
        ("/register", HTMLResponse("<h1>Hi</h1>"), "no client id"),
        ("/token", RedirectResponse("http://169.254.169.254/"), "status 307"),
        ("/token", HTMLResponse("<h1>Hi</h1>"), "no access token"),
        ("/token", Response(b"x" * (MAX_ANSWER_BYTES + 1)), "too long"),
        ("/token", [], "no access token"),
        ("/token", {"error": "x" * 9_000, "error_description": "\x1b[2J\u202e" * 99}, "answered"),
    ],
)
async def test_answers_that_are_not_the_protocol_are_named_and_not_followed(
    server: HostileServer, tmp_path: Path, path: str, answer: Any, said: str
) -> None:
    if isinstance(answer, dict) and path == RESOURCE_METADATA:
        answer["authorization_servers"] = [server.origin]
    server.answers[path] = answer
    reason = await refused(server, tmp_path)
    assert said in reason
    assert len(reason) < 900
    assert reason.isprintable()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"issuer": "http://127.0.0.1:1"}, "names another issuer"),
        ({"token_endpoint": "file:///etc/passwd"}, "no metadata"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "no metadata"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
    ],
)
async def test_metadata_that_leads_elsewhere_is_refused(
    server: HostileServer, tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    server.answers[SERVER_METADATA] = server.server_metadata(**changed)
    assert said in await refused(server, tmp_path)
    assert server.count("/register") == 0


async def drip() -> AsyncGenerator[bytes]:
    while True:
        yield b" "
        await anyio.sleep(0.05)


async def test_an_answer_that_never_ends_has_a_deadline(server: HostileServer) -> None:
    """Each part comes in time, and all of it never."""

    async def answer(request: Request) -> Response:
        return StreamingResponse(drip(), media_type="application/json")

    server.answers["/token"] = answer
    async with open_http() as http:
        request = httpx2.Request("POST", f"{server.origin}/token")
        with (
            anyio.fail_after(10),
            pytest.raises(AuthorizationServerUnavailable, match=r"in 0\.3 s"),
        ):
            await send(http, request, timeout=0.3)


async def call(server: HostileServer, bearer: Bearer) -> int:
    async with httpx2.AsyncClient(auth=bearer, timeout=20) as http:
        return (await http.post(server.url, json={})).status_code


async def test_a_server_that_refuses_every_second_request_causes_one_refresh_each(
    server: HostileServer, tmp_path: Path
) -> None:
    """The refresh is for the token that was refused: it never loops, whatever the server does."""
    tokens = tokens_for(server.url, tmp_path)
    await log_in(tokens)
    seen: list[str] = []

    def accepts(header: str) -> bool:
        seen.append(header)
        return len(seen) % 2 == 0

    server.accepts = accepts
    for _ in range(5):
        assert await call(server, Bearer(tokens, LOCAL)) == 200
    assert len(seen) == 10
    assert server.count("/token") == 1 + 5


async def test_a_server_that_always_refuses_gets_two_requests_a_call_at_most(
    server: HostileServer, tmp_path: Path
) -> None:
    tokens = tokens_for(server.url, tmp_path)
    await log_in(tokens)
    server.accepts = lambda header: False
    server.token_headers.clear()
    for _ in range(5):
        assert await call(server, Bearer(tokens, LOCAL)) == 401
    assert len(server.token_headers) <= 6
    assert server.count("/token") == 2


@pytest.mark.parametrize(
    ("status", "error", "ends"),
    [
        (400, "invalid_grant", True),
        (401, "invalid_client", True),
        (200, "bad_refresh_token", True),
        (400, "temporarily_unavailable", False),
        (400, "slow_down", False),
        (403, "Forbidden", False),
        (401, "Unauthorized", False),
        (429, "invalid_grant", False),
        (503, "invalid_grant", False),
    ],
)
async def test_only_a_refusal_of_the_login_itself_ends_it(
    server: HostileServer, tmp_path: Path, status: int, error: str, ends: bool
) -> None:
    tokens = tokens_for(server.url, tmp_path)
    await log_in(tokens)
    server.answers["/token"] = JSONResponse({"error": error}, status)
    assert await tokens.renew(LOCAL, "access-1") is None
    grant = await tokens.storage.load(tokens.key(LOCAL))
    assert grant is not None
    assert (grant.state == "sign in again") is ends
    assert (tokens.problem(LOCAL) is None) is ends


async def test_a_wrong_secret_in_the_configuration_ends_no_login(
    server: HostileServer, tmp_path: Path
) -> None:
    """Secrets expire at Entra and are replaced; nobody should have to log in again for that."""
    options = {"client_id": "by-hand", "client_secret": "it-has-expired"}
    tokens = tokens_for(server.url, tmp_path, **options)
    await log_in(tokens)
    server.answers["/token"] = JSONResponse({"error": "invalid_client"}, 401)
    assert await tokens.renew(LOCAL, "access-1") is None
    assert "client_secret" in (tokens.problem(LOCAL) or "")
    del server.answers["/token"]
    replaced = tokens_for(server.url, tmp_path, **options)
    assert await replaced.renew(LOCAL, "access-1") == "access-3"


async def test_a_challenge_of_another_origin_is_used_only_if_it_is_about_this_server(
    server: HostileServer, tmp_path: Path
) -> None:
    for address in ("http://[", "http://127.0.0.1:99999/", "file:///etc/passwd", "//x", "http://"):
        server.challenge = f'Bearer resource_metadata="{address}"'
        reason = await refused(server, tmp_path)
        assert "is not https or http" in reason or "cannot be reached" in reason
    with hostile_server() as other:
        server.challenge = f'Bearer resource_metadata="{other.origin}{RESOURCE_METADATA}"'
        assert "about another server" in await refused(server, tmp_path)
        assert other.count("/register") == 0


async def test_a_flood_in_a_challenge_is_read_in_bounded_time(
    server: HostileServer, tmp_path: Path
) -> None:
    server.challenge = 'Bearer scope="' + "a " * 20_000 + '", ' + 'scope="' * 2_000
    began = time.process_time()
    async with begun(tokens_for(server.url, tmp_path)) as login:
        assert len(login.address) < 30_000
    assert time.process_time() - began < 2


async def test_a_refresh_names_the_resource_or_else_the_scope(
    server: HostileServer, tmp_path: Path
) -> None:
    """Entra refuses `resource`, and without a scope it issues a token for another API."""
    for number, is_named in enumerate((True, False)):
        options: dict[str, Any] = {"resource": is_named, "scope": "api://reports/.default"}
        tokens = tokens_for(server.url, tmp_path / str(number), **options)
        await log_in(tokens)
        assert await tokens.renew(LOCAL, await tokens.get(LOCAL)) is not None
        sent = server.requests[-1][1]
        assert sent["grant_type"] == "refresh_token"
        assert ("resource" in sent, "scope" in sent) == (is_named, not is_named)
