"""One login of one person, against the SDK's authorization server, with a browser that follows."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest
from tests.e2e.test_serving import free_port
from tests.oauth.authorization_server import (
    DECLINES,
    AuthorizationServer,
    Faults,
    ProtectedServer,
    authorization_server,
    protected_server,
)
from tests.oauth.browser import visit, visit_until
from tests.oauth.support import LOCAL, begun, file_grants, log_in, tokens_for

from pegboard.oauth.discovery import Challenge
from pegboard.oauth.http_requests import AuthorizationServerUnavailable, OAuthError
from pegboard.oauth.login_flow import LoginNotNeeded, WrongRedirect
from pegboard.oauth.logins import Logins

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def issuer() -> Generator[AuthorizationServer]:
    with authorization_server() as server:
        yield server


@pytest.fixture(scope="module")
def protected(issuer: AuthorizationServer) -> Generator[ProtectedServer]:
    with protected_server(issuer) as server:
        yield server


@pytest.fixture(autouse=True)
def _without_faults(issuer: AuthorizationServer) -> Generator[None]:
    yield
    issuer.faults = Faults()


def query_of(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


async def test_a_login_needs_no_configuration(protected: ProtectedServer, tmp_path: Path) -> None:
    tokens = tokens_for(protected.url, tmp_path)
    async with begun(tokens) as login:
        asked = query_of(login.address)
        page = await visit(login.address)
    assert login.done.is_set()
    assert login.failure is None
    assert page.status_code == 200
    assert "Signed in" in page.text
    # Authorization, "Resource Parameter Implementation" and "Scope Selection Strategy".
    assert asked["resource"] == protected.url
    assert asked["code_challenge_method"] == "S256"
    assert asked["scope"] == "tools"
    assert await tokens.get(LOCAL) is not None
    stored = await tokens.storage.load(tokens.key(LOCAL))
    assert stored is not None
    assert stored.issuer == protected.issuer.issuer
    assert stored.token_endpoint == f"{stored.issuer}/token"
    assert stored.resource == protected.url


async def test_a_registration_is_used_again_with_its_port(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    tokens = tokens_for(protected.url, tmp_path, redirect=f"http://127.0.0.1:{free_port()}/back")
    await log_in(tokens)
    before = issuer.count("register")
    await log_in(tokens)
    assert issuer.count("register") == before


async def test_a_client_that_the_authorization_server_has_forgotten_is_registered_again(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    """Only the browser shows that the client is unknown, and there is no redirect back."""
    tokens = tokens_for(protected.url, tmp_path, redirect=f"http://127.0.0.1:{free_port()}/back")
    await log_in(tokens)
    issuer.clients.clear()
    async with begun(tokens) as lost:
        assert "not found" in (await visit(lost.address)).text
    assert not lost.done.is_set()
    # The existing login is still used, and its refresh would reveal the problem as well.
    assert await tokens.get(LOCAL) is not None
    assert (await log_in(tokens)).failure is None
    before = issuer.count("register")
    await log_in(tokens)
    assert issuer.count("register") == before


async def test_a_step_up_asks_for_old_and_new_scopes_as_a_client_that_may(
    protected: ProtectedServer, tmp_path: Path
) -> None:
    """The SDK's server lets a client request only the scopes that it was registered for."""
    tokens = tokens_for(protected.url, tmp_path, redirect=f"http://127.0.0.1:{free_port()}/back")
    await log_in(tokens)
    more = Challenge(scope="write", error="insufficient_scope")
    assert (await log_in(tokens, challenge=more)).failure is None
    grant = await tokens.storage.load(tokens.key(LOCAL))
    assert grant is not None
    assert set(str(grant.scope).split()) == {"tools", "write"}


async def test_a_pasted_address_completes_a_login(
    protected: ProtectedServer, tmp_path: Path
) -> None:
    tokens = tokens_for(protected.url, tmp_path)
    async with begun(tokens) as login:
        redirect = query_of(login.address)["redirect_uri"]
        pasted = await visit_until(login.address, redirect)
        await login.receive(f"  {pasted}\n")
    assert await tokens.get(LOCAL) is not None


async def test_redirects_of_others_and_used_ones_are_refused_and_end_nothing(
    protected: ProtectedServer, tmp_path: Path
) -> None:
    tokens = tokens_for(protected.url, tmp_path)
    async with begun(tokens) as other, begun(tokens) as login:
        redirect = query_of(other.address)["redirect_uri"]
        of_another = await visit_until(other.address, redirect)
        for wrong in (
            of_another,
            "https://example.com/",
            "http://[",
            f"{redirect}?code=x",
            login.address,  # which has the right `state`
        ):
            with pytest.raises(WrongRedirect):
                await login.receive(wrong)
        assert not login.done.is_set()
        own = await visit_until(login.address, query_of(login.address)["redirect_uri"])
        await login.receive(own)
        with pytest.raises(WrongRedirect, match="used already"):
            await login.receive(own)
    assert login.failure is None


async def test_a_person_who_declines_gets_the_reason(
    protected: ProtectedServer, tmp_path: Path
) -> None:
    tokens = tokens_for(protected.url, tmp_path)
    async with begun(tokens) as login:
        page = await visit(login.address, user=DECLINES)
    assert page.status_code == 400
    assert "declined" in page.text
    assert login.failure is not None
    assert "declined" in login.failure
    assert await tokens.get(LOCAL) is None


