"""What a gateway announces for its servers, and what it relays of tasks and extensions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mcp_types as t
import pytest
from tests.gateway.support import client_of, entry, everything_behind, searched, served

from pegboard.core.tools import parse_execution

pytestmark = pytest.mark.anyio

UI = "io.modelcontextprotocol/ui"
TASKS = "io.modelcontextprotocol/tasks"
SCHEMA = {"inputSchema": {"type": "object"}}
EVERY_KIND: Any = [
    {"name": "long", "execution": {"taskSupport": "required"}, **SCHEMA},
    {"name": "odd", "execution": {"taskSupport": "sometimes"}, **SCHEMA},
    {"name": "broken", "execution": "yes", **SCHEMA},
    {"name": "plain", **SCHEMA},
]


def declared(**capabilities: Any) -> dict[str, Any]:
    greeting = {"capabilities": {"tools": {}, **capabilities}}
    return entry("declared", json.dumps(greeting), json.dumps(EVERY_KIND))


async def test_a_first_start_announces_all_that_a_server_may_turn_out_to_have(
    tmp_path: Path,
) -> None:
    """Clients read the capabilities once; a strict one then refuses to ask for anything else."""
    servers = {"d": declared(logging={})}
    async with served(tmp_path, servers) as client:
        first = client.server_capabilities
        assert None not in (first.prompts, first.resources, first.completions, first.logging)
        assert (first.tasks, first.prompts) == (None, t.PromptsCapability(list_changed=True))
        assert (await client.list_prompts()).prompts == []
        await searched(client, "anything")  # waits for the server, which is known from now on
    async with served(tmp_path, servers) as client:
        known = client.server_capabilities
        assert (known.prompts, known.completions) == (None, None)
        assert known.logging is not None


async def test_how_a_tool_is_run_is_listed_unless_a_client_would_refuse_it(tmp_path: Path) -> None:
    async with served(tmp_path, {"d": declared()}, "--mode", "eager") as client:
        tools = {tool.name: tool.execution for tool in (await client.list_tools()).tools}
    assert tools.pop("d_long") == t.ToolExecution(task_support="required")
    assert set(tools) == {"d_odd", "d_broken", "d_plain"}
    assert all(e is None or e.task_support is None for e in tools.values())


async def test_a_stub_says_how_its_tool_is_run(tmp_path: Path) -> None:
    async with served(tmp_path, {"d": declared()}, "--mode", "stub") as client:
        tools = {tool.name: tool.execution for tool in (await client.list_tools()).tools}
    assert tools["d_long"] == t.ToolExecution(task_support="required")


def test_only_known_values_of_task_support_pass() -> None:
    assert parse_execution({"execution": {"taskSupport": "sometimes", "more": 1}}) == {"more": 1}
    assert parse_execution({"execution": {"taskSupport": ["required"]}}) == {}
    assert parse_execution({"execution": None}) == {}


@pytest.mark.parametrize("client_era", ["legacy", "modern"])
async def test_tasks_and_extensions_of_servers_are_announced(
    tmp_path: Path, client_era: str
) -> None:
    """Those that work through a gateway, as the first server has them."""
    settings = {"mimeTypes": ["text/html;profile=mcp-app"]}
    told = {UI: settings, "com.example/other": {}}
    servers = {
        "a": declared(tasks={"list": {}, "requests": {"tools": {"call": {}}}}, extensions=told),
        "b": declared(extensions={TASKS: {}, UI: {"mimeTypes": ["other"]}}),
    }
    async with served(tmp_path, servers) as client:
        await searched(client, "anything")  # waits for the servers
    async with served(tmp_path, servers, era=client_era) as client:
        known = client.server_capabilities
    shown = (known.extensions if client_era == "modern" else known.experimental) or {}
    assert {name: shown[name] for name in shown if "pegboard" not in name} == {
        UI: settings,
        TASKS: {},
    }
    assert "io.github.pegboard/lazy-tools" in shown
    if client_era == "legacy":
        assert known.tasks is not None
        assert known.tasks.list is None, "which would have to ask every server"


async def test_a_modern_client_reads_which_server_answered(tmp_path: Path) -> None:
    async with everything_behind("modern", "modern", tmp_path, mode="proxy") as (_, client, _g):
        result = await client.call_tool("call_destructive_tool", {"name": "echo"})
        answered = (result.meta or {})["io.modelcontextprotocol/serverInfo"]
        assert answered == {"name": "everything", "version": "1.2.3"}
        listed = await client.list_tools()
        ours = (listed.meta or {})["io.modelcontextprotocol/serverInfo"]
        assert ours["name"] == "pegboard"


async def test_a_first_look_that_ends_is_seen_by_the_next_client(tmp_path: Path) -> None:
    async with everything_behind("legacy", "legacy", tmp_path) as (_, first, gateway):
        assert gateway.knows_all_servers
        async with client_of(gateway, "modern") as second:
            for client in (first, second):
                assert client.server_capabilities.tasks is None
                assert client.server_capabilities.prompts is not None
