"""`attach`: an existing server made lazy in one line, whatever kind of server it is."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from fastmcp import FastMCP
from mcp.server.lowlevel.server import Server
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel
from tests.conformance.clients import Era, Target, Transcript, play_python, served
from tests.conformance.scenarios import LISTING, call, request

from pegboard import ConfigError, attach
from pegboard.server import mcp_private

ERAS: tuple[Era, ...] = ("legacy", "modern")


class Weather(BaseModel):
    """What the forecast says."""

    city: str
    degrees: float


def forecast(city: str, days: int = 1) -> Weather:
    """Say how warm it will be."""
    return Weather(city=city, degrees=20.5 + days)


def greet(name: str) -> str:
    """Say hello to somebody."""
    if not name:
        raise ValueError("A greeting needs a name.")
    return f"Hello {name}"


def mcp_server() -> MCPServer:
    server = MCPServer("weather", version="3.0")
    server.add_tool(forecast, annotations=types.ToolAnnotations(read_only_hint=True))
    server.add_tool(greet, title="Greeting")
    return server


def fastmcp_server() -> FastMCP[Any]:
    server: FastMCP[Any] = FastMCP("weather", version="3.0")
    server.tool(forecast, annotations=types.ToolAnnotations(read_only_hint=True))
    server.tool(greet, title="Greeting")
    return server


def lowlevel_server() -> Server[Any]:
    tools = [
        types.Tool(
            name="forecast",
            description="Say how warm it will be.",
            input_schema={
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
            output_schema=Weather.model_json_schema(),
            annotations=types.ToolAnnotations(read_only_hint=True),
        ),
        types.Tool(
            name="greet",
            title="Greeting",
            description="Say hello to somebody.",
            input_schema={
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            },
        ),
    ]

    async def on_list(ctx: object, params: object) -> types.ListToolsResult:
        """Two pages, as a server may: everything must be found nevertheless."""
        cursor = getattr(params, "cursor", None)
        if cursor is None:
            return types.ListToolsResult(tools=tools[:1], next_cursor="more")
        return types.ListToolsResult(tools=tools[1:])

    async def on_call(ctx: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        if params.name == "forecast":
            value = forecast(**arguments).model_dump()
            text = types.TextContent(text=str(value))
            return types.CallToolResult(content=[text], structured_content=value)
        try:
            text = types.TextContent(text=greet(**arguments))
        except ValueError as exc:
            return types.CallToolResult(content=[types.TextContent(text=str(exc))], is_error=True)
        return types.CallToolResult(content=[text])

    return Server("weather", version="3.0", on_list_tools=on_list, on_call_tool=on_call)


KINDS: dict[str, Callable[[], Any]] = {
    "low-level": lowlevel_server,
    "MCPServer": mcp_server,
    "FastMCP": fastmcp_server,
}
pytestmark = pytest.mark.parametrize("kind", KINDS)


def play(server: Any, era: Era, **steps: Any) -> Transcript:
    target: Target = mcp_private.get_lowlevel_server(server)
    return play_python(target, era, steps)


@pytest.mark.parametrize("era", ERAS)
def test_an_attached_server_lists_meta_tools_finds_and_calls(kind: str, era: Era) -> None:
    server = KINDS[kind]()
    assert attach(server, mode="proxy") is server
    told = play(
        server,
        era,
        list=LISTING,
        search=call("search_tools", query="how warm will it be"),
        describe=request("tools/describe", names=["greet", "forecast"]),
        call=call("call_tool", name="forecast", arguments={"city": "Oslo"}),
        direct=call("forecast", city="Oslo", days=2),
        refused=call("call_tool", name="greet", arguments={"name": "Ada"}),
        written=call("call_write_tool", name="greet", arguments={"name": "Ada"}),
        unknown=call("forcast", city="Oslo"),
    )
    assert told["list"].names[:3] == ["search_tools", "call_tool", "call_write_tool"]
    assert told["search"].text.startswith("forecast(")
    assert [tool["name"] for tool in told["describe"].ok["tools"]] == ["greet", "forecast"]
    assert told["call"].ok["structuredContent"] == {"city": "Oslo", "degrees": 21.5}
    assert told["direct"].ok["structuredContent"] == {"city": "Oslo", "degrees": 22.5}
    assert told["refused"].mendable["expected"] == "call_write_tool"
    assert "Hello Ada" in told["written"].text
    assert told["unknown"].misuse["data"]["nearest"] == ["forecast"]


@pytest.mark.parametrize("era", ERAS)
def test_eager_lists_what_the_server_listed_but_for_relaxed_output(kind: str, era: Era) -> None:
    """One page instead of two; output schemas may only be loosened, for projected results."""
    more = request("tools/list", cursor="more")
    steps = {"list": LISTING} | ({"more": more} if kind == "low-level" else {})
    before = play(KINDS[kind](), era, **steps)
    after = play(attach(KINDS[kind](), mode="eager"), era, list=LISTING)
    listed = [tool for key in steps for tool in before[key].ok["tools"]]
    shown = {tool["name"]: tool for tool in after["list"].ok["tools"]}
    assert sorted(shown) == sorted(tool["name"] for tool in listed)
    for tool in listed:
        same = shown[tool["name"]]
        assert {k: v for k, v in same.items() if k != "outputSchema"} == {
            k: v for k, v in tool.items() if k != "outputSchema"
        }
        assert ("outputSchema" in same) == ("outputSchema" in tool)


@pytest.mark.parametrize("era", ERAS)
def test_direct_calls_answer_exactly_as_without_us(kind: str, era: Era) -> None:
    """Also for the server's own errors."""
    steps = {
        "good": call("forecast", city="Oslo"),
        "text": call("greet", name="Ada"),
        "raises": call("greet", name=""),
    }
    before = play(KINDS[kind](), era, list=LISTING, **steps)
    after = play(attach(KINDS[kind](), mode="eager"), era, list=LISTING, **steps)
    for key in steps:
        assert (after[key].result, after[key].error) == (before[key].result, before[key].error), key


