"""Invisible text of servers: nothing of it reaches a model, and nothing that is sent is altered."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import mcp_types as t
import pytest
from tests.gateway.support import client_of, entry, running, said, searched, served
from tests.upstream.servers import hostile_texts as hostile

from pegboard.config.settings import ResultSettings, Settings
from pegboard.upstream.spec import UpstreamSpec

pytestmark = pytest.mark.anyio

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\ufe00-\ufe0e\ufff9-\ufffb]")
TAGS = re.compile("[\U000e0000-\U000e0fff]")


def hidden_in(value: Any) -> list[str]:
    """What is hidden in a value as a client gets it, ordinary emoji left out."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text.replace(hostile.EMOJI, "")
    return CONTROLS.findall(text) + TAGS.findall(text)


def hostile_server(**more: Any) -> dict[str, Any]:
    return {"h": entry("hostile", **more)}


def wire(result: Any) -> Any:
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


def echoed(result: t.CallToolResult) -> Any:
    """What the server received."""
    return json.loads(said(result).replace(hostile.HIDDEN, ""))


@pytest.mark.parametrize("mode", ["eager", "index", "hierarchy", "proxy"])
async def test_no_list_and_no_search_shows_hidden_text(mode: str, tmp_path: Path) -> None:
    async with served(tmp_path, hostile_server(), "--mode", mode) as client:
        shown = [
            wire(await client.list_tools()),
            wire(await client.list_prompts()),
            wire(await client.list_resources()),
            wire(await client.list_resource_templates()),
        ]
        if mode == "proxy":
            shown.append(await searched(client, "echo what was received"))
            shown.append(await searched(client, "hidden name"))
            described = await client.call_tool("describe_tools", {"names": ["h_echo"]})
            shown.append(said(described))
            assert hostile.EMOJI in said(described)
        if mode == "index":
            for name in ("h_echo", "h.na\\u{200b}me"):
                given = {"tool_name": name}
                shown.append(wire(await client.call_tool("get_tool_description", given)))
        if mode == "hierarchy":
            listed = wire(await client.call_tool("tools_list_categories", {}))
            shown.append(listed)
    assert [found for one in shown if (found := hidden_in(one))] == []


async def test_names_and_values_are_spelled_out_and_arrive_as_they_were(tmp_path: Path) -> None:
    async with served(tmp_path, hostile_server(), "--mode", "eager") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        schema = tools["h_echo"].input_schema
        level = schema["properties"]["le\\u{200b}vel"]
        assert schema["required"] == ["le\\u{200b}vel"]
        assert level["enum"][1:] == ["low", hostile.EMOJI]
        assert level["default"] == level["examples"][0] == level["enum"][0]
        given = {
            "le\\u{200b}vel": level["enum"][0],
            "kind": schema["properties"]["kind"]["const"],
            "nested": {"in\\u{202e}ner": schema["$defs"]["Part"]["enum"][0]},
            "free": "spelled \\u{200b} by the caller",
        }
        result = await client.call_tool("h_echo", given)
        refused = await client.call_tool("h_echo", {"le\\u{200b}vel": "medium"})
    assert echoed(result)["arguments"] == {
        f"le{hostile.ZERO}vel": f"hi{hostile.TAGS}gh",
        "kind": f"fix{hostile.SELECTORS}ed",
        "nested": {f"in{hostile.BIDI}ner": f"a{hostile.ZERO}"},
        "free": "spelled \\u{200b} by the caller",
    }
    assert refused.is_error
    assert hidden_in(wire(refused)) == []


async def test_a_tool_with_a_hidden_name_is_called_by_the_name_that_its_server_gave(
    tmp_path: Path,
) -> None:
    async with served(tmp_path, hostile_server(), "--mode", "eager") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        name = next(n for n in names if n.startswith("h_na"))
        result = await client.call_tool(name, {})
    assert echoed(result)["name"] == hostile.TOOLS[1]["name"]


async def test_prompts_and_resources_arrive_under_the_server_s_names(tmp_path: Path) -> None:
    async with served(tmp_path, hostile_server(), "--mode", "proxy") as client:
        await client.call_tool("search_tools", {"query": "x"})  # waits for the server
        [prompt] = (await client.list_prompts()).prompts
        [argument] = prompt.arguments or []
        assert (prompt.name, argument.name) == ("h.gre\\u{200b}et", "wh\\u{200b}o")
        got = await client.get_prompt(prompt.name, {argument.name: "me"})
        ref = t.PromptReference(type="ref/prompt", name=prompt.name)
        completed = await client.complete(ref, {"name": argument.name, "value": "m"})
        [resource] = (await client.list_resources()).resources
        [template] = (await client.list_resource_templates()).resource_templates
        read = await client.read_resource(resource.uri)
        expanded = await client.read_resource(template.uri_template.replace("{id}", "7"))
    message = got.messages[0].content
    assert isinstance(message, t.TextContent)
    assert json.loads(message.text.replace(hostile.HIDDEN, "")) == {
        "name": f"gre{hostile.ZERO}et",
        "arguments": {f"wh{hostile.ZERO}o": "me"},
    }
    sent = json.loads(completed.completion.values[0])
    assert sent["argument"]["name"] == f"wh{hostile.ZERO}o"
    assert _uri(read) == f"memo://a{hostile.ZERO}b"
    assert _uri(expanded) == f"memo://t{hostile.ZERO}/7"


def _uri(read: t.ReadResourceResult) -> str:
    content = read.contents[0]
    assert isinstance(content, t.TextResourceContents)
    return json.loads(content.text.replace(hostile.HIDDEN, ""))["uri"]


@pytest.mark.parametrize("is_clean", [False, True])
async def test_results_are_relayed_as_they_came_unless_they_are_to_be_cleaned(
    is_clean: bool, tmp_path: Path
) -> None:
    settings = Settings(mode="eager", results=ResultSettings(clean=is_clean))
    command = entry("hostile")
    spec = UpstreamSpec("h", command=command["command"], args=tuple(command["args"]))
    async with (
        running([spec], tmp_path, settings=settings) as gateway,
        client_of(gateway, "modern") as client,
    ):
        texts = [
            said(await client.call_tool("h_echo", {"le\\u{200b}vel": "low"})),
            json.dumps(wire(await client.get_prompt("h.gre\\u{200b}et", {})), ensure_ascii=False),
            json.dumps(wire(await client.read_resource("memo://ab")), ensure_ascii=False),
        ]
    for text in texts:
        assert (hostile.HIDDEN in text) is not is_clean
        assert bool(hidden_in(text)) is not is_clean
