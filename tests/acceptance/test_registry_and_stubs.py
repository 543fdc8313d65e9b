"""The first earlier system: a registry of loaders, stubs in the list, schemas on demand, a cache.

Theirs: `ToolRegistry`, `ToolLoader`, `ToolStub`, `SchemaCache`, `tools/describe`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.acceptance.support import (
    LIST,
    as_read,
    ask,
    call,
    in_both_eras,
    memory_board,
    play,
    play_on_stdio,
    tracker_board,
)
from tests.conformance.clients import Era, Transcript

from pegboard import ConfigError, Pegboard, ToolNotFound
from pegboard.tokens import count_tokens

STUB_TOKENS = 25
"""What a stub may cost, over a whole list: twenty of them stay within 500."""


@in_both_eras
@pytest.mark.parametrize("make", [memory_board, tracker_board])
def test_a_listing_of_stubs_stays_under_its_limit(make: Callable[[], Pegboard], era: Era) -> None:
    board = make()
    told = play(board, era, {"stubs": LIST, "whole": ask("tools/list", lazy=False)}, mode="stub")
    stubs, whole = told["stubs"].ok["tools"], told["whole"].ok["tools"]
    assert [t["name"] for t in stubs] == [t["name"] for t in whole]
    pins = [t for t in stubs if t["inputSchema"] != {"type": "object"}]  # listed whole
    limit = STUB_TOKENS * (len(stubs) - len(pins))
    assert as_read(stubs) - as_read(pins) <= limit
    assert count_tokens(stubs) < 0.15 * count_tokens(whole)


@in_both_eras
def test_a_stub_has_a_name_a_summary_and_a_schema_that_every_client_takes(era: Era) -> None:
    told = play(memory_board(), era, {"list": LIST}, mode="stub")
    for stub in told["list"].ok["tools"]:
        if stub["name"] == "query_memory":
            continue  # a pin, which every mode lists whole
        assert 0 < len(stub["description"]) <= 80
        assert stub["inputSchema"] == {"type": "object"}
    assert told["list"].ok["_meta"]["io.github.pegboard/lazy"] is True


@in_both_eras
def test_describe_is_complete(era: Era) -> None:
    names = ["get_episode", "create_episode"]
    told = play(
        memory_board(),
        era,
        {
            "described": ask("tools/describe", names=names),
            "one": ask("tools/describe", tool_name="get_episode"),
            "whole": ask("tools/list", lazy=False),
        },
        mode="stub",
    )
    whole = {tool["name"]: tool for tool in told["whole"].ok["tools"]}
    assert told["described"].ok["tools"] == [whole[name] for name in names]
    schema = told["one"].ok["schema"]
    assert schema["inputSchema"]["required"] == ["episode_id"]
    assert "episode" in schema["outputSchema"]["properties"]
    assert schema["description"]


@in_both_eras
def test_a_name_that_is_not_found_is_an_error_with_the_nearest(era: Era) -> None:
    told = play(
        memory_board(),
        era,
        {
            "one": ask("tools/describe", tool_name="get_episod"),
            "several": ask("tools/describe_batch", tool_names=["health_check", "get_episod"]),
        },
        mode="stub",
    )
    assert told["one"].misuse["data"]["unknownNames"] == ["get_episod"]
    assert told["one"].misuse["data"]["nearest"]["get_episod"][0] == "get_episode"
    batch = told["several"].ok
    assert [t["tool_name"] for t in batch["tools"]] == ["health_check"]
    assert batch["missing"][0]["name"] == "get_episod"


def test_the_same_error_in_process_is_typed() -> None:
    with pytest.raises(ToolNotFound) as caught:
        memory_board().describe("get_episod")
    assert caught.value.nearest[0] == "get_episode"


def test_a_schema_is_made_once_and_then_comes_from_the_cache() -> None:
    board = memory_board()
    before = board.schema_cache.stats()
    first = board.describe("get_episode")[0].input_schema
    made = board.schema_cache.stats()
    second = board.describe("get_episode")[0].input_schema
    after = board.schema_cache.stats()
    assert first == second
    assert made.misses == before.misses + 1
    assert (after.misses, after.hits) == (made.misses, made.hits + 1)
    assert 0 < after.hit_rate <= 1


def test_a_loader_runs_on_first_use_and_once() -> None:
    runs: list[int] = []

    def load() -> list[Any]:
        runs.append(1)

        def burndown(project: str) -> str:
            """Open issues by day."""
            return project

        return [burndown]

    board = Pegboard("lazy", mode="stub")
    board.load("reports", load, description="Figures")
    assert not board.is_loaded("reports")
    told = play(board, "modern", {"call": call("burndown", project="x"), "list": LIST})
    assert told["call"].ok["structuredContent"] == {"result": "x"}
    assert told["list"].names == ["burndown"]
    assert (board.is_loaded("reports"), len(runs)) == (True, 1)


@pytest.fixture(scope="module", params=["legacy", "modern"])
def on_stdio(request: pytest.FixtureRequest) -> Transcript:
    return play_on_stdio(
        "examples.memory",
        request.param,
        {
            "list": LIST,
            "describe": ask("tools/describe", names=["health_check"]),
            "call": call("health_check"),
        },
        mode="stub",
    )


def test_the_whole_way_works_on_standard_input_and_output(on_stdio: Transcript) -> None:
    assert "health_check" in on_stdio["list"].names
    assert on_stdio["describe"].ok["tools"][0]["outputSchema"]["properties"]
    assert on_stdio["call"].ok["structuredContent"]["status"]


def test_the_cache_has_the_capacity_and_the_time_that_a_board_gives_it() -> None:
    usual = Pegboard("usual").schema_cache.stats()
    assert (usual.capacity, usual.ttl) == (1_024, 300.0)
    board = Pegboard("small", schema_cache_size=2, schema_cache_ttl=0.001)
    for number in range(3):
        board.tool(name=f"tool_{number}")(memory_board)
    for tool in board.tools():
        assert tool.input_schema
    full = board.schema_cache.stats()
    assert (full.size, full.capacity, full.ttl) == (2, 2, 0.001)
    until = time.monotonic() + 5
    while board.schema_cache.stats().size:
        board.schema_cache.purge_expired()
        assert time.monotonic() < until
    assert board.describe("tool_2")[0].input_schema
    assert board.schema_cache.stats().misses == full.misses + 1


@pytest.mark.parametrize("wrong", [{"schema_cache_size": 0}, {"schema_cache_ttl": 0}])
def test_a_cache_that_keeps_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Pegboard("none", **wrong)