@pytest.mark.parametrize("era", ERAS)
def test_what_the_server_tells_of_itself_stays(kind: str, era: Era) -> None:
    told = play(attach(KINDS[kind](), mode="proxy"), era, list=LISTING)
    assert told.info["serverInfo"]["name"] == "weather"
    place = "extensions" if era == "modern" else "experimental"
    assert "io.github.pegboard/lazy-tools" in told.info["capabilities"][place]


def test_an_attached_server_is_served_over_http_with_its_modes(kind: str) -> None:
    app = mcp_private.get_lowlevel_server(attach(KINDS[kind]())).streamable_http_app()
    with served(app) as url:
        for era in ERAS:
            told = play_python(f"{url}/mcp?mode=index", era, {"list": LISTING})
            assert told["list"].names == ["list_available_tools", "get_tool_description"]


def test_attaching_twice_is_refused(kind: str) -> None:
    server = attach(KINDS[kind]())
    with pytest.raises(ConfigError, match="has a Pegboard already"):
        attach(server)


def test_only_servers_can_be_attached_to(kind: str) -> None:
    with pytest.raises(ConfigError, match="Cannot attach to str"):
        attach(kind)
    with pytest.raises(ConfigError, match="Unknown mode 'prox'"):
        attach(KINDS[kind](), mode="prox")
    with pytest.raises(ConfigError, match=r"Unknown option 'pin'\. Did you mean 'pins'"):
        attach(KINDS[kind](), pin=["x"])


def test_the_index_of_an_attached_server_is_found_again(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path))

    def search() -> str:
        server = attach(KINDS[kind](), mode="proxy")
        told = play(server, "modern", search=call("search_tools", query="how warm will it be"))
        for thread in threading.enumerate():
            if thread.name == "pegboard-vectors":
                thread.join(20)
        return told["search"].text

    first = search()
    (kept,) = (tmp_path / "indexes").iterdir()
    os.utime(kept, (1, 1))
    assert search() == first
    assert kept.stat().st_mtime > 1  # it is touched when it is taken
    assert list((tmp_path / "indexes").iterdir()) == [kept]
