"""Identity over HTTP: real tokens, a real JWKS endpoint, and what each caller sees."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator
from typing import Annotated, Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from pydantic import Field
from tests.conformance.clients import served
from tests.server.auth_server import AUDIENCE, AuthorizationServer, authorization_server

from pegboard import Pegboard
from pegboard.core.calls import LOCAL_CALLER
from pegboard.core.policy import Policy, Rule
from pegboard.errors import ConfigError
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
    tokens = JwtTokens(issuer=issuer.issuer, audience=AUDIENCE, keys=KeySet(issuer.issuer))
    auth = Auth(verifier=tokens, issuer=issuer.issuer, resource=AUDIENCE)
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
    for address in (url, f"{url}/index"):
        answer = ask(address, None, "tools/list")
        assert answer.status_code == 401
        challenge = answer.headers["www-authenticate"]
        assert "https://tools.example/.well-known/oauth-protected-resource/mcp" in challenge


def test_the_metadata_of_the_resource_names_its_authorization_server(
    url: str, issuer: AuthorizationServer
) -> None:
    """RFC 9728: a client finds the authorization server from the resource."""
    address = url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
    found = httpx2.get(address).json()
    assert found["resource"] == AUDIENCE
    assert [s.rstrip("/") for s in found["authorization_servers"]] == [issuer.issuer]


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
        {"nbf": int(time.time()) + 3600},
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
