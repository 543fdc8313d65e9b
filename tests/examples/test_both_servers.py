"""What holds of every tool of both example servers."""

from __future__ import annotations

import json
import re
import sys
from subprocess import PIPE, Popen
from typing import Any

import pytest
from tests.examples.world import Caller, TrackerWorld, World

from examples import memory
from pegboard import Pegboard, PegboardError
from pegboard.core.results.output_fields import list_field_entries

CATEGORIES = [
    "activity",
    "attachments",
    "calendar",
    "channels",
    "comments",
    "contacts",
    "documents",
    "issues",
    "milestones",
    "notifications",
    "projects",
    "search",
    "storage",
    "time_tracking",
    "workspace",
]
EPISODE_TOOLS = [
    "create_episode",
    "get_episode",
    "query_memory",
    "delete_episode",
    "bulk_episodes",
    "analyze_patterns",
    "search_patterns",
    "recommend_patterns",
    "batch_create_episodes",
    "batch_add_steps",
    "batch_complete_episodes",
    "advanced_pattern_analysis",
    "quality_metrics",
    "health_check",
]

READING = re.compile(
    "get|list|read|find|search|fulltext|query|bulk|analyze|recommend|advanced|quality|health"
    "|compare|summarize|poll|diff|suggest|forecast|verify|run_saved"
)


@pytest.fixture(scope="module", params=["tracker", "memory"])
def board(
    request: pytest.FixtureRequest, tracker_world: TrackerWorld, memory_world: World
) -> Pegboard:
    return (
        tracker_world.ana.board
        if request.param == "tracker"
        else memory.board_for(memory_world.database)
    )


def test_the_tracker_has_over_a_hundred_tools_in_fifteen_categories(world: TrackerWorld) -> None:
    board = world.ana.board

    assert len(board.tools()) > 100
    assert [category.name for category in board.categories()] == CATEGORIES
    assert min(category.tool_count for category in board.categories()) >= 7


def test_the_memory_has_over_twenty_tools_under_their_promised_names(recall: Caller) -> None:
    names = {tool.name for tool in recall.board.tools()}

    assert len(names) > 20
    assert names >= set(EPISODE_TOOLS)


def test_related_tools_pins_and_examples_pass_the_boards_own_check(board: Pegboard) -> None:
    board.check()


ARRANGED_BY = {
    "run_saved_search": "save_search",
    "delete_saved_search": "save_search",
    "restore_project": "archive_project",
    "remove_project_member": "add_project_member",
    "restore_stored_file": "delete_stored_file",
    "stop_timer": "start_timer",
}
"""Tools whose example needs what the first example of another tool makes."""


@pytest.mark.anyio
async def test_every_example_works_on_the_demo_data(
    board: Pegboard, tracker_world: TrackerWorld, memory_world: World
) -> None:
    failed: dict[str, str] = {}
    tried = 0
    for tool in board.tools():
        for example in tool.examples:
            tracker_world.reset()
            memory_world.reset()
            tried += 1
            try:
                if tool.name in ARRANGED_BY:
                    first = board.describe(ARRANGED_BY[tool.name])[0]
                    await board.call(first.name, dict(first.examples[0].invocation))
                await board.call(tool.name, dict(example.invocation))
            except PegboardError as exc:
                failed[f"{tool.name}: {example.description}"] = exc.message
    assert failed == {}
    assert tried >= len(board.tools())


def test_every_tool_has_an_example_and_related_tools(board: Pegboard) -> None:
    assert [t.name for t in board.tools() if not t.examples] == []
    assert [t.name for t in board.tools() if not t.related] == []


def test_every_field_of_every_result_is_described(board: Pegboard) -> None:
    blank = [
        f"{tool.name}: {entry.path}"
        for tool in board.tools()
        for entry in list_field_entries(tool)
        if not entry.description
    ]
    assert blank == []


def test_every_description_of_a_field_belongs_to_one(board: Pegboard) -> None:
    paths = [
        f".{tool.name}.{path}.".replace("[]", "")
        for tool in board.tools()
        for path in tool.output_fields
    ]
    written = board.tools()[0].field_descriptions
    assert [name for name in written if not any(p.endswith(f".{name}.") for p in paths)] == []


def test_every_tool_says_what_it_does_takes_and_gives_back(board: Pegboard) -> None:
    silent = [
        tool.name
        for tool in board.tools()
        if len(tool.description) < 40 or tool.summary.endswith(".") or tool.output_schema is None
    ]
    unexplained = [
        f"{tool.name}.{name}"
        for tool in board.tools()
        for name, parameter in tool.input_schema["properties"].items()
        if not _explained(parameter)
    ]
    assert silent == []
    assert unexplained == []


def test_a_tool_reads_only_exactly_when_its_name_says_so(board: Pegboard) -> None:
    surprising = [
        tool.name
        for tool in board.tools()
        if (READING.match(tool.name) is not None) != (tool.risk == "read")
    ]
    assert surprising == []


def test_every_tool_that_writes_says_whether_it_destroys_and_may_be_repeated(
    board: Pegboard,
) -> None:
    writing = [tool for tool in board.tools() if tool.risk != "read"]

    assert all({"destructiveHint", "idempotentHint"} <= set(t.annotations) for t in writing)
    assert {t.name for t in writing if t.name.startswith("delete_")} <= {
        t.name for t in writing if t.risk == "destructive"
    }


def test_both_servers_answer_a_client_on_standard_input() -> None:
    hello = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
        '"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}\n'
    )
    started = {
        name: Popen([sys.executable, "-m", f"examples.{name}"], stdin=PIPE, stdout=PIPE, text=True)
        for name in ("tracker", "memory")
    }
    for name, process in started.items():
        out, _ = process.communicate(hello, timeout=60)
        assert json.loads(out)["result"]["serverInfo"]["name"] == name


def _explained(schema: dict[str, Any]) -> bool:
    """A description or a closed set of values, beside the type or inside one of several types."""
    options = [schema, *schema.get("anyOf", ())]
    return any(option.get("description") or option.get("enum") for option in options)
