"""People of a shared gateway log in to servers on its pages, each for themselves."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import mcp_types as t
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.settings import AuthSettings as SdkAuthSettings
from mcp.server.mcpserver import MCPServer
from tests.conformance.clients import served
from tests.e2e.test_serving import free_port
from tests.gateway.support import said
from tests.oauth.authorization_server import (
    AuthorizationServer,
    authorization_server,
    parse_url,
    protected_server,
)
from tests.oauth.browser import visit_until
from tests.oauth.support import log_in, tokens_for
from tests.real_redis import RedisServer

from pegboard.config.loader import Configuration
from pegboard.config.settings import (
    ApiKey,
    AuthSettings,
    LoginSettings,
    PermissionRule,
    PermissionSettings,
    Settings,
    StoreSettings,
)
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.http_app import build_gateway_app
from pegboard.upstream.spec import UpstreamSpec

pytestmark = pytest.mark.anyio
KEYS = tuple(
    ApiKey(principal=who, sha256=hashlib.sha256(f"key of {who}".encode()).hexdigest())
    for who in ("ann", "bob", "eve")
)


@pytest.fixture
def issuer() -> Generator[AuthorizationServer]:
    with authorization_server() as server:
        yield server


@asynccontextmanager
async def shared_gateway(
    server_url: str,
    folder: Path,
    *,
    public: str | None = None,
    store: str = "memory://",
    transport: Any = "http",
) -> AsyncGenerator[str]:
    """A gateway for several people; `public` is where a load balancer would be."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = Settings(
        mode="eager",
        store=StoreSettings(url=store),
        auth=AuthSettings(kind="keys", keys=KEYS, resource=f"{public or url}/mcp"),
        oauth=LoginSettings(store="file"),
        permissions=PermissionSettings(
            rules=(PermissionRule(effect="deny", principals=("eve",), servers=("p",)),)
        ),
    )
    spec = UpstreamSpec("p", transport=transport, url=server_url)
    gateway = Gateway(Configuration(settings, (spec,)), folder=folder)
    with served(build_gateway_app(gateway, "127.0.0.1"), port=port):
        async with httpx2.AsyncClient() as http:
            while (await http.get(f"{url}/ready")).status_code != 200:
                pass
        yield url


class Browser:
    """A browser of one person: cookies, and the forms and links of pages."""

    def __init__(self, url: str, http: httpx2.AsyncClient) -> None:
        self.url = url
        self.http = http

    async def sign_in(self, who: str, page: str) -> httpx2.Response:
        form = {"token": f"key of {who}", "page": page}
        return await self.http.post(f"{self.url}/ui/enter", data=form)

    async def begin(self, page: str) -> str:
        """Press the button; the address of the authorization server."""
        shown = (await self.http.get(f"{self.url}{page}")).text
        token = re.search(r'name="csrf_token" value="([^"]+)"', shown)
        assert token is not None, shown
        answer = await self.http.post(f"{self.url}{page}", data={"csrf_token": token[1]})
        link = re.search(r'<a href="([^"]+)">Continue to', answer.text)
        assert link is not None, answer.text
        return link[1].replace("&amp;", "&")


@asynccontextmanager
async def browser_at(url: str) -> AsyncGenerator[Browser]:
    async with httpx2.AsyncClient(follow_redirects=True, timeout=20) as http:
        yield Browser(url, http)


