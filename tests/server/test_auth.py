"""Identity over HTTP: real tokens, a real JWKS endpoint, and what each caller sees."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from pydantic import Field
from tests.conformance.clients import served
from tests.server.auth_server import AUDIENCE, AuthorizationServer, authorization_server

from pegboard import Pegboard
from pegboard.config.settings import AuthSettings, ScopeSettings, Settings
from pegboard.core.calls import LOCAL_CALLER
from pegboard.core.options import MODES
from pegboard.core.policy import Policy, Rule
from pegboard.errors import ConfigError
from pegboard.gateway.from_settings import build_auth
from pegboard.server.auth import (
    Auth,
    JwtTokens,
    KeySet,
    StaticKey,
    StaticKeys,
    is_loopback,
    refuse_exposure,
)
from pegboard.server.host_guard import HostGuard
from pegboard.server.protected_resource import ProtectedResource
from pegboard.server.serving import asgi_app, build_server

MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def board() -> Pegboard:
    made = Pegboard("secrets", mode="proxy")

    @made.tool(category="public", annotations={"readOnlyHint": True}, related=("read_salary",))
    def read_weather(city: str) -> str:
        """The weather in a city."""
        return f"sunny in {city}"

    @made.tool(category="payroll", annotations={"readOnlyHint": True})
    def read_salary(
        person: str,
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "eu",
    ) -> str:
        """The salary of a person."""
        return f"{person}: a lot"

    made.policy = Policy(
        [Rule(categories=("public",)), Rule(groups=("hr",), categories=("payroll",))],
        default="deny",
    )
    return made


@pytest.fixture(scope="module")
def issuer() -> Iterator[AuthorizationServer]:
    with authorization_server() as server:
        yield server


@pytest.fixture(scope="module")
def url(issuer: AuthorizationServer) -> Iterator[str]:
    settings = AuthSettings(
        kind="jwt",
        issuer=issuer.issuer,
        audience=AUDIENCE,
        required_scopes=("tools",),
        scopes=ScopeSettings(read="read", write="write"),
    )
    auth = build_auth(Settings(auth=settings))
    with served(asgi_app(build_server(board()), HostGuard(), auth=auth)) as address:
        yield f"{address}/mcp"


def ask(
    url: str, token: str | None, method: str, headers: dict[str, str] | None = None, **params: Any
) -> httpx2.Response:
    sent = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        **({"Mcp-Name": params["name"]} if "name" in params else {}),
        **({"Authorization": f"Bearer {token}"} if token else {}),
        **(headers or {}),
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": MODERN_META}}
    return httpx2.post(url, json=body, headers=sent)


def test_a_good_token_opens_the_door_under_every_mode(
    url: str, issuer: AuthorizationServer
) -> None:
    for address in (url, f"{url}/index"):
        assert ask(address, issuer.token(), "tools/list").status_code == 200


def test_without_a_token_the_answer_says_where_to_get_one(url: str) -> None:
    """RFC 9728, section 5.1. RFC 6750, section 3: no error where no token was sent."""
    for path in ("", "/index"):
        answer = ask(f"{url}{path}", None, "tools/list")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == (
            'Bearer scope="tools read", resource_metadata='
            f'"https://tools.example/.well-known/oauth-protected-resource/mcp{path}"'
        )


def test_a_token_that_is_not_valid_is_named_as_the_error(url: str) -> None:
    answer = ask(url, "nonsense", "tools/list")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith('Bearer error="invalid_token", ')
    assert answer.json()["error"] == "invalid_token"


def test_a_token_without_a_required_scope_is_told_which_scopes_to_request(
    url: str, issuer: AuthorizationServer
) -> None:
    """2026-07-28, authorization: a 403 names all scopes, those that the token has included."""
    answer = ask(url, issuer.token(scope="openid write"), "tools/list")
    assert answer.status_code == 403
    challenge = answer.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="tools write"' in challenge


def test_the_metadata_of_the_resource_names_its_authorization_server(
    url: str, issuer: AuthorizationServer
) -> None:
    """RFC 9728, section 3.3: the address that was called, and the issuer as it calls itself."""
    for path in ("", *(f"/{mode}" for mode in ("auto", *MODES))):
        address = url.replace("/mcp", f"/.well-known/oauth-protected-resource/mcp{path}")
        assert httpx2.get(address).json() == {
            "resource": f"{AUDIENCE}{path}",
            "authorization_servers": [issuer.issuer],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["tools", "read", "write"],
        }


def test_an_address_that_does_not_exist_has_no_metadata(url: str) -> None:
    address = url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
    assert httpx2.get(f"{address}/nonsense").status_code == 404
    assert httpx2.get(f"{address}/index/more").status_code == 404


@pytest.mark.parametrize("path", ["", "/index", "/auto"])
def test_a_token_for_any_address_of_the_gateway_is_valid_at_all_of_them(
    url: str, issuer: AuthorizationServer, path: str
) -> None:
    token = issuer.token(aud=[f"{AUDIENCE}{path}", "https://other.example"])
    for address in (url, f"{url}/index", f"{url}/proxy"):
        assert ask(address, token, "tools/list").status_code == 200


@pytest.mark.parametrize(
    "audience",
    [
        "https://tools.example",
        "https://tools.example/mcp/",
        "https://tools.example/mcp/nonsense",
        "https://tools.example/mcp2",
        "https://tools.example/mcp/index/",
        "http://tools.example/mcp",
        "https://TOOLS.example/mcp",
    ],
)
def test_a_token_for_a_similar_address_is_refused(
    url: str, issuer: AuthorizationServer, audience: str
) -> None:
    assert ask(url, issuer.token(aud=audience), "tools/list").status_code == 401


def test_no_character_is_added_to_the_issuer() -> None:
    for issuer in ("https://login.example", "https://login.example/", "https://login.example/t"):
        resource = ProtectedResource(url=AUDIENCE, issuer=issuer)
        assert resource.metadata()["authorization_servers"] == [issuer]


@pytest.mark.parametrize(
    "wrong",
    [
        {"aud": "https://other.example"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"exp": None},
        {"sub": None},
        {"aud": None},
        {"sub": LOCAL_CALLER.principal},
        {"nbf": 4_000_000_000},  # in 2096; the same in every process that runs tests
    ],
    ids=str,
)
def test_a_token_that_is_wrong_in_one_respect_is_refused(
    url: str, issuer: AuthorizationServer, wrong: dict[str, Any]
) -> None:
    subject = wrong.get("sub", "ann")
    others = {k: v for k, v in wrong.items() if k != "sub"}
    assert ask(url, issuer.token(subject, **others), "tools/list").status_code == 401


def test_forged_signatures_are_refused(url: str, issuer: AuthorizationServer) -> None:
    good = issuer.token()
    claims = jwt.decode(good, options={"verify_signature": False})
    stranger = ec.generate_private_key(ec.SECP256R1())
    forged = [
        jwt.encode(claims, stranger, algorithm="ES256", headers={"kid": "first"}),
        jwt.encode(claims, "", algorithm="none", headers={"kid": "first"}),
        jwt.encode(claims, "x" * 32, algorithm="HS256", headers={"kid": "first"}),
        good[:-4] + "AAAA",
        "not a token",
        "x" * 20_000,
    ]
    for token in forged:
        assert ask(url, token, "tools/list").status_code == 401


@pytest.mark.anyio
async def test_a_new_key_is_found_and_forged_key_ids_do_not_cause_a_fetch_each() -> None:
    now = 0.0
    with authorization_server() as server:
        keys = KeySet(server.issuer, clock=lambda: now)
        tokens = JwtTokens(issuer=server.issuer, audience=AUDIENCE, keys=keys)
        assert await tokens.verify_token(server.token()) is not None
        server.keys["second"] = rsa.generate_private_key(65537, 2048)
        now = 11.0
        found = await tokens.verify_token(server.token("bob", key="second", scope="a b"))
        assert found is not None
        assert (found.subject, found.scopes, found.token) == ("bob", ["a", "b"], "")
        fetched = server.fetches
        for number in range(50):
            assert await keys.key(f"forged{number}") is None
        assert server.fetches == fetched


@pytest.mark.parametrize(
    ("issuer_path", "published"),
    [
        ("", "/.well-known/oauth-authorization-server"),
        ("", "/.well-known/openid-configuration"),
        ("/tenant", "/.well-known/oauth-authorization-server/tenant"),
        ("/tenant", "/.well-known/openid-configuration/tenant"),
        ("/tenant", "/tenant/.well-known/openid-configuration"),
    ],
)
@pytest.mark.anyio
async def test_keys_are_found_by_each_kind_of_discovery(issuer_path: str, published: str) -> None:
    with authorization_server(issuer_path, published) as server:
        keys = KeySet(server.issuer)
        assert await keys.key("first") is not None
        # Metadata of another issuer at the same address is not believed.
        other = KeySet(f"{server.issuer}/")
        assert await other.key("first") is None


@pytest.mark.anyio
async def test_keys_of_an_https_issuer_are_not_fetched_without_tls() -> None:
    issuer = "https://login.example"

    async def fetch(url: str) -> Any:
        assert url.startswith(issuer)
        return {"issuer": issuer, "jwks_uri": "http://login.example/keys"}

    assert await KeySet(issuer, fetch=fetch).key("first") is None


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"issuer": "login.example"}, "http or https URL"),
        ({"resource": "tools.example/mcp"}, "http or https URL"),
        ({"required_scopes": ("a b",)}, "one word"),
        ({"scopes": ScopeSettings(write='x"y')}, "one word"),
    ],
    ids=str,
)
def test_what_cannot_stand_in_a_challenge_is_a_mistake(
    changed: dict[str, Any], problem: str
) -> None:
    auth = AuthSettings(kind="jwt", issuer="https://login.example", audience=AUDIENCE)
    with pytest.raises(ConfigError, match=problem):
        build_auth(Settings(auth=replace(auth, **changed)))


@pytest.mark.anyio
async def test_known_keys_stay_in_use_while_the_authorization_server_is_away() -> None:
    now = 0.0
    with authorization_server() as server:
        keys = KeySet(server.issuer, f"{server.issuer}/keys", clock=lambda: now)
        tokens = JwtTokens(issuer=server.issuer, audience=AUDIENCE, keys=keys)
        token = server.token()
        assert await tokens.verify_token(token) is not None
    now = 5_000.0
    assert await tokens.verify_token(token) is not None


@pytest.mark.anyio
async def test_a_static_key_stands_for_its_principal_and_only_its_hash_is_known() -> None:
    hashed = hashlib.sha256(b"opensesame").hexdigest()
    keys = StaticKeys([StaticKey("bot", hashed, ("read",), ("ci",))])
    found = await keys.verify_token("opensesame")
    assert found is not None
    assert (found.subject, found.scopes, found.claims) == ("bot", ["read"], {"groups": ["ci"]})
    assert await keys.verify_token(hashed) is None
    assert "opensesame" not in repr(vars(keys))


def test_a_key_that_is_no_hash_or_stands_for_nobody_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="SHA-256"):
        StaticKeys([StaticKey("bot", "opensesame")])
    with pytest.raises(ConfigError, match="is reserved"):
        StaticKeys([StaticKey("local", "0" * 64)])


# What somebody may not see does not exist ---------------------------------------------------------


def outcomes(url: str, token: str, name: str) -> list[tuple[int, str]]:
    """Everything that can be asked about a tool, answered; the name itself made the same."""
    asked = [
        ask(url, token, "tools/call", name=name, arguments={"person": "bob"}),
        ask(url, token, "tools/call", name=name, arguments={"nonsense": 1}),
        ask(url, token, "tools/call", {"Mcp-Param-Region": "us"}, name=name,
            arguments={"person": "bob", "region": "eu"}),
        ask(url, token, "tools/call", name="call_tool", arguments={"name": name, "arguments": {}}),
        ask(url, token, "tools/call", name="describe_tools", arguments={"names": [name]}),
        ask(url, token, "tools/call", name="get_tool_schema", arguments={"toolName": name}),
        ask(url, token, "tools/call", name="call_tools",
            arguments={"calls": [{"name": name, "arguments": {}}]}),
        ask(f"{url}/index", token, "tools/call", name="get_tool_description",
            arguments={"tool_name": name}),
        ask(f"{url}/hierarchy", token, "tools/call", name="tools_get_schema",
            arguments={"category": "payroll", "tool": name}),
        ask(url, token, "tools/describe", names=[name]),
        ask(url, token, "tools/describe_batch", tool_names=[name]),
        ask(url, token, "tools/list", lazy=False),
        ask(url, token, "tools/manifest"),
    ]  # fmt: skip
    duration = re.compile(r'"duration_ms":[0-9.]+')
    return [(a.status_code, duration.sub("", a.text.replace(name, "NAME"))) for a in asked]


def test_a_hidden_tool_looks_exactly_like_one_that_does_not_exist(
    url: str, issuer: AuthorizationServer
) -> None:
    stranger = issuer.token("ann")
    hidden, unknown = (outcomes(url, stranger, n) for n in ("read_salary", "read_zalary"))
    assert hidden == unknown
    # Other words find other tools, so a search is compared by what it must not know.
    found = ask(
        url, stranger, "tools/call", name="search_tools", arguments={"query": "read_salary"}
    )
    assert "read_salary" not in found.text
    # The category is in the request, so an answer may quote it, and nothing else.
    quoted = re.compile(r"""['"]payroll\\*['"]""")
    assert not any("payroll" in quoted.sub("", text) for _, text in hidden)