async def test_a_person_who_never_finishes_ends_the_login_and_can_begin_another(
    protected: ProtectedServer, tmp_path: Path
) -> None:
    tokens = tokens_for(protected.url, tmp_path)
    async with Logins(file_grants(tmp_path), timeout=0.3) as logins:
        with anyio.fail_after(10):
            left_alone = await logins.begin(tokens, LOCAL, None)
            await left_alone.done.wait()
    assert left_alone.failure == "nobody completed it within 0.005 minutes"
    assert await tokens.get(LOCAL) is None
    async with Logins(file_grants(tmp_path)) as logins:
        again = await logins.begin(tokens, LOCAL, None)
        await visit(again.address)
        with anyio.fail_after(10):
            await again.done.wait()
    assert again.failure is None
    assert await tokens.get(LOCAL) is not None


async def test_an_answer_of_another_issuer_is_not_redeemed(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    """RFC 9207: `iss` is compared before the code is used, and must not be missing."""
    tokens = tokens_for(protected.url, tmp_path)
    before = issuer.count("authorization_code")
    for change in ("&iss=https%3A%2F%2Fevil.example", ""):
        async with begun(tokens) as login:
            own = await visit_until(login.address, query_of(login.address)["redirect_uri"])
            with pytest.raises(OAuthError, match="another authorization server"):
                await login.receive(own.partition("&iss=")[0] + change)
    assert issuer.count("authorization_code") == before


async def test_metadata_of_another_issuer_is_refused(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    issuer.faults.other_issuer = "https://evil.example"
    with pytest.raises(OAuthError, match="another issuer"):
        await log_in(tokens_for(protected.url, tmp_path))


async def test_pkce_must_be_announced_unless_the_operator_vouches_for_it(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    issuer.faults.hides_pkce = True
    with pytest.raises(OAuthError, match="PKCE"):
        await log_in(tokens_for(protected.url, tmp_path))
    assert (await log_in(tokens_for(protected.url, tmp_path, pkce="assume"))).failure is None


async def test_a_server_that_refuses_resource_gets_none_if_it_is_switched_off(
    issuer: AuthorizationServer, tmp_path: Path
) -> None:
    with protected_server(issuer) as server:
        issuer.faults.refuses_resource = True
        refused = await log_in(tokens_for(server.url, tmp_path))
        assert refused.failure is not None
        assert "AADSTS9010010" in refused.failure
        accepted = await log_in(tokens_for(server.url, tmp_path, resource=False))
        assert accepted.failure is None


async def test_a_client_by_hand_goes_to_its_issuer_and_nowhere_else(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    by_hand = {"client_id": "by-hand", "client_secret": "s3cret-of-mine"}
    with pytest.raises(OAuthError, match="not used at another"):
        await log_in(
            tokens_for(protected.url, tmp_path, issuer="https://login.example.com", **by_hand)
        )


async def test_an_authorization_server_that_is_down_or_a_portal_is_named(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    issuer.faults.down = True
    with pytest.raises(AuthorizationServerUnavailable, match="503"):
        await log_in(tokens_for(protected.url, tmp_path))
    issuer.faults.down, issuer.faults.html = False, True
    with pytest.raises(OAuthError, match="no metadata"):
        await log_in(tokens_for(protected.url, tmp_path))


async def test_a_taken_port_is_named_where_the_redirect_is_fixed(
    protected: ProtectedServer, tmp_path: Path
) -> None:
    taken = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with taken:
        port = taken.extra(anyio.abc.SocketAttribute.local_port)
        tokens = tokens_for(protected.url, tmp_path, redirect=f"http://127.0.0.1:{port}/callback")
        with pytest.raises(OAuthError, match=f"port {port}"):
            await log_in(tokens)


async def test_a_server_without_registration_says_what_to_set(tmp_path: Path) -> None:
    with (
        authorization_server(registers=False) as issuer,
        protected_server(issuer) as server,
        pytest.raises(OAuthError, match="client_id"),
    ):
        await log_in(tokens_for(server.url, tmp_path))


async def test_a_server_that_answers_without_a_login_needs_none(
    issuer: AuthorizationServer, tmp_path: Path
) -> None:
    with pytest.raises(LoginNotNeeded):
        await log_in(tokens_for(f"{issuer.issuer}/nowhere", tmp_path))


async def test_a_browser_that_sends_nonsense_does_not_disturb_a_login(
    protected: ProtectedServer, tmp_path: Path
) -> None:
    tokens = tokens_for(protected.url, tmp_path)
    async with begun(tokens) as login:
        parts = urlsplit(query_of(login.address)["redirect_uri"])
        for sent in (
            b"",
            b"\x00" * 20_000,
            b"POST /callback?state=x HTTP/1.1\r\n\r\n",
            b"GET //[ HTTP/1.1\r\n\r\n",  # as any web page can have a browser send
            b"GET /callback?state=[&x=// HTTP/1.1\r\n\r\n",
        ):
            stream = await anyio.connect_tcp(parts.hostname or "", parts.port or 0)
            async with stream:
                await stream.send(sent)
        page = await visit(login.address)
    assert page.status_code == 200
