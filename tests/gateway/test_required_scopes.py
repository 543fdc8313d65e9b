"""Scopes by risk: a call without the scope is refused so that clients request it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.server import MCPServer
from mcp_types import ToolAnnotations
from tests.conformance.clients import served
from tests.server.test_auth import ask

from pegboard.config.loader import Configuration
from pegboard.config.settings import (
    ApiKey,
    AuthSettings,
    PermissionRule,
    PermissionSettings,
    ScopeSettings,
    Settings,
)
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.http_app import build_gateway_app
from pegboard.modes.mode import META_TOOL_NAMES
from pegboard.server.protected_resource import CALLING_META_TOOLS
from pegboard.upstream.spec import UpstreamSpec

READ = ToolAnnotations(read_only_hint=True)
BATCH = {"calls": [{"name": "n_look"}, {"name": "n_change"}]}
WRITE = ToolAnnotations(read_only_hint=False, destructive_hint=False)


def key(principal: str, *scopes: str) -> ApiKey:
    hashed = hashlib.sha256(principal.encode()).hexdigest()
    return ApiKey(principal=principal, sha256=hashed, scopes=scopes)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = MCPServer("notes")
    for name, hints in (("look", READ), ("change", WRITE), ("delete_all", None)):
        server.tool(name, annotations=hints)(lambda: "done")
    settings = Settings(
        auth=AuthSettings(
            kind="keys",
            keys=(key("reader", "r"), key("writer", "w"), key("nobody"), key("stranger", "r")),
            scopes=ScopeSettings(read="r", write="w", destructive="d"),
        ),
        permissions=PermissionSettings(
            rules=(PermissionRule(effect="deny", principals=("stranger",), tools=("n_change",)),)
        ),
    )
    folder: Path = tmp_path_factory.mktemp("gateway")
    with served(server.streamable_http_app()) as address:
        spec = UpstreamSpec("n", transport="http", url=f"{address}/mcp")
        gateway = Gateway(Configuration(settings, (spec,)), folder=folder)
        with served(build_gateway_app(gateway, "127.0.0.1")) as own:
            for _ in range(200):
                if "n_look" in ask(f"{own}/mcp/eager", "reader", "tools/list").text:
                    break
            yield f"{own}/mcp"


def call(url: str, who: str, tool: str, /, **arguments: Any) -> httpx2.Response:
    return ask(url, who, "tools/call", name=tool, arguments=arguments)


def test_a_call_without_the_scope_of_its_risk_is_a_403_that_names_it(url: str) -> None:
    refused = call(url, "reader", "n_change")
    assert refused.status_code == 403
    challenge = refused.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="w"' in challenge
    assert call(url, "reader", "n_look").status_code == 200
    assert 'scope="d"' in call(url, "writer", "n_delete_all").headers["www-authenticate"]
    for tool in ("n_look", "n_change"):  # the scope for writing includes reading
        assert "done" in call(url, "writer", tool).text
    assert call(url, "nobody", "n_look").status_code == 403


def test_the_lists_and_searches_need_no_scope(url: str) -> None:
    assert "n_delete_all" in ask(f"{url}/eager", "nobody", "tools/list").text
    found = call(f"{url}/proxy", "nobody", "describe_tools", names=["n_delete_all"])
    assert found.status_code == 200


@pytest.mark.parametrize(
    ("path", "meta_tool", "arguments"),
    [
        ("proxy", "call_write_tool", {"name": "n_change"}),
        ("proxy", "call_tool", {"name": "call_tools", "arguments": BATCH}),
        ("proxy", "call_tools", BATCH),
        ("hierarchy", "tools_dispatch", {"category": "n", "tool": "n_change", "arguments": {}}),
        ("proxy", "invoke_tool", {"toolName": "n_change", "arguments": {}}),
    ],
)  # fmt: skip
def test_a_call_through_a_meta_tool_needs_the_same_scope(
    url: str, path: str, meta_tool: str, arguments: dict[str, Any]
) -> None:
    refused = call(f"{url}/{path}", "reader", meta_tool, **arguments)
    assert refused.status_code == 403, refused.text
    assert 'scope="w"' in refused.headers["www-authenticate"]


def test_what_the_request_does_not_tell_is_refused_by_the_call_itself(url: str) -> None:
    # A text in place of an object, which is parsed when the call is made.
    calls = '[{"name": "n_change"}]'
    refused = call(f"{url}/proxy", "reader", "call_write_tool", name="call_tools",
                   arguments={"calls": calls})  # fmt: skip
    assert refused.status_code == 200
    assert "needs an access token with the scope 'w'" in refused.text


def test_an_argument_that_happens_to_be_a_name_demands_nothing(url: str) -> None:
    assert call(url, "reader", "n_look", name="n_delete_all").status_code == 200


def test_a_hidden_tool_is_refused_as_one_that_does_not_exist(url: str) -> None:
    hidden, unknown = (call(url, "stranger", name) for name in ("n_change", "n_chanqe"))
    assert hidden.status_code == unknown.status_code != 403
    assert hidden.text.replace("n_change", "") == unknown.text.replace("n_chanqe", "")


def test_a_legacy_client_is_refused_by_its_body(url: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "n_change"}}
    headers = {"Authorization": "Bearer reader", "Accept": "application/json, text/event-stream"}
    refused = httpx2.post(url, json=body, headers=headers)
    assert (refused.status_code, refused.json()["error"]) == (403, "insufficient_scope")


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"method": "tools/call"}', b"[" * 50_000])
def test_any_other_body_reaches_the_protocol(url: str, body: bytes) -> None:
    headers = {"Authorization": "Bearer reader", "Content-Type": "application/json"}
    answer = httpx2.post(url, content=body, headers=headers)
    assert answer.status_code not in (403, 500)


def test_the_meta_tools_that_call_are_known() -> None:
    assert CALLING_META_TOOLS < META_TOOL_NAMES
