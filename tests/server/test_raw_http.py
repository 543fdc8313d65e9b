"""A client without an SDK: what only raw JSON-RPC can ask for, and what travels on the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from tests.boards import office_board
from tests.conformance.clients import served
from tests.conformance.scenarios import LAZY

MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(office_board().asgi()) as address:
        yield address


def modern(url: str, method: str, **params: Any) -> dict[str, Any]:
    """The JSON-RPC answer to one request of the modern era, which needs no handshake."""
    meta = {**MODERN_META, **params.pop("_meta", {})}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
    }
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return message(httpx2.post(url, json=body, headers=headers))


def message(answer: httpx2.Response) -> dict[str, Any]:
    if answer.headers["content-type"].startswith("text/event-stream"):
        data = [line[5:] for line in answer.text.splitlines() if line.startswith("data:")]
        return json.loads(data[-1])
    return answer.json()


def test_bare_stubs_have_no_input_schema_at_all(url: str) -> None:
    """Both official clients reject such a list, so only a raw client may ask for it."""
    asked = modern(f"{url}/mcp/proxy", "tools/list", lazy="bare")["result"]
    by_meta = modern(f"{url}/mcp/proxy", "tools/list", _meta={LAZY: "bare"})["result"]
    assert asked == by_meta
    assert len(asked["tools"]) == 29
    assert all(set(tool) == {"name", "description"} for tool in asked["tools"])
    assert asked["_meta"][LAZY] is True
    assert asked["ttlMs"] == 0


def test_a_raw_param_wins_over_the_same_in_meta(url: str) -> None:
    listed = modern(f"{url}/mcp/proxy", "tools/list", lazy=False, _meta={LAZY: True})["result"]
    assert "outputSchema" in next(t for t in listed["tools"] if t["name"] == "get_issue")


def test_two_requests_of_the_modern_era_share_nothing(url: str) -> None:
    """2026-07-28: a list must not vary as a side effect of another request."""
    mode = f"{url}/mcp/dynamic"
    before = modern(mode, "tools/list")["result"]["tools"]
    query = {"query": "burndown of a project"}
    found = modern(mode, "tools/call", name="search_tools", arguments=query)
    assert "burndown" in found["result"]["content"][0]["text"]
    assert modern(mode, "tools/list")["result"]["tools"] == before


def test_arguments_that_are_a_json_text_are_understood(url: str) -> None:
    """No SDK client sends them so, but models and hand-made clients do (REQUIREMENTS D1)."""
    params = {"name": "get_issue", "arguments": '{"id": 1}'}
    answer = modern(f"{url}/mcp/proxy", "tools/call", **params)
    assert answer["result"]["structuredContent"]["id"] == 1
    answer = modern(f"{url}/mcp/proxy", "tools/call", name="get_issue", arguments='{"id": ')
    assert answer["result"]["isError"] is True
    assert "JSON" in answer["result"]["content"][0]["text"]


def test_a_legacy_client_that_has_not_shaken_hands_is_not_served(url: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json, text/event-stream"}
    answer = httpx2.post(f"{url}/mcp/proxy", json=body, headers=headers)
    assert answer.status_code == 400
    assert "error" in message(answer)


def test_a_path_of_no_mode_is_not_found_and_says_which_there_are(url: str) -> None:
    answer = httpx2.post(f"{url}/mcp/prox", json={})
    assert answer.status_code == 404
    assert "Did you mean 'proxy'?" in answer.json()["error"]
