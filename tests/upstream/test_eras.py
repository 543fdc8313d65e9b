"""Everything a relay must carry, in all four pairs of eras (client_era, server)."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as t
import pytest
from mcp.shared.exceptions import MCPError
from pydantic import FileUrl
from tests.upstream.support import everything_behind, said

pytestmark = pytest.mark.anyio

PAIRS = pytest.mark.parametrize(
    ("client_era", "server"),
    [("legacy", "legacy"), ("modern", "modern"), ("legacy", "modern"), ("modern", "legacy")],
)


async def answer_form(context: Any, params: Any) -> t.ElicitResult:
    return t.ElicitResult(action="accept", content={"name": params.message})


async def draw(context: Any, params: Any) -> t.CreateMessageResult:
    assert params.messages[0].content.text == "draw"
    image = t.ImageContent(type="image", data="aGk=", mime_type="image/png")
    return t.CreateMessageResult(
        role="assistant", content=image, model="m-1", stop_reason="endTurn"
    )


async def list_roots(context: Any) -> t.ListRootsResult:
    return t.ListRootsResult(roots=[t.Root(uri=FileUrl("file:///work"))])


@PAIRS
async def test_arguments_request_meta_and_result_meta_arrive_whole(
    client_era: str, server: str
) -> None:
    async with everything_behind(server, client_era) as (_, client, _gateway):
        meta: Any = {"traceparent": "00-1-2-01", "example.test/x": {"deep": [1]}}
        result = await client.call_tool("e.echo", {"a": [None, 1.5]}, meta=meta)
        seen: Any = result.structured_content
        assert seen["arguments"] == {"a": [None, 1.5]}
        assert seen["meta"]["traceparent"] == "00-1-2-01"
        assert seen["meta"]["example.test/x"] == {"deep": [1]}
        assert (result.meta or {})["example.test/kept"] == [1, None]


@PAIRS
async def test_the_envelope_of_one_side_never_reaches_the_other(
    client_era: str, server: str
) -> None:
    async with everything_behind(server, client_era) as (_, client, _gateway):
        result = await client.call_tool("e.echo", {}, meta={"keep/this": 1})  # pyright: ignore[reportArgumentType]
        seen: Any = result.structured_content
        version = seen["meta"].get("io.modelcontextprotocol/protocolVersion")
        assert version == ("2026-07-28" if server == "modern" else None)
        info = (result.meta or {}).get("io.modelcontextprotocol/serverInfo")
        both_modern = client_era == server == "modern"
        assert info == ({"name": "everything", "version": "1.2.3"} if both_modern else None)


@PAIRS
async def test_a_form_is_answered_by_the_client(client_era: str, server: str) -> None:
    async with everything_behind(server, client_era, elicitation_callback=answer_form) as (
        _,
        client,
        _gateway,
    ):
        assert said(await client.call_tool("e.ask", {})) == "accept {'name': 'e asks: your name?'}"


@PAIRS
async def test_several_rounds_of_questions_are_one_call(client_era: str, server: str) -> None:
    async with everything_behind(server, client_era, elicitation_callback=answer_form) as (
        _,
        client,
        _gateway,
    ):
        assert (
            said(await client.call_tool("e.ask_twice", {}))
            == "first=e asks: one? second=e asks: two?"
        )


@PAIRS
async def test_a_page_to_visit_reaches_the_client(client_era: str, server: str) -> None:
    visited: list[str] = []

    async def visit(context: Any, params: Any) -> t.ElicitResult:
        visited.append(params.url)
        return t.ElicitResult(action="accept")

    async with everything_behind(server, client_era, elicitation_callback=visit) as (_, client, _g):
        assert said(await client.call_tool("e.ask_page", {})) == "accept"
    assert visited == ["https://example.test/login"]


@PAIRS
async def test_sampling_keeps_image_model_and_stop_reason(client_era: str, server: str) -> None:
    async with everything_behind(server, client_era, sampling_callback=draw) as (_, client, _g):
        kept: Any = (await client.call_tool("e.sample", {})).structured_content
        assert kept["content"] == {"type": "image", "data": "aGk=", "mimeType": "image/png"}
        assert (kept["model"], kept["stopReason"]) == ("m-1", "endTurn")


@PAIRS
async def test_roots_are_those_of_the_client(client_era: str, server: str) -> None:
    async with everything_behind(server, client_era, list_roots_callback=list_roots) as (
        _,
        client,
        _g,
    ):
        assert said(await client.call_tool("e.roots", {})) == "file:///work"


@PAIRS
async def test_progress_carries_the_clients_own_token(client_era: str, server: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with everything_behind(server, client_era) as (_, client, _g):
        await client.call_tool("e.progress", {}, progress_callback=hear)
    assert heard == [(1.0, 3.0, "step 1"), (2.0, 3.0, "step 2"), (3.0, 3.0, "step 3")]


@PAIRS
async def test_cancelling_reaches_the_server(client_era: str, server: str) -> None:
    async with everything_behind(server, client_era) as (it, client, _g):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "e.wait", {})
            await it.started.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(5):
            await it.cancelled.wait()
        assert said(await client.call_tool("e.echo", {})) == "echo"


@PAIRS
async def test_an_error_keeps_its_code_and_data(client_era: str, server: str) -> None:
    async with everything_behind(server, client_era) as (_, client, _g):
        with pytest.raises(MCPError, match="it broke") as caught:
            await client.call_tool("e.fail", {})
        assert (caught.value.code, caught.value.data) == (-32123, {"why": ["rust"]})


@PAIRS
async def test_rich_content_is_relayed_as_it_came(client_era: str, server: str) -> None:
    async with everything_behind(server, client_era) as (_, client, _g):
        result = await client.call_tool("e.rich", {})
        kinds = [block.type for block in result.content]
        assert kinds == ["image", "audio", "resource_link", "resource"]


@PAIRS
async def test_a_refused_input_request_is_reported_to_the_server(
    client_era: str, server: str
) -> None:
    async def decline(context: Any, params: Any) -> t.ElicitResult:
        return t.ElicitResult(action="decline")

    async with everything_behind(server, client_era, elicitation_callback=decline) as (
        _,
        client,
        _g,
    ):
        assert said(await client.call_tool("e.ask", {})) == "decline None"


@PAIRS
async def test_a_server_gets_the_capabilities_of_the_client(client_era: str, server: str) -> None:
    """Without the capability a server must not ask; a legacy one that does is refused."""
    async with everything_behind(server, client_era) as (_, client, _g):
        if server == "legacy":
            with pytest.raises(MCPError):
                await client.call_tool("e.ask", {})
        else:
            declared: Any = (await client.call_tool("e.echo", {})).structured_content
            capabilities = declared["meta"]["io.modelcontextprotocol/clientCapabilities"]
            assert "elicitation" not in capabilities
