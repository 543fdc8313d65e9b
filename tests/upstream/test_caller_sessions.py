"""Sessions and credentials at servers over HTTP and SSE: each caller's own, never another's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver.context import Context
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.upstream.support import Gateway, gateway
from tests.upstream.test_http import Plain, http, serving

from pegboard.core.calls import Caller
from pegboard.errors import ConfigError, NotPermitted
from pegboard.upstream.downstream import Downstream
from pegboard.upstream.listing import stream_listings
from pegboard.upstream.relay import UpstreamRequest
from pegboard.upstream.spec import UpstreamSpec

pytestmark = pytest.mark.anyio
HEADERS = {"X-Key": "{{env:CRM_{principal}}}"}


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for who in ("local", "ann", "bob"):
        monkeypatch.setenv(f"CRM_{who}", f"key of {who}")


async def call(through: Gateway, who: str, tool: str = "whoami", **arguments: Any) -> str:
    outgoing = UpstreamRequest("e", "tools/call", {"name": tool, "arguments": arguments})
    result = await through.relay.request(outgoing, Downstream(Caller(who), None, {}))
    return result["content"][0]["text"]


class Recording(Plain):
    """A legacy server that notes with which key each session is opened and used."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, str | None]] = []

    async def answer(self, request: Request) -> Response:
        if request.method == "POST":
            method = json.loads(await request.body())["method"]
            self.seen.append((method, request.headers.get("x-key")))
        return await super().answer(request)


async def test_a_session_at_a_legacy_server_belongs_to_one_caller_from_its_first_request() -> None:
    plain = Recording()
    async with serving(plain.app) as url:
        spec = http(f"{url}/mcp", headers=HEADERS)
        async with gateway(spec) as through:
            through.pool.set_known_era("e", "legacy")
            sessions = [await call(through, who) for who in ("ann", "bob", "ann")]
    assert sessions[0] == sessions[2] != sessions[1]
    assert {key for _, key in plain.seen} == {"key of ann", "key of bob"}
    assert [key for method, key in plain.seen if method == "initialize"] == [
        "key of ann",
        "key of bob",
    ]


class Stateless:
    """A modern server by hand that tells sessions apart by a cookie, as some frameworks do."""

    def __init__(self) -> None:
        self.app = Starlette(routes=[Route("/mcp", self.answer, methods=["POST", "GET", "DELETE"])])

    async def answer(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        message = json.loads(await request.body())
        if message["method"] == "server/discover":
            found: Any = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            found |= {"ttlMs": 0, "cacheScope": "private"}
            return self._reply(message, found, "of the gateway")
        who = request.headers.get("x-key", "nobody")
        cart = request.cookies.get("cart", f"cart of {who}")
        content = [{"type": "text", "text": f"{who}: {cart}"}]
        return self._reply(message, {"content": content}, cart)

    def _reply(self, message: Any, result: Any, cart: str) -> Response:
        result = {**result, "resultType": "complete"}
        answer = JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})
        answer.set_cookie("cart", cart)
        return answer


async def test_a_modern_server_gets_nobodys_cookie_with_another_ones_request() -> None:
    async with (
        serving(Stateless().app) as url,
        gateway(http(f"{url}/mcp", headers=HEADERS)) as through,
    ):
        for who in ("ann", "bob", "ann"):
            assert await call(through, who) == f"key of {who}: cart of key of {who}"
        status = through.pool.status()[0]
        assert (status.era, status.connections) == ("modern", 1)


async def test_the_first_caller_of_an_unknown_server_lends_nobody_its_credential() -> None:
    """The era is not known, so the first connection is that caller's; then it is replaced."""
    async with (
        serving(Stateless().app) as url,
        gateway(http(f"{url}/mcp", headers=HEADERS)) as through,
    ):
        await call(through, "ann")
        assert (await call(through, "local")).startswith("key of local:")
        with pytest.raises(NotPermitted, match="credential of your own"):
            await call(through, "eve")


def older() -> Starlette:
    """A server of the older SSE transport that knows its callers by a header."""
    server = MCPServer("crm")

    @server.tool()
    def whoami(ctx: Context) -> str:
        """Who calls."""
        request = ctx.request_context.request
        assert request is not None
        return str(request.headers.get("x-key"))

    return server.sse_app()


async def test_over_sse_each_call_carries_the_credential_of_its_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(older()) as url:
        spec = UpstreamSpec("e", transport="sse", url=f"{url}/sse", headers=HEADERS)
        async with gateway(spec) as through:
            async with stream_listings(through.pool) as found:
                assert (await found.receive()).error is None
            for who in ("ann", "bob", "local", "ann"):
                assert await call(through, who) == f"key of {who}"
            with pytest.raises(NotPermitted, match="credential of your own"):
                await call(through, "eve")
            monkeypatch.setenv("CRM_ann", "new key of ann")
            assert await call(through, "ann") == "new key of ann"
            monkeypatch.delenv("CRM_ann")
            with pytest.raises(NotPermitted, match="credential of your own"):
                await call(through, "ann")


@pytest.mark.parametrize("declared", [{"stateless": True}, {"isolation": "shared"}])
def test_one_sse_connection_for_everybody_cannot_have_headers_for_each(declared: Any) -> None:
    with pytest.raises(ConfigError, match=r"headers for each caller.*SSE"):
        UpstreamSpec("e", transport="sse", url="http://x/sse", headers=HEADERS, **declared)
    UpstreamSpec("e", transport="sse", url="http://x/sse", headers={"X": "plain"}, **declared)