def test_those_who_may_see_it_find_describe_and_call_it(
    url: str, issuer: AuthorizationServer
) -> None:
    insider = issuer.token("eve", groups=["hr"])
    called = ask(url, insider, "tools/call", {"Mcp-Param-Region": "eu"}, name="read_salary",
                 arguments={"person": "bob", "region": "eu"})  # fmt: skip
    assert "a lot" in called.text
    mismatch = ask(url, insider, "tools/call", {"Mcp-Param-Region": "us"}, name="read_salary",
                   arguments={"person": "bob", "region": "eu"})  # fmt: skip
    assert mismatch.status_code == 400
    described = ask(url, insider, "tools/call", name="describe_tools",
                    arguments={"names": ["read_weather"]})  # fmt: skip
    assert "Related: read_salary" in described.text


def test_lists_that_depend_on_the_caller_are_not_for_shared_caches(
    url: str, issuer: AuthorizationServer
) -> None:
    assert '"cacheScope":"private"' in ask(url, issuer.token(), "tools/list").text


# Starting ----------------------------------------------------------------------------------------


def test_serving_other_machines_without_authentication_is_confirmed_twice() -> None:
    told = {"PEGBOARD_UNAUTHENTICATED": "1"}
    with pytest.raises(ConfigError, match="confirm it twice"):
        refuse_exposure("0.0.0.0", None, {}, allowed=True)
    with pytest.raises(ConfigError, match="confirm it twice"):
        refuse_exposure("192.168.1.4", None, told, allowed=False)
    refuse_exposure("0.0.0.0", None, told, allowed=True)
    refuse_exposure("127.0.0.1", None, {}, allowed=False)
    keys = Auth(verifier=StaticKeys([]))
    refuse_exposure("0.0.0.0", keys, {}, allowed=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"])
def test_addresses_of_this_machine_are_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "tools.example"])
def test_other_addresses_can_be_reached_from_elsewhere(host: str) -> None:
    assert not is_loopback(host)
