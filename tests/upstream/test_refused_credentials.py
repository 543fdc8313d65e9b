"""A server that refuses a caller's credential: their matter, and no outage for anybody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.server import MCPServer
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.upstream.support import Gateway, gateway
from tests.upstream.test_http import serving

from pegboard.config.loader import Configuration
from pegboard.config.settings import Settings
from pegboard.core import defaults
from pegboard.core.calls import Caller
from pegboard.errors import LoginRequired, NotPermitted
from pegboard.gateway.gateway import Gateway as GatewayOfServers
from pegboard.upstream.downstream import Downstream
from pegboard.upstream.relay import UpstreamRequest
from pegboard.upstream.spec import Transport, UpstreamSpec

pytestmark = pytest.mark.anyio
CHALLENGE = 'Bearer error="invalid_token", resource_metadata="https://example.com/about"'
BODIES: dict[str, Any] = {
    "plain": None,
    "JSON-RPC": {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "who?"}},
}


class Guarded:
    """A server that answers `refused` keys with a status of choice."""

    def __init__(self, transport: Transport = "http") -> None:
        self.status = 401
        self.refused: set[str] = set()
        self.body: Any = None
        self.missing_scope: str | None = 'Bearer error="insufficient_scope", scope="write"'
        server = MCPServer("crm")

        @server.tool()
        def hello() -> str:
            """Say hello."""
            return "hello"

        inner = server.streamable_http_app() if transport == "http" else server.sse_app()
        guard = Middleware(BaseHTTPMiddleware, dispatch=self.check)
        self.app = Starlette(
            routes=inner.routes, middleware=[guard], lifespan=inner.router.lifespan_context
        )

    async def check(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        if request.headers.get("x-key", "") not in self.refused:
            return await call_next(request)
        headers = {"WWW-Authenticate": CHALLENGE}
        if self.status == 403:
            headers = {"WWW-Authenticate": self.missing_scope} if self.missing_scope else {}
        if self.body is not None:
            return JSONResponse(self.body, self.status, headers=headers)
        return Response(status_code=self.status, headers=headers)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for who in ("local", "ann", "bob"):
        monkeypatch.setenv(f"CRM_{who}", who)


def crm(url: str, transport: Transport = "http") -> UpstreamSpec:
    path = "mcp" if transport == "http" else "sse"
    headers = {"X-Key": "{{env:CRM_{principal}}}"}
    return UpstreamSpec("e", transport=transport, url=f"{url}/{path}", headers=headers)


async def call(through: Gateway, who: str) -> str:
    outgoing = UpstreamRequest("e", "tools/call", {"name": "hello", "arguments": {}})
    result = await through.relay.request(outgoing, Downstream(Caller(who), None, {}))
    return result["content"][0]["text"]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_refused_call_says_so_with_the_challenge(era: Any, status: int, body: str) -> None:
    server = Guarded()
    server.status, server.body = status, BODIES[body]
    async with serving(server.app) as url, gateway(crm(url)) as through:
        through.pool.set_known_era("e", era)
        assert await call(through, "bob") == "hello"
        server.refused = {"bob"}
        with pytest.raises(LoginRequired, match=f"status {status}") as caught:
            await call(through, "bob")
        assert caught.value.challenge is not None
        assert caught.value.challenge.startswith("Bearer error=")
        assert "resource_metadata" not in str(caught.value.details)
        assert await call(through, "ann") == "hello"
        server.refused = set()
        assert await call(through, "bob") == "hello"


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_refused_handshake_says_so_and_the_next_call_does_not_wait(
    transport: Transport,
) -> None:
    server = Guarded(transport)
    server.refused = {"bob"}
    async with serving(server.app) as url, gateway(crm(url, transport)) as through:
        for _ in range(4):
            with pytest.raises(LoginRequired, match="status 401") as caught:
                await call(through, "bob")
            assert caught.value.challenge == CHALLENGE
        assert through.pool.status()[0].retry_after == 0
        server.refused = set()
        assert await call(through, "bob") == "hello"


async def test_a_credential_that_ends_on_an_open_sse_connection_is_refused_as_such() -> None:
    server = Guarded("sse")
    async with serving(server.app) as url, gateway(crm(url, "sse")) as through:
        assert await call(through, "bob") == "hello"
        server.refused = {"bob"}
        with pytest.raises(LoginRequired) as caught:
            await call(through, "bob")
        assert caught.value.challenge == CHALLENGE
        server.refused = set()
        assert await call(through, "bob") == "hello"


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_403_that_no_scope_would_change_is_a_missing_permission(era: Any) -> None:
    server = Guarded()
    server.status, server.missing_scope = 403, None
    async with serving(server.app) as url, gateway(crm(url)) as through:
        through.pool.set_known_era("e", era)
        assert await call(through, "bob") == "hello"
        server.refused = {"bob"}
        with pytest.raises(NotPermitted, match="status 403"):
            await call(through, "bob")


@pytest.mark.parametrize("status", [401, 403])
async def test_refusals_of_one_caller_open_no_breaker_for_the_others(
    status: int, tmp_path: Path
) -> None:
    server = Guarded()
    server.status = status
    async with serving(server.app) as url:
        configuration = Configuration(Settings(), (crm(url),))
        async with GatewayOfServers(configuration, folder=tmp_path) as whole:
            await whole.wait_until_listed()
            server.refused = {"bob"}
            for _ in range(2 * defaults.BREAKER_FAILURES):
                with pytest.raises(LoginRequired):
                    await whole.board.call("e_hello", caller=Caller("bob"))
            result = await whole.board.call("e_hello", caller=Caller("ann"))
            assert "hello" in str(result.output)
            server.refused = set()
            assert "hello" in str((await whole.board.call("e_hello", caller=Caller("bob"))).output)


async def test_a_refusal_counts_although_the_older_handshake_fails_in_another_way() -> None:
    async def answer(request: Request) -> Response:
        method = json.loads(await request.body())["method"]
        if method == "server/discover":
            return Response(status_code=401, headers={"WWW-Authenticate": CHALLENGE})
        return Response(status_code=400)

    app = Starlette(routes=[Route("/mcp", answer, methods=["POST"])])
    async with serving(app) as url, gateway(crm(url)) as through:
        with pytest.raises(LoginRequired) as caught:
            await call(through, "bob")
        assert caught.value.challenge == CHALLENGE