@asynccontextmanager
async def client_of(url: str, who: str, **options: Any) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer key of {who}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=20) as http,
        Client(
            streamable_http_client(f"{url}/mcp", http_client=http), cache=None, **options
        ) as client,
    ):
        yield client


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("legacy", [False, True], ids=["modern server", "legacy server"])
async def test_each_person_logs_in_for_themselves(
    issuer: AuthorizationServer, legacy: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path))
    with protected_server(issuer, legacy=legacy, is_personal=True) as server:
        async with shared_gateway(server.url, tmp_path) as url:
            for who in ("ann", "bob"):
                async with browser_at(url) as browser:
                    unknown = await browser.http.get(f"{url}/ui/login/p")
                    assert unknown.status_code == 401
                    asked = await browser.sign_in(who, "/ui/login/p")
                    overview = (await browser.http.get(f"{url}/")).text
                    assert '<a href="/ui/login/p"><span class="badge warn">sign in' in overview
                    assert f"<strong>{who}</strong>" in asked.text
                    address = await browser.begin("/ui/login/p")
                    done = await browser.http.get(f"{address}&login_hint={who}-at-p")
                    assert (done.status_code, "Logged in to p" in done.text) == (200, True)
                    overview = (await browser.http.get(f"{url}/")).text
                    assert '<span class="badge good">signed in</span>' in overview
            async with client_of(url, "ann") as ann, client_of(url, "bob") as bob:
                assert await names(ann) == {"p_whoami", "p_ann-at-p_notes"}
                assert await names(bob) == {"p_whoami", "p_bob-at-p_notes"}
                for client, who in ((ann, "ann"), (bob, "bob"), (ann, "ann")):
                    assert said(await client.call_tool("p_whoami", {})) == f"{who}-at-p"


async def test_each_caller_is_themselves_over_the_older_transport_too(
    issuer: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path))
    port = free_port()
    url = f"http://127.0.0.1:{port}/sse"
    server = MCPServer(
        "of the SSE transport",
        token_verifier=issuer,
        auth=SdkAuthSettings(
            issuer_url=parse_url(issuer.issuer),
            resource_server_url=parse_url(url),
            required_scopes=["tools"],
            validate_token_resource=True,
        ),
    )

    @server.tool()
    def whoami() -> str:  # pyright: ignore[reportUnusedFunction] by its decorator
        token = get_access_token()
        return str(token.subject if token else None)

    with served(server.sse_app(), port=port):
        tokens = tokens_for(url, tmp_path, server="p")
        for who in ("local", "ann", "bob"):
            await log_in(tokens, user=f"{who}-at-p", principal=who)
        async with (
            shared_gateway(url, tmp_path, transport="sse") as gateway,
            client_of(gateway, "ann") as ann,
            client_of(gateway, "bob") as bob,
        ):
            for expire in (lambda: None, issuer.expire):
                expire()
                assert said(await ann.call_tool("p_whoami", {})) == "ann-at-p"
                assert said(await bob.call_tool("p_whoami", {})) == "bob-at-p"
            # Once for each of them, and for the operator if the server is listed in the meantime.
            assert issuer.count("refresh_token") in (2, 3)


async def test_nobody_completes_the_login_of_somebody_else(
    issuer: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path))
    with protected_server(issuer) as server:
        async with (
            shared_gateway(server.url, tmp_path) as url,
            browser_at(url) as bob,
            browser_at(url) as ann,
        ):
            await bob.sign_in("bob", "/ui/login/p")
            trap = await bob.begin("/ui/login/p")
            # Ann opens the address that bob was given, and agrees.
            refused = await ann.http.get(f"{trap}&login_hint=ann")
            assert (refused.status_code, "another browser" in refused.text) == (400, True)
            # Also while she has begun a login of her own.
            await ann.sign_in("ann", "/ui/login/p")
            own = await ann.begin("/ui/login/p")
            refused = await ann.http.get(f"{trap}&login_hint=ann")
            assert refused.status_code == 400
            assert (await ann.http.get(own)).status_code == 200
            assert (await ann.http.get(own)).status_code == 400  # once
            assert issuer.count("authorization_code") == 1
            async with client_of(url, "bob") as client:
                assert await names(client) == set()


async def test_the_browser_may_come_back_to_another_replica(
    issuer: AuthorizationServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    redis_server: RedisServer,
) -> None:
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path))
    store = f"redis://{redis_server.address}/0"
    with protected_server(issuer) as server:
        async with (
            shared_gateway(server.url, tmp_path, store=store) as first,
            shared_gateway(server.url, tmp_path, store=store, public=first) as second,
            browser_at(first) as ann,
        ):
            await ann.sign_in("ann", "/ui/login/p")
            address = await ann.begin("/ui/login/p")
            names = redis_server.command("KEYS", "pegboard:oauth:begun:*").split()
            begun = redis_server.command("GET", names[0])
            assert len(names) == 1
            assert parse_qs(urlsplit(address).query)["state"][0] not in begun
            back = await visit_until(address, first)
            # Cookies are for a host, so the second replica gets them too, as behind a balancer.
            done = await ann.http.get(back.replace(first, second))
            assert (done.status_code, "Logged in to p" in done.text) == (200, True)
            assert (await ann.http.get(back)).status_code == 400  # once, wherever
            for url in (first, second):
                async with client_of(url, "ann") as client:
                    assert said(await client.call_tool("p_whoami", {})) == "ann"


