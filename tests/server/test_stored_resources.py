"""Large images and files over real clients: a link in the result, the bytes by `resources/read`."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import mcp_types as t
import pytest
from mcp import Client
from mcp.server.mcpserver import Image, MCPServer
from mcp.shared.exceptions import MCPError
from tests.gateway.support import client_of, running
from tests.upstream.servers.everything import Answer, Context, Everything, Params
from tests.upstream.support import in_memory, memory

from pegboard import Pegboard, attach
from pegboard.config.settings import ResultSettings, Settings
from pegboard.core.calls import Caller
from pegboard.core.json import JsonObject
from pegboard.errors import InvalidArguments
from pegboard.server.serving import build_server

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["legacy", "auto"])
SMALL, LARGE = bytes(100), bytes(range(256)) * 20


def blocks() -> list[t.ContentBlock]:
    def image(data: bytes) -> t.ImageContent:
        text = base64.b64encode(data).decode()
        return t.ImageContent(type="image", data=text, mime_type="image/png")

    return [t.TextContent(type="text", text="two pictures"), image(SMALL), image(LARGE)]


class Painter(Everything):
    def __init__(self) -> None:
        super().__init__()
        self.tools = {"paint": self.paint}

    async def paint(self, ctx: Context, p: Params) -> Answer:
        return t.CallToolResult(content=blocks())


def painting_board(**options: Any) -> Pegboard:
    board = Pegboard(mode="proxy", spill_bytes=1000, **options)

    @board.tool
    def paint() -> list[t.ContentBlock]:
        """Paint two pictures."""
        return blocks()

    return board


async def painted(client: Client, name: str, **more: Any) -> list[t.ContentBlock]:
    call = {"name": name, "arguments": {}, **more}
    return (await client.call_tool("call_tool", call)).content


async def check(client: Client, content: list[t.ContentBlock]) -> t.ResourceLink:
    """That the small picture is there and the large one can be fetched."""
    text, small, link = content
    assert isinstance(text, t.TextContent)
    assert isinstance(small, t.ImageContent)
    assert isinstance(link, t.ResourceLink)
    assert (link.mime_type, link.size) == ("image/png", len(LARGE))
    read = await client.read_resource(link.uri)
    (contents,) = read.contents
    assert isinstance(contents, t.BlobResourceContents)
    assert contents.mime_type == "image/png"
    assert base64.b64decode(contents.blob) == LARGE
    return link


@ERAS
async def test_a_board_keeps_a_large_picture_as_a_resource(era: str) -> None:
    async with Client(build_server(painting_board()), mode=era, cache=None) as client:
        assert client.server_capabilities.resources is not None
        await check(client, await painted(client, "paint"))
        assert (await client.list_resources()).resources == []
        assert (await client.list_resource_templates()).resource_templates == []


@ERAS
async def test_a_gateway_keeps_a_large_picture_as_a_resource(era: str, tmp_path: Path) -> None:
    settings = Settings(mode="proxy", risk="single", results=ResultSettings(spill_bytes=1000))
    wires = memory({"p": (Painter(), "modern")})
    async with (
        running([in_memory("p")], tmp_path, settings=settings, open_transport=wires) as gateway,
        client_of(gateway, "modern" if era == "auto" else era) as client,
    ):
        await check(client, await painted(client, "p_paint"))
        (theirs,) = (await client.list_resources()).resources
        assert (await client.read_resource(theirs.uri)).contents, "a server's own are still read"


@ERAS
async def test_an_attached_server_keeps_a_large_picture_as_a_resource(era: str) -> None:
    server = MCPServer("painter")

    @server.tool()
    def paint() -> Any:
        """Paint two pictures."""
        return ["two pictures", Image(data=SMALL, format="png"), Image(data=LARGE, format="png")]

    @server.resource("memo://a")
    def memo() -> str:
        return "a memo"

    attach(server, mode="proxy", spill_bytes=1000)
    async with Client(server, mode=era, cache=None) as client:
        await check(client, await painted(client, "paint"))
        assert [str(r.uri) for r in (await client.list_resources()).resources] == ["memo://a"]
        assert (await client.read_resource("memo://a")).contents


async def test_reading_a_picture_as_text_says_how_it_is_read() -> None:
    async with Client(build_server(painting_board()), cache=None) as client:
        link = await check(client, await painted(client, "paint"))
        handle = str(link.uri).rpartition("/")[2]
        assert len(handle) == 32
        (page,) = (await client.call_tool("read_result", {"handle": handle})).content
        assert isinstance(page, t.TextContent)
        told: JsonObject = json.loads(page.text)
        assert told["uri"] == str(link.uri)
        assert "resources/read" in told["note"]
        assert "max_tokens=0" in told["note"]


async def test_a_call_can_ask_for_everything_in_the_result() -> None:
    async with Client(build_server(painting_board()), cache=None) as client:
        content = await painted(client, "paint", max_tokens=0)
        assert [block.type for block in content] == ["text", "image", "image"]


async def test_a_long_text_beside_an_image_is_stored_too_and_the_link_stays() -> None:
    board = Pegboard(mode="proxy", spill_bytes=1000, spill_tokens=100)

    @board.tool
    def paint() -> list[t.ContentBlock]:
        """Paint, and talk about it."""
        return [t.TextContent(type="text", text="and so on " * 1000), *blocks()[2:]]

    async with Client(build_server(board), cache=None) as client:
        notice, link = await painted(client, "paint")
        assert isinstance(notice, t.TextContent)
        assert isinstance(link, t.ResourceLink)
        handle = json.loads(notice.text)["handle"]
        whole = await client.read_resource(f"pegboard://results/{handle}")
        (contents,) = whole.contents
        assert isinstance(contents, t.TextResourceContents)
        assert contents.text == "and so on " * 1000


async def test_a_stored_image_is_only_for_its_caller_until_it_expires() -> None:
    board = painting_board(spill_ttl=60.0)
    ann, bob = Caller("ann", mode="proxy"), Caller("bob", mode="proxy")
    result = await board.call("paint", caller=ann)
    uri = result.content[2]["uri"]
    read = (await board.view(ann)).read_resource
    assert read is not None
    assert (await read(uri, ann))["mimeType"] == "image/png"
    unknown = "pegboard://results/" + "0" * 32
    for other, wrong in ((bob, uri), (ann, unknown), (ann, "pegboard://results/")):
        with pytest.raises(InvalidArguments, match="Unknown or expired"):
            await read(wrong, other)
    async with Client(build_server(board), cache=None) as client:
        with pytest.raises(MCPError, match="Unknown or expired resource"):
            await client.read_resource(uri)


async def test_nothing_is_stored_where_storing_is_switched_off() -> None:
    board = painting_board(spill_tokens=None)
    async with Client(build_server(board), cache=None) as client:
        content = await painted(client, "paint")
        assert [block.type for block in content] == ["text", "image", "image"]
        assert client.server_capabilities.resources is None
        with pytest.raises(MCPError):
            await client.read_resource("pegboard://results/" + "0" * 32)
