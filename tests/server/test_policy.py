"""Permissions for server authors: on a board, and on an attached server."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.conformance.clients import served
from tests.server.test_attachment import fastmcp_server, lowlevel_server, mcp_server
from tests.server.test_auth import ask

from pegboard import Pegboard, Policy, Rule, ToolNotFound, attach
from pegboard.core.calls import Caller, ToolCall
from pegboard.server import mcp_private
from pegboard.server.auth import Auth, StaticKey, StaticKeys
from pegboard.server.host_guard import HostGuard
from pegboard.server.serving import asgi_app, build_server

POLICY = Policy([Rule(tools=("forecast",)), Rule(groups=("staff",), tools=("greet",))],
                default="deny")  # fmt: skip


def hashed(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


AUTH = Auth(
    verifier=StaticKeys(
        [StaticKey("ann", hashed("a"), groups=("staff",)), StaticKey("bob", hashed("b"))]
    )
)


def own_board() -> Any:
    board = Pegboard("weather", mode="proxy", risk="single", policy=POLICY)

    @board.tool
    def forecast(city: str, days: int = 1) -> str:
        """Say how warm it will be."""
        return f"{city}: 21.5"

    @board.tool
    def greet(name: str) -> str:
        """Say hello to somebody."""
        return f"Hello {name}"

    return build_server(board)


def attached(make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: mcp_private.get_lowlevel_server(
        attach(make(), mode="proxy", risk="single", policy=POLICY)
    )


@pytest.mark.parametrize(
    "make",
    [own_board, attached(lowlevel_server), attached(mcp_server), attached(fastmcp_server)],
    ids=["board", "low-level", "MCPServer", "FastMCP"],
)
def test_who_may_not_see_a_tool_is_answered_as_if_it_did_not_exist(make: Callable[[], Any]) -> None:
    with served(asgi_app(make(), HostGuard(), auth=AUTH)) as address:
        url = f"{address}/mcp"

        def called(key: str, name: str, *, directly: bool = False) -> str:
            inner: dict[str, Any] = {"name": name, "arguments": {"name": "Eve"}}
            outer: dict[str, Any] = {"name": "call_tool", "arguments": inner}
            return ask(url, key, "tools/call", **(inner if directly else outer)).text

        assert "Hello Eve" in called("a", "greet")
        assert "Hello Eve" in called("a", "greet", directly=True)
        for directly in (False, True):
            hidden = called("b", "greet", directly=directly)
            assert "Hello" not in hidden
            assert hidden.replace("greet", "zebra") == called("b", "zebra", directly=directly)
        arguments = {"query": "say hello to somebody"}
        found = ask(url, "b", "tools/call", name="search_tools", arguments=arguments).text
        assert "greet(" not in found
        assert "1 tools" in ask(url, "b", "tools/list").text
        described = ask(url, "b", "tools/describe", names=["greet"]).json()
        assert described["error"]["data"]["unknownNames"] == ["greet"]


@pytest.mark.anyio
async def test_a_policy_holds_for_python_callers_too() -> None:
    board = Pegboard(policy=Policy([Rule(principals=("ann",))], default="deny"))

    @board.tool
    def secret() -> str:
        """Tell it."""
        return "42"

    assert (await board.call("secret", caller=Caller("ann"))).output == {"result": "42"}
    with pytest.raises(ToolNotFound):
        await board.call("secret", caller=Caller("bob"))
    with pytest.raises(ToolNotFound):
        await board.dispatch(ToolCall(board.find("secret"), {}, caller=Caller("bob")))