async def test_a_return_that_a_browser_opens_twice_at_once_is_redeemed_once(
    issuer: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Authorization servers end a login whose code is used again (RFC 6749, section 4.1.2)."""
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path))
    statuses: list[int] = []
    with protected_server(issuer) as server:
        async with shared_gateway(server.url, tmp_path) as url, browser_at(url) as ann:
            await ann.sign_in("ann", "/ui/login/p")
            back = await visit_until(await ann.begin("/ui/login/p"), url)
            issuer.faults.slow_tokens = 0.3

            async def come_back() -> None:
                statuses.append((await ann.http.get(back)).status_code)

            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(come_back)
            async with client_of(url, "ann") as client:
                assert said(await client.call_tool("p_whoami", {})) == "ann"
    assert sorted(statuses) == [200, 400, 400]
    assert issuer.count("reuse") == 0


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_goes_on_after_the_person_has_logged_in_on_the_page(
    issuer: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    """Accepting a URL elicitation means that the address was opened, not that all is done."""
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path))
    with protected_server(issuer) as server:
        await log_in(tokens_for(server.url, tmp_path, server="p"))  # the operator's, to list it
        async with shared_gateway(server.url, tmp_path) as url, anyio.create_task_group() as tasks:

            async def use_page(address: str) -> None:
                async with browser_at(url) as ann:
                    await ann.sign_in("ann", urlsplit(address).path)
                    await ann.http.get(await ann.begin(urlsplit(address).path))

            async def accept(ctx: Any, params: Any) -> t.ElicitResult:
                assert params.url == f"{url}/ui/login/p"
                tasks.start_soon(use_page, params.url)
                return t.ElicitResult(action="accept")

            async with client_of(url, "ann", elicitation_callback=accept, mode=mode) as client:
                assert said(await client.call_tool("p_whoami", {})) == "ann"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_step_up_asks_for_more_on_the_page_and_then_the_call_goes_on(
    issuer: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path))
    opened: list[str] = []
    with protected_server(issuer) as server:
        for who in ("local", "ann"):
            await log_in(tokens_for(server.url, tmp_path, server="p"), principal=who)
        server.call_scope = "write"
        async with shared_gateway(server.url, tmp_path) as url, anyio.create_task_group() as tasks:

            async def use_page() -> None:
                async with browser_at(url) as ann:
                    await ann.sign_in("ann", "/ui/login/p")
                    opened.append(await ann.begin("/ui/login/p"))
                    await ann.http.get(opened[-1])

            async def accept(ctx: Any, params: Any) -> t.ElicitResult:
                tasks.start_soon(use_page)
                return t.ElicitResult(action="accept")

            async with client_of(url, "ann", elicitation_callback=accept, mode=mode) as client:
                with anyio.fail_after(20):
                    assert said(await client.call_tool("p_whoami", {})) == "ann"
    assert [parse_qs(urlsplit(address).query)["scope"] for address in opened] == [["tools write"]]


async def test_a_server_that_one_may_not_see_has_no_page(
    issuer: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path))
    with protected_server(issuer) as server:
        async with (
            shared_gateway(server.url, tmp_path) as url,
            browser_at(url) as eve,
            browser_at(url) as ann,
        ):
            hidden = await eve.sign_in("eve", "/ui/login/p")
            unknown = await eve.http.get(f"{url}/ui/login/q")
            assert (hidden.status_code, unknown.status_code) == (404, 404)
            forged = await eve.http.post(f"{url}/ui/login/p", data={})
            assert forged.status_code in (403, 404)
            await ann.sign_in("ann", "/ui/login/p")
            assert (await ann.http.post(f"{url}/ui/login/p", data={})).status_code == 403
            address = await ann.begin("/ui/login/p")
            declined = await ann.http.get(f"{address}&login_hint=nobody")
            assert (declined.status_code, "declined" in declined.text) == (400, True)
