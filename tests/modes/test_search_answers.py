"""The list of `proxy` and the answers of `search_tools`: what a model reads, and how much of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.acceptance.support import tracker_board

from pegboard import Pegboard, count_tokens
from pegboard.core.json import JsonObject, compact
from pegboard.core.risk import infer_risk
from pegboard.core.schemas import format_brief_signature
from pegboard.core.tools import Tool, constant_definition
from pegboard.testing import connect

pytestmark = pytest.mark.anyio

STRUCTURED: Any = {"io.github.pegboard/structured": True}


@pytest.fixture(scope="module")
def board() -> Pegboard:
    board = tracker_board()
    board.prepare()  # until all vectors are there, scores depend on how busy the machine is
    return board


async def search(board: Pegboard, **arguments: Any) -> str:
    async with connect(board, mode="proxy") as client:
        result = await client.call_tool("search_tools", arguments)
    return result.content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("separator", ["; ", "\n", " ;\n"])
async def test_queries_that_a_text_separates_are_answered_each(
    board: Pegboard, separator: str
) -> None:
    needs = ["create bug issue", "find free time slots", "list members"]
    lines = (await search(board, queries=[separator.join(needs)])).splitlines()
    assert [line for line in lines if line.endswith(":")] == [f"{need}:" for need in needs]
    for name in ("create_issue(", "find_free_slots(", "list_members("):
        assert sum(line.startswith(name) for line in lines) == 1, name


async def test_the_best_tool_for_each_part_of_a_list_has_its_signature(board: Pegboard) -> None:
    for query in ("find duplicate contacts and merge", "find and merge duplicate contacts"):
        lines = (await search(board, queries=query)).splitlines()
        assert lines[0].startswith("find_duplicate_contacts(")
        assert lines[1].startswith("merge_contacts(")  # although it destroys and the other reads
    listed = await search(board, queries="list projects, labels, milestones, channels")
    for name in ("list_projects(", "list_labels(", "list_milestones(", "list_channels("):
        assert f"\n{name}" in f"\n{listed}", name


async def test_the_lines_of_a_pasted_text_are_not_queries_of_their_own(board: Pegboard) -> None:
    text = "\n".join(["The meeting about the budget of the next year was moved again by Dana"] * 3)
    assert "budget of the next year was moved again by Dana:" not in await search(
        board, queries=[f"{text}\nwho is free on Friday"]
    )


@pytest.mark.parametrize(("risk", "most"), [("single", 170), ("split", 230)])
async def test_the_list_is_lean(risk: str, most: int) -> None:
    board = tracker_board()
    board.reconfigure(replace(board.options, risk=risk, pins=()))  # type: ignore[arg-type]
    async with connect(board, mode="proxy") as client:
        tools = (await client.list_tools()).tools
    read = [
        compact({"name": t.name, "description": t.description, "inputSchema": t.input_schema})
        for t in tools
    ]
    assert sum(map(count_tokens, read)) <= most
    assert tools[0].name == "search_tools"
    assert not {"describe_tools", "call_tools", "read_result"} & {t.name for t in tools}


async def test_unlisted_meta_tools_are_called_directly_and_through_the_call_tool(
    board: Pegboard,
) -> None:
    wanted = {"names": ["log_time"]}
    async with connect(board, mode="proxy") as client:
        direct = await client.call_tool("describe_tools", wanted)
        through = await client.call_tool(
            "call_tool", {"name": "describe_tools", "arguments": wanted}
        )
        wrong = await client.call_tool("call_tool", {"name": "describe_tools", "arguments": {}})
    assert direct.content == through.content
    assert "started_at" in str(through.content)
    assert wrong.is_error
    assert "names" in str(wrong.content)


async def test_the_best_match_says_what_it_returns_and_rivals_are_short(board: Pegboard) -> None:
    first, *rest = (await search(board, queries=["log time worked on an issue"])).splitlines()
    assert first.startswith("log_time(issue, started_at: str date-time, minutes: int 1..960")
    assert "-> {id, member, issue" in first
    assert "[write]" in first
    assert all("->" not in line for line in rest)
    assert len(rest) <= 3
    assert "more)" not in "\n".join(rest)


async def test_several_queries_are_answered_each_and_no_tool_is_described_twice(
    board: Pegboard,
) -> None:
    queries = ["create a document", "links between documents", "write a new document"]
    lines = (await search(board, queries=queries)).splitlines()
    assert [line for line in lines if line.endswith(":")] == [f"{query}:" for query in queries]
    assert sum(line.startswith("create_document(") for line in lines) == 1
    assert sum(line.startswith("get_document_links(") for line in lines) == 1


async def test_the_same_as_structured_content(board: Pegboard) -> None:
    async with connect(board, mode="proxy") as client:
        one = await client.call_tool("search_tools", {"query": "log time"}, meta=STRUCTURED)
        two = await client.call_tool(
            "search_tools", {"queries": ["log time", "list labels"]}, meta=STRUCTURED
        )
    assert one.structured_content is not None
    assert one.structured_content["matches"][0]["name"] == "log_time"
    assert one.structured_content["matches"][0]["returns"].startswith("{id, member")
    assert two.structured_content is not None
    needs = two.structured_content["needs"]
    assert [need["query"] for need in needs] == ["log time", "list labels"]
    assert needs[1]["matches"][0]["name"] == "list_labels"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"queries": []}, "`queries` is empty"),
        ({"queries": ["", "  "]}, "`queries` is empty"),
        ({}, "`queries` is empty"),
        ({"queries": [f"need {n}" for n in range(100)]}, "100 queries at once are too many"),
        ({"queries": 5}, "queries"),
        ({"queries": [{"query": "x"}]}, "queries"),
    ],
)
async def test_wrong_queries_say_what_would_be_right(
    board: Pegboard, arguments: dict[str, Any], reason: str
) -> None:
    async with connect(board, mode="proxy") as client:
        result = await client.call_tool("search_tools", arguments)
    assert result.is_error
    assert reason in str(result.content)


async def test_a_query_given_twice_is_one_need(board: Pegboard) -> None:
    assert await search(board, queries=["log time", "log time "]) == await search(
        board, queries="log time"
    )


async def test_what_no_tool_does_takes_one_short_answer(board: Pegboard) -> None:
    text = await search(board, queries="what will the weather be like in Oslo")
    assert text.startswith("No tool does this. Categories: ")
    assert count_tokens(text) <= 90


async def test_a_tool_for_the_right_thing_that_does_something_else_is_called_the_nearest(
    board: Pegboard,
) -> None:
    text = await search(board, queries="translate a document to Norwegian")
    assert text.startswith("No tool clearly does this. Nearest: update_document(")


async def test_a_limit_shows_that_many_tools(board: Pegboard) -> None:
    text = await search(board, queries="issues of a project", limit=12)
    shown = [tool.name for tool in board.tools() if tool.name in text]
    assert len(shown) >= 12


async def test_writes_are_made_in_one_batch(board: Pegboard) -> None:
    calls = [
        {"name": "create_label", "arguments": {"name": name, "color": "#123456"}}
        for name in ("one", "two")
    ]
    async with connect(board, mode="proxy") as client:
        batch = {"name": "call_tools", "arguments": {"calls": calls}}
        refused = await client.call_tool("call_tool", batch)
        done = await client.call_tool("call_write_tool", batch)
    assert '"ok":false' in str(refused.content)
    assert str(done.content).count('"ok":true') == 2


async def test_results_of_a_batch_are_json_and_not_json_in_a_string() -> None:
    board = Pegboard("raw")

    @board.tool
    def read_raw() -> str:
        """Read text that is JSON."""
        return '{"a": [1, 2]}'

    call = {"name": "call_tools", "arguments": {"calls": [{"name": "read_raw"}]}}
    async with connect(board, mode="proxy") as client:
        done = await client.call_tool("call_tool", call)
    assert '"result":{"result":{"a":[1,2]}}' in done.content[0].text  # type: ignore[union-attr]


def make_tool(server: str, name: str, description: str, **parameters: JsonObject) -> Tool:
    schema: JsonObject = {"type": "object", "properties": parameters}
    definition = constant_definition(schema)
    tool = Tool(f"{server}_{name}", definition, id=f"{server}.{name}", server=server)
    return replace(tool, description=description, summary=description, risk=infer_risk(name))


def rival_board() -> Pegboard:
    """Two servers with a tool of the same name, one of them described at length."""
    text: JsonObject = {"type": "string"}
    board = Pegboard(mode="proxy", risk="split")
    for tool in (
        make_tool("hub", "create_issue", "Create a new issue (a bug report)", repo=text),
        make_tool("desk", "create_issue", "Open one", queue=text),
        make_tool("desk", "delete_issue", "Delete an issue (a bug report)", issue=text),
    ):
        board.add(tool)
    board.prepare()
    return board


async def test_the_same_tool_of_two_servers_comes_with_both_signatures() -> None:
    lines = (
        await search(rival_board(), queries="create a new issue for a bug report")
    ).splitlines()
    assert {"hub_create_issue(repo?)", "desk_create_issue(queue?)"} == {
        line.partition(" ")[0] for line in lines
    }


async def test_what_destroys_is_not_offered_for_a_need_that_does_not() -> None:
    board = rival_board()
    assert "delete" not in await search(board, queries="create a new issue for a bug report")
    assert "desk_delete_issue(" in await search(board, queries="delete an issue")
    assert "delete" in await search(board, queries="create a new issue", limit=5)


async def test_a_tool_that_was_shown_for_an_earlier_need_is_named_first(board: Pegboard) -> None:
    text = await search(board, queries=["create a document", "write a new document"])
    assert text.partition("write a new document:\n")[2].startswith("create_document: see above")


async def test_optional_parameters_without_space_are_named(board: Pegboard) -> None:
    schema: JsonObject = {"type": "object", "properties": {}}
    for name in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta"):
        schema["properties"][name] = {"enum": [f"{name}_{'x' * n}" for n in range(4)]}
    line = format_brief_signature("run", schema, limit=150)
    assert "epsilon?: …" in line
    assert "more" not in line
    assert len(line) <= 150


async def test_categories_are_servers_where_there_are_several() -> None:
    board = rival_board()
    for section in ("chat", "files"):
        tool = make_tool("desk", f"read_{section}", "Read")
        board.add(replace(tool, section=section))
    async with connect(board, mode="proxy") as client:
        listed = (await client.list_tools()).tools[0].description
    assert listed is not None
    assert listed.endswith("5 tools: desk, hub")
    assert "Categories: desk, hub." in await search(board, queries="who won the football match")


async def test_batches_are_explained_once_in_the_list() -> None:
    async with connect(rival_board(), mode="proxy") as client:
        told = [t for t in (await client.list_tools()).tools if "call_tools" in str(t.description)]
    assert [t.name for t in told] == ["call_tool"]
    assert "in any call tool" in str(told[0].description)


@pytest.mark.parametrize(
    "query",
    [
        "crée un document",
        "ドキュメントを作成する",
        "\u202eevil\u200b",
        "x" * 20_000,
        "'; DROP TABLE tools; --",
    ],
)
async def test_queries_of_any_kind_get_an_answer(board: Pegboard, query: str) -> None:
    text = await search(board, queries=[query, "log time"])
    assert "log_time(" in text
    assert count_tokens(text) < 400
    assert "\u202e" not in text


async def test_how_to_see_the_rest_is_said_once_and_only_if_parameters_are_left_out(
    board: Pegboard,
) -> None:
    hint = "for what … leaves out"
    assert hint not in await search(board, queries="log time worked on an issue")
    needs = ["search issues by fields", "create issues from a list", "update a document"]
    text = await search(board, queries=[*needs, "bulk edit issues"])
    assert text.count(hint) == 1


async def test_no_definition_fills_a_context() -> None:
    parameters = {
        f"parameter_{n}": {"type": "string", "description": "x" * 90} for n in range(3_000)
    }
    schema: Any = {"type": "object", "properties": parameters}
    flood = Pegboard("flood", mode="proxy")
    flood.add(Tool("flood", constant_definition(schema)))
    async with connect(flood) as client:
        described = await client.call_tool("describe_tools", {"names": ["flood"]})
    text: str = described.content[0].text  # type: ignore[union-attr]
    assert 60_000 < len(text) < 61_000
    assert text.endswith(" characters)")
