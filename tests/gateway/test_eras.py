"""What a gateway must carry, in all four pairs of eras, by the tool's name and by `call_tool`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types as t
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from tests.gateway.support import everything_behind, said
from tests.upstream.test_eras import PAIRS, answer_form, draw, list_roots
from tests.upstream.test_passthrough import Log

pytestmark = pytest.mark.anyio


async def by_name(client: Client, tool: str, arguments: Any, **more: Any) -> t.CallToolResult:
    return await client.call_tool(f"e_{tool}", arguments, **more)


async def by_meta_tool(client: Client, tool: str, arguments: Any, **more: Any) -> t.CallToolResult:
    given = {"name": f"e_{tool}", "arguments": arguments}
    return await client.call_tool("call_destructive_tool", given, **more)


WAYS = pytest.mark.parametrize(
    ("call", "mode"), [(by_name, "eager"), (by_meta_tool, "proxy")], ids=["name", "call_tool"]
)
Way = Callable[..., Any]


@PAIRS
@WAYS
async def test_arguments_and_result_meta_arrive_whole(
    client_era: str, server: str, call: Way, mode: str, tmp_path: Path
) -> None:
    async with everything_behind(server, client_era, tmp_path, mode=mode) as (_, client, _g):
        meta: Any = {"traceparent": "00-1-2-01"}
        result = await call(client, "echo", {"a": [None, 1.5]}, meta=meta)
        seen: Any = result.structured_content
        assert seen["arguments"] == {"a": [None, 1.5]}
        assert seen["meta"]["traceparent"] == "00-1-2-01"
        assert (result.meta or {})["example.test/kept"] == [1, None]


@PAIRS
@WAYS
async def test_questions_of_the_server_are_answered_by_the_client(
    client_era: str, server: str, call: Way, mode: str, tmp_path: Path
) -> None:
    callbacks: Any = {
        "elicitation_callback": answer_form,
        "sampling_callback": draw,
        "list_roots_callback": list_roots,
    }
    async with everything_behind(server, client_era, tmp_path, mode=mode, **callbacks) as (
        _,
        client,
        _,
    ):
        assert said(await call(client, "ask", {})) == "accept {'name': 'e asks: your name?'}"
        assert said(await call(client, "ask_twice", {})) == "first=e asks: one? second=e asks: two?"
        sampled: Any = (await call(client, "sample", {})).structured_content
        assert (sampled["model"], sampled["content"]["type"]) == ("m-1", "image")
        assert said(await call(client, "roots", {})) == "file:///work"


@PAIRS
@WAYS
async def test_a_page_to_visit_reaches_the_client(
    client_era: str, server: str, call: Way, mode: str, tmp_path: Path
) -> None:
    visited: list[str] = []

    async def visit(context: Any, params: Any) -> t.ElicitResult:
        visited.append(params.url)
        return t.ElicitResult(action="accept")

    through = everything_behind(server, client_era, tmp_path, mode=mode, elicitation_callback=visit)
    async with through as (_, client, _g):
        assert said(await call(client, "ask_page", {})) == "accept"
    assert visited == ["https://example.test/login"]


@PAIRS
@WAYS
async def test_progress_and_cancellation_pass(
    client_era: str, server: str, call: Way, mode: str, tmp_path: Path
) -> None:
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async with everything_behind(server, client_era, tmp_path, mode=mode) as (it, client, _g):
        await call(client, "progress", {}, progress_callback=hear)
        assert heard == [1.0, 2.0, 3.0]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, client, "wait", {})
            await it.started.wait()
            tasks.cancel_scope.cancel()
        await it.cancelled.wait()


@PAIRS
@WAYS
async def test_an_error_of_the_server_keeps_its_code_and_data(
    client_era: str, server: str, call: Way, mode: str, tmp_path: Path
) -> None:
    """As a JSON-RPC error of a direct call, and as a result of one through a meta-tool."""
    async with everything_behind(server, client_era, tmp_path, mode=mode) as (_, client, _g):
        if mode == "eager":
            with pytest.raises(MCPError) as caught:
                await call(client, "fail", {})
            error = caught.value.error.model_dump()
        else:
            result = await call(client, "fail", {})
            assert result.is_error
            error = result.structured_content["error"]
        assert (error["code"], error["message"]) == (-32123, "it broke")
        assert error["data"] == {"why": ["rust"]}


@PAIRS
@WAYS
async def test_rich_content_passes_as_it_is(
    client_era: str, server: str, call: Way, mode: str, tmp_path: Path
) -> None:
    async with everything_behind(server, client_era, tmp_path, mode=mode) as (_, client, _g):
        result = await call(client, "rich", {})
        assert [b.type for b in result.content] == ["image", "audio", "resource_link", "resource"]


@PAIRS
async def test_log_messages_reach_the_client(client_era: str, server: str, tmp_path: Path) -> None:
    log = Log()
    async with everything_behind(server, client_era, tmp_path, logging_callback=log) as (
        _,
        client,
        _g,
    ):
        meta: Any = {"io.modelcontextprotocol/logLevel": "error"}
        await client.call_tool("e_log", {}, meta=meta if client_era == "modern" else None)
        assert ("error", {"at": ["error"]}) in log.heard


@PAIRS
async def test_resources_prompts_and_completions_are_those_of_the_server(
    client_era: str, server: str, tmp_path: Path
) -> None:
    async with everything_behind(server, client_era, tmp_path) as (_, client, _g):
        assert [r.name for r in (await client.list_resources()).resources] == ["a"]
        templates = (await client.list_resource_templates()).resource_templates
        assert [r.name for r in templates] == ["thing"]
        read: Any = (await client.read_resource("mem://a")).contents[0]
        assert read.text == "read mem://a"
        assert [p.name for p in (await client.list_prompts()).prompts] == ["e.greet"]
        prompt: Any = (await client.get_prompt("e.greet", {"x": "1"})).messages[0]
        assert prompt.content.text == "greet {'x': '1'}"
        reference = t.PromptReference(type="ref/prompt", name="e.greet")
        completed = await client.complete(reference, {"name": "x", "value": "v"})
        assert completed.completion.values == ["greet v"]


@pytest.mark.parametrize("server", ["legacy", "modern"])
async def test_a_legacy_client_is_notified_of_new_tools(server: str, tmp_path: Path) -> None:
    told = anyio.Event()

    async def note(message: object) -> None:
        if isinstance(message, t.ToolListChangedNotification):
            told.set()

    async with everything_behind(server, "legacy", tmp_path, message_handler=note) as (
        _,
        client,
        _,
    ):
        assert "e_new" not in {tool.name for tool in (await client.list_tools()).tools}
        await client.call_tool("e_change_tools", {})
        await told.wait()
        assert "e_new" in {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("server", ["legacy", "modern"])
async def test_a_modern_client_that_listens_is_notified_of_new_tools(
    server: str, tmp_path: Path
) -> None:
    async with (
        everything_behind(server, "modern", tmp_path) as (_, client, _g),
        client.listen(tools_list_changed=True) as changes,
    ):
        await client.call_tool("e_change_tools", {})
        async for change in changes:
            assert type(change).__name__ == "ToolsListChanged"
            break
        assert "e_new" in {tool.name for tool in (await client.list_tools()).tools}
