"""What comes back through meta-tools: pictures as content blocks, upstream errors as results."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import mcp_types as t
import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from tests.gateway.support import client_of, everything_behind, running, said
from tests.upstream.servers.everything import Context, Everything, Params, text
from tests.upstream.support import in_memory, memory

from pegboard import attach, count_tokens
from pegboard.config.settings import ResultSettings, Settings

pytestmark = pytest.mark.anyio

PNG = base64.b64encode(bytes(range(256)) * 1_875).decode()
"""480,000 bytes, which as text were more than 400,000 tokens."""
SQL_ERROR = 'near "FORM": syntax error'


def picture(data: str = PNG) -> t.ImageContent:
    return t.ImageContent(type="image", data=data, mime_type="image/png")


class Studio(Everything):
    """Everything, with tools that draw and one that talks to a database."""

    def __init__(self) -> None:
        super().__init__()
        for tool in (self.draw, self.draw_badly, self.query, self.rant):
            self.tools[tool.__name__] = tool

    async def draw(self, ctx: Context, p: Params) -> t.CallToolResult:
        content: list[Any] = [t.TextContent(type="text", text="a picture"), picture()]
        return t.CallToolResult(content=content, structured_content={"width": 8})

    async def draw_badly(self, ctx: Context, p: Params) -> t.CallToolResult:
        said = t.TextContent(type="text", text="out of ink")
        return t.CallToolResult(content=[said, picture("aGk=")], is_error=True)

    async def query(self, ctx: Context, p: Params) -> t.CallToolResult:
        raise MCPError(-32603, SQL_ERROR, {"position": 7})

    async def rant(self, ctx: Context, p: Params) -> t.CallToolResult:
        raise MCPError(-32000, "\x1b[31mno\u200b" + "!" * 50_000, {"stack": "x" * 50_000})


def studio(folder: Path, mode: str = "proxy", **results: Any) -> Any:
    limits = ResultSettings(**results)
    settings = Settings(mode=mode, risk="single", results=limits)  # pyright: ignore[reportArgumentType]
    wires = memory({"e": (Studio(), "legacy")})
    return running([in_memory("e")], folder, settings=settings, open_transport=wires)


async def call(client: Client, tool: str, names: list[str], **more: Any) -> t.CallToolResult:
    key = "params" if tool.startswith("tools_") else "arguments"
    calls = [{"name": name, key: {}, **more} for name in names]
    return await client.call_tool(tool, {"calls": calls})


@pytest.mark.parametrize(
    ("mode", "tool"),
    [
        ("proxy", "call_tools"),
        ("hierarchy", "tools_dispatch"),
        ("index", "tools_dispatch_parallel"),
    ],
)
async def test_a_fan_out_returns_pictures_as_content_blocks(
    tmp_path: Path, mode: str, tool: str
) -> None:
    async with studio(tmp_path, mode) as gateway, client_of(gateway, "legacy") as client:
        result = await call(client, tool, ["echo", "draw", "rich"])
    first, *blocks = result.content
    assert isinstance(first, t.TextContent)
    assert count_tokens(first.text) < 400
    _, drawn, rich = json.loads(first.text)["results"]
    assert (drawn["ok"], drawn["result"]) == (True, {"width": 8})
    assert drawn["attachments"] == [{"block": 1, "type": "image", "mimeType": "image/png"}]
    assert [a["block"] for a in rich["attachments"]] == [2, 3, 4, 5]
    assert rich["result"] == ""
    assert [b.type for b in blocks] == ["image", "image", "audio", "resource_link", "resource"]
    assert blocks[0] == picture()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("call_tool", {"name": "draw"}),
        ("invoke_tool", {"toolName": "draw", "args": {}}),
        ("tools_dispatch_parallel", {"tool": "draw"}),
    ],
)
async def test_a_single_call_returns_pictures_as_content_blocks(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    if tool == "tools_dispatch_parallel":
        arguments = {"calls": [arguments]}
    async with studio(tmp_path) as gateway, client_of(gateway, "modern") as client:
        result = await client.call_tool(tool, arguments)
    assert picture() in result.content
    assert count_tokens(said(result)) < 200


async def test_a_failed_call_of_a_fan_out_has_its_picture_too(tmp_path: Path) -> None:
    async with studio(tmp_path) as gateway, client_of(gateway, "legacy") as client:
        result = await call(client, "call_tools", ["draw_badly"])
    (outcome,) = json.loads(said(result))["results"]
    assert (outcome["ok"], outcome["error"]["message"]) == (False, "out of ink")
    assert outcome["attachments"] == [{"block": 1, "type": "image", "mimeType": "image/png"}]
    assert result.content[1] == picture("aGk=")


async def test_the_pictures_of_a_fan_out_share_one_budget(tmp_path: Path) -> None:
    """Each is within `spill_bytes`; all together are not."""
    async with studio(tmp_path) as gateway, client_of(gateway, "legacy") as client:
        result = await call(client, "call_tools", ["draw"] * 4)
        first, *blocks = result.content
        assert [b.type for b in blocks] == ["image", "image", "resource_link", "resource_link"]
        link = blocks[-1]
        assert isinstance(link, t.ResourceLink)
        (contents,) = (await client.read_resource(str(link.uri))).contents
        assert isinstance(contents, t.BlobResourceContents)
        assert contents.blob == PNG
        assert isinstance(first, t.TextContent)
        last = json.loads(first.text)["results"][-1]
        assert last["attachments"] == [
            {"block": 4, "type": "resource_link", "mimeType": "image/png"}
        ]
        whole = await call(client, "call_tools", ["draw"] * 4, max_tokens=0)
        assert [b.type for b in whole.content[1:]] == ["image"] * 4, "asked for in full"


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("call_tool", {"name": "query"}),
        ("invoke_tool", {"toolName": "query", "args": {}}),
        ("tools_dispatch_parallel", {"calls": [{"tool": "query"}]}),
    ],
)
async def test_an_upstream_error_through_a_meta_tool_is_a_result(
    tmp_path: Path, era: str, tool: str, arguments: dict[str, Any]
) -> None:
    async with studio(tmp_path) as gateway, client_of(gateway, era) as client:
        result = await client.call_tool(tool, arguments)
    assert SQL_ERROR in said(result).replace('\\"', '"')
    if "calls" in arguments:
        error = json.loads(said(result))["results"][0]["error"]
    else:
        assert result.is_error
        assert result.structured_content is not None
        error = result.structured_content["error"]
    assert (error["code"], error["data"]) == (-32603, {"position": 7})
    assert (error["kind"], error["tool"]) == ("upstream_error", "e_query")


async def test_an_upstream_error_of_a_direct_call_is_relayed(tmp_path: Path) -> None:
    async with studio(tmp_path) as gateway, client_of(gateway, "legacy") as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("query", {})
    assert (caught.value.code, caught.value.message) == (-32603, SQL_ERROR)
    assert caught.value.data == {"position": 7}


async def test_an_upstream_error_through_a_meta_tool_is_cleaned_and_bounded(
    tmp_path: Path,
) -> None:
    async with studio(tmp_path) as gateway, client_of(gateway, "legacy") as client:
        result = await client.call_tool("call_tool", {"name": "rant"})
    assert said(result).startswith("no!!!")
    assert said(result).endswith("more characters)")
    assert len(json.dumps(result.structured_content)) < 6_000


async def test_the_demand_to_visit_a_page_stays_an_error_that_clients_act_on(
    tmp_path: Path,
) -> None:
    async with everything_behind("legacy", "legacy", tmp_path, mode="proxy") as (_, client, _g):
        with pytest.raises(MCPError) as caught:
            await client.call_tool("call_destructive_tool", {"name": "page_first"})
        assert caught.value.code == -32042
        again = await client.call_tool("call_destructive_tool", {"name": "page_first"})
        assert again.content == text("welcome").content


async def test_an_error_of_an_attached_server_is_a_result_behind_a_meta_tool() -> None:
    server = MCPServer("db")

    @server.tool()
    def query(sql: str) -> str:
        """Run a statement."""
        raise MCPError(-32603, SQL_ERROR, {"position": 7})

    attach(server, mode="proxy")
    async with Client(server) as client:
        one: dict[str, Any] = {"name": "query", "arguments": {"sql": "SELECT * FORM t"}}
        result = await client.call_tool("call_tool", one)
        assert result.is_error
        assert said(result) == SQL_ERROR
        several = await client.call_tool("call_tools", {"calls": [one]})
        assert json.loads(said(several))["results"][0]["error"]["message"] == SQL_ERROR
        with pytest.raises(MCPError, match="syntax error"):
            await client.call_tool("query", one["arguments"])
