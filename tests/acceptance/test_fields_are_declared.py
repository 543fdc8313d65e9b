"""The second earlier system declares `include_fields` on every tool, and so is it here.

Its own test asks four tools for `["id", "description"]`, whatever each of them calls these.
"""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from tests.acceptance.support import ask, call, in_both_eras, memory_board, play
from tests.conformance.clients import Era

from pegboard import Pegboard
from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.tools import Tool, constant_definition

FIELDS = ["id", "description"]
EPISODE = {"id", "task_description"}
DECLARED = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Result fields to return",
}


@in_both_eras
def test_it_is_declared_by_descriptions_and_whole_lists(era: Era) -> None:
    told = play(
        memory_board(),
        era,
        {
            "named": ask("tools/describe", names=["get_episode"]),
            "theirs": ask("tools/describe", tool_name="get_episode"),
            "batch": ask("tools/describe_batch", tool_names=["get_episode"]),
            "whole": ask("tools/list", lazy=False),
            "list": ask("tools/list"),
        },
        mode="stub",
    )
    [named], [batch] = told["named"].ok["tools"], told["batch"].ok["tools"]
    schemas = [named["inputSchema"], told["theirs"].ok["schema"]["inputSchema"]]
    schemas += [batch["schema"]["inputSchema"]]
    schemas += [tool["inputSchema"] for tool in told["whole"].ok["tools"]]
    pins = [tool for tool in told["list"].ok["tools"] if tool["name"] == "query_memory"]
    schemas += [pin["inputSchema"] for pin in pins]
    assert len(schemas) > 20
    assert all(schema["properties"]["include_fields"] == DECLARED for schema in schemas)
    assert all("include_fields" not in schema.get("required", ()) for schema in schemas)


@in_both_eras
def test_it_is_a_parameter_of_a_tools_description(era: Era) -> None:
    steps = {"described": call("get_tool_description", tool_name="get_episode")}
    told = play(memory_board(), era, steps, mode="index")["described"].json
    assert told["parameters"]["include_fields"] == {
        "type": "array",
        "description": "Result fields to return",
        "required": False,
        "accepts": "str[]",
    }


def closed_board() -> Pegboard:
    """A tool whose schema takes nothing else, and one that has the parameter for itself."""
    board = Pegboard("closed")
    board.tool(name="own")(own)
    closed = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "additionalProperties": False,
    }
    output = {"type": "object", "properties": {"id": {}, "x": {}}}

    board.mount({"far": Far()}, [Tool("closed", constant_definition(closed, output), server="far")])
    return board


class Far:
    """A server that is given the tool's own argument alone."""

    async def tools(self) -> list[Tool]:
        return []

    async def call(self, call: ToolCall) -> CallResult:
        assert call.arguments == {"n": 1}
        return CallResult.json({"id": 1, "x": 2}, structured=True)


def own(include_fields: list[str]) -> dict[str, list[str]]:
    """Say which fields were given."""
    return {"given": include_fields}


@in_both_eras
@pytest.mark.parametrize("mode", ["eager", "stub", "index", "hierarchy", "proxy", "dynamic"])
def test_a_closed_schema_takes_it_too(mode: str, era: Era) -> None:
    arguments: dict[str, Any] = {"n": 1, "include_fields": ["id"]}
    told = play(
        closed_board(),
        era,
        {
            "described": ask("tools/describe", name="closed"),
            "call": call("closed", **arguments),
            "own": call("own", include_fields=["given"]),
            "own described": ask("tools/describe", name="own"),
        },
        mode=mode,
    )
    schema = told["described"].ok["tool"]["inputSchema"]
    assert schema["additionalProperties"] is False
    jsonschema.validate(arguments, schema)
    assert told["call"].ok["structuredContent"] == {"id": 1}
    assert told["own"].ok["structuredContent"] == {"given": ["given"]}
    kept = told["own described"].ok["tool"]["inputSchema"]
    assert kept["required"] == ["include_fields"]
    assert kept["properties"]["include_fields"] != DECLARED


@in_both_eras
def test_an_id_and_a_description_can_be_had_of_every_tool(era: Era) -> None:
    told = play(
        memory_board(),
        era,
        {
            "query": call("query_memory", query="import", include_fields=FIELDS),
            "get": call("get_episode", episode_id="ep-0001", include_fields=FIELDS),
            "path": call(
                "get_episode", episode_id="ep-0001", include_fields=["episode.description"]
            ),
            "patterns": call("analyze_patterns", include_fields=FIELDS),
            "bulk": call(
                "bulk_episodes", episode_ids=["ep-0001", "ep-0002"], include_fields=FIELDS
            ),
            "through": call(
                "call_tool",
                name="get_episode",
                arguments={"episode_id": "ep-0001"},
                include_fields=FIELDS,
            ),
        },
        mode="proxy",
    )
    for key in ("query", "get"):
        assert set(told[key].ok["structuredContent"]["episode"]) == EPISODE
    assert set(told["path"].ok["structuredContent"]["episode"]) == {"task_description"}
    patterns = told["patterns"].ok["structuredContent"]["patterns"]
    assert len(patterns) > 5
    assert all(set(pattern) == set(FIELDS) for pattern in patterns)
    episodes = told["bulk"].ok["structuredContent"]["episodes"]
    assert [set(episode) for episode in episodes] == [EPISODE, EPISODE]
    assert "task_description" in told["through"].text
    assert "reflection" not in told["through"].text


@pytest.mark.anyio
async def test_a_field_of_its_own_name_is_no_alias() -> None:
    board = Pegboard("names")

    @board.tool(field_aliases={"text": "body", "note": "nothing"})
    def read() -> dict[str, Any]:
        """Read a page."""
        return {"body": 1, "parts": [{"text": 2, "other": 3}]}

    tool = board.describe("read")[0]
    assert (tool.output_schema or {}).get("properties") is None
    assert (await board.call("read", {}, ["parts.text"])).structured == {"parts": [{"text": 2}]}
