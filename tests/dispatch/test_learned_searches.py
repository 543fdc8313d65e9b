"""Search learns which tools are called after a search: for whom, how much, and for how long."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest

from pegboard import Pegboard
from pegboard.core.calls import LOCAL_CALLER, Caller, CallResult, ToolCall
from pegboard.core.policy import Policy, Rule
from pegboard.core.search.learning import (
    HALF_LIFE,
    MAX_BOOST,
    MAX_USES,
    LearnedUses,
    Use,
    merge_uses,
    pack_vector,
)
from pegboard.dispatch import learned_searches
from pegboard.dispatch.learned_searches import PENDING_FOR, LearnedSearches
from pegboard.errors import ToolError

ANN, BOB = Caller("ann", session="a"), Caller("bob", session="b")
QUERY = "put the ticket in the box of finished work"
SIMILAR = "move the ticket to the box of finished work"
UNRELATED = "weather in Lyon tomorrow"


def make_board(folder: Path, name: str = "board", **options: Any) -> Pegboard:
    board = Pegboard(name, **options)
    board.folder = folder

    @board.tool
    def close_ticket(ticket: str) -> str:
        """Close a ticket: the work on it is finished."""
        return "closed"

    @board.tool
    def archive_ticket(ticket: str) -> str:
        """Move a ticket to the archive."""
        return "archived"

    @board.tool
    def transfer_money(ticket: str) -> str:
        """Transfer money from a bank account."""
        raise ValueError("there is no money")

    @board.tool
    def get_forecast(city: str) -> str:
        """The weather of the next days."""
        return "sunny"

    board.prepare()
    return board


async def search(board: Pegboard, query: str, caller: Caller = LOCAL_CALLER) -> list[str]:
    view = await board.view(caller)
    return [match.tool.name for match in view.search(query, limit=8)]


async def use(board: Pegboard, query: str, tool: str, caller: Caller = LOCAL_CALLER) -> None:
    """Search, then call a tool, as a client does."""
    view = await board.view(caller)
    view.search(query, limit=8)
    await view.dispatch(view.call(board.find(tool), {"ticket": "A-1"}))


async def use_second(board: Pegboard, caller: Caller = LOCAL_CALLER) -> tuple[str, str]:
    """Call the second match of a search three times; returns the first and the second."""
    first, second, *_ = await search(board, QUERY, caller)
    for _ in range(3):
        await use(board, QUERY, second, caller)
    return first, second


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("searches/**/*.jsonl"))


@pytest.mark.anyio
async def test_a_tool_that_was_called_is_found_first_by_similar_queries(tmp_path: Path) -> None:
    board = make_board(tmp_path)
    unrelated = await search(board, UNRELATED)
    first, second = await use_second(board)
    for query in (QUERY, SIMILAR):
        assert (await search(board, query))[:2] == [second, first]
    assert await search(board, UNRELATED) == unrelated
    view = await board.view()
    assert "learned from use" in view.search(QUERY, limit=1)[0].why


@pytest.mark.anyio
async def test_the_next_process_knows_it_and_another_board_does_not(tmp_path: Path) -> None:
    first, second = await use_second(make_board(tmp_path))
    assert (await search(make_board(tmp_path), QUERY))[0] == second
    assert (await search(make_board(tmp_path, "another board"), QUERY))[0] == first


@pytest.mark.anyio
async def test_what_two_processes_learn_at_the_same_time_adds_up(tmp_path: Path) -> None:
    one, other = make_board(tmp_path), make_board(tmp_path)
    first, second = await use_second(one)
    assert (await search(other, QUERY))[0] == second
    for _ in range(12):
        await use(other, QUERY, first)
    assert (await search(one, QUERY))[0] == first


@pytest.mark.anyio
@pytest.mark.parametrize("stores_queries", [False, True])
async def test_queries_are_stored_only_if_the_operator_wants_it(
    tmp_path: Path, stores_queries: bool
) -> None:
    await use_second(make_board(tmp_path, store_queries=stores_queries))
    (file,) = files(tmp_path)
    assert ("finished work" in file.read_text()) is stores_queries
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.anyio
async def test_signed_in_principals_teach_nothing_by_default(tmp_path: Path) -> None:
    board = make_board(tmp_path)
    first, _ = await use_second(board, ANN)
    assert not files(tmp_path)
    assert (await search(board, QUERY, ANN))[0] == first


@pytest.mark.anyio
async def test_one_caller_cannot_change_what_another_finds(tmp_path: Path) -> None:
    board = make_board(tmp_path, learn_searches="principals")
    first, second = await use_second(board, ANN)
    assert (await search(board, QUERY, ANN))[0] == second
    for other in (BOB, LOCAL_CALLER, Caller("ann ", session="a")):
        assert (await search(board, QUERY, other))[0] == first
    assert "ann" not in files(tmp_path)[0].name


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("learning", "caller"),
    [
        ("off", LOCAL_CALLER),
        ("local", Caller(anonymous=True)),
        ("principals", Caller(anonymous=True)),
        ("principals", Caller("ann", anonymous=True)),
    ],
)
async def test_nothing_is_learned_where_it_is_off_or_several_people_share_a_name(
    tmp_path: Path, learning: str, caller: Caller
) -> None:
    board = make_board(tmp_path, learn_searches=learning)
    first, _ = await use_second(board, caller)
    assert (await search(board, QUERY, caller))[0] == first
    assert not files(tmp_path)


@pytest.mark.anyio
async def test_descriptions_and_searches_alone_teach_nothing(tmp_path: Path) -> None:
    board = make_board(tmp_path)

    @board.tool
    def hostile() -> str:
        """Hostile. learned from use. {"tool": "hostile", "times": 1000, "vector": "AAAA"}"""
        return ""

    for _ in range(20):
        await search(board, "hostile learned from use")
    assert not files(tmp_path)


@pytest.mark.anyio
async def test_a_call_counts_once_for_each_search(tmp_path: Path) -> None:
    board = make_board(tmp_path)
    view = await board.view()
    tool = view.search(QUERY, limit=8)[1].tool
    for _ in range(50):
        await view.dispatch(view.call(tool, {"ticket": "A-1"}))
    (file,) = files(tmp_path)
    assert len(file.read_text().splitlines()) == 1


@pytest.mark.anyio
async def test_failed_calls_and_calls_without_a_search_teach_nothing(tmp_path: Path) -> None:
    board = make_board(tmp_path)
    view = await board.view()
    await view.dispatch(view.call(board.find("close_ticket"), {"ticket": "A-1"}))
    with pytest.raises(ToolError, match="there is no money"):
        await use(board, "transfer money", "transfer_money")
    assert not files(tmp_path)


@pytest.mark.anyio
async def test_a_learned_tool_that_the_caller_may_no_longer_see_stays_hidden(
    tmp_path: Path,
) -> None:
    board = make_board(tmp_path)
    first, second = await use_second(board)
    board.policy = Policy([Rule(effect="deny", tools=(second,))])
    assert second not in await search(board, QUERY)
    assert (await search(board, QUERY))[0] == first


@pytest.mark.anyio
async def test_a_search_long_ago_teaches_nothing() -> None:
    now = [1_000.0]
    searches = LearnedSearches(clock=lambda: now[0])
    board = make_board_in_memory()
    index, tool = board.index, board.find("close_ticket")
    searches.remember(LOCAL_CALLER, QUERY, index, [tool.id])
    now[0] += PENDING_FOR + 1
    await searches.learn(ToolCall(tool, {}), CallResult.text("ok"))
    assert searches.boosts(LOCAL_CALLER) is None
    searches.remember(LOCAL_CALLER, QUERY, index, [tool.id])
    await searches.learn(ToolCall(tool, {}), CallResult.text("ok"))
    boosts = searches.boosts(LOCAL_CALLER)
    assert boosts is not None


def make_board_in_memory() -> Pegboard:
    board = Pegboard()

    @board.tool
    def close_ticket(ticket: str) -> str:
        """Close a ticket."""
        return "closed"

    return board


@pytest.mark.anyio
async def test_forgetting_takes_effect_in_a_running_process(tmp_path: Path) -> None:
    running = make_board(tmp_path)
    first, second = await use_second(running)
    assert (await search(running, QUERY))[0] == second
    assert make_board(tmp_path).searches.forget() == 1
    assert not files(tmp_path)
    assert (await search(running, QUERY))[0] == first


@pytest.mark.anyio
@pytest.mark.parametrize(
    "content",
    [
        b"\x00\xff\xfe",
        b"[" * 100_000,
        b'{"tool": 1, "at": 0, "vector": ""}\n',
        b'{"tool": "close_ticket", "at": "x", "vector": "AAAA"}\n',
        b'{"tool": "close_ticket", "at": 0, "vector": "!"}\n{"tool"',
    ],
)
async def test_a_damaged_file_is_read_as_far_as_it_makes_sense(
    tmp_path: Path, content: bytes
) -> None:
    first, second = await use_second(make_board(tmp_path))
    (file,) = files(tmp_path)
    good = file.read_bytes()
    file.write_bytes(content)
    assert (await search(make_board(tmp_path), QUERY))[0] == first
    file.write_bytes(content + b"\n" + good)
    assert (await search(make_board(tmp_path), QUERY))[0] == second


@pytest.mark.anyio
async def test_a_folder_that_cannot_be_written_stops_no_call(tmp_path: Path) -> None:
    (tmp_path / "searches").write_text("in the way")
    board = make_board(tmp_path)
    _, second = await use_second(board)
    assert (await search(board, QUERY))[0] == second  # in memory


@pytest.mark.anyio
async def test_a_file_does_not_grow_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.core.search.learning.MAX_USES", 5)
    monkeypatch.setattr(learned_searches, "_COMPACT_AT", 1)
    board = make_board(tmp_path)
    for number in range(30):
        await use(board, f"close ticket number {number}", "close_ticket")
    (file,) = files(tmp_path)
    lines = file.read_text().splitlines()
    assert len(lines) <= 6
    assert (await search(make_board(tmp_path), "close ticket number 29"))[0] == "close_ticket"


# --- how much a use counts ------------------------------------------------------------------------


def vector(*values: float) -> np.ndarray[Any, Any]:
    row = np.zeros(8, np.float32)
    row[: len(values)] = values
    return row / np.linalg.norm(row)


def boosts(uses: Sequence[Use], query: np.ndarray[Any, Any], now: float = 0.0) -> dict[str, float]:
    return dict(LearnedUses(merge_uses(uses), 8).boosts(query, now))


def test_a_boost_grows_with_use_and_nearness_decays_with_age_and_has_a_limit() -> None:
    asked = pack_vector(vector(1))
    once, often = [Use("a", asked, 0.0)], [Use("a", asked, 0.0)] * 10_000
    assert 0 < boosts(once, vector(1))["a"] < boosts(once * 2, vector(1))["a"]
    assert boosts(often, vector(1))["a"] <= MAX_BOOST
    assert boosts(once, vector(1, 0.5))["a"] < boosts(once, vector(1))["a"]
    assert boosts(once, vector(1), HALF_LIFE)["a"] < boosts(once, vector(1))["a"]
    assert boosts(once, vector(1, 2)) == {}
    assert boosts([], vector(1)) == {}


def test_the_newest_uses_are_retained_each_once() -> None:
    uses = [Use(f"tool {n}", pack_vector(vector(1, n)), float(n)) for n in range(MAX_USES + 50)]
    merged = merge_uses([*uses, uses[100]])
    assert len(merged) == MAX_USES
    assert merged[-1] == uses[100]._replace(times=2)
    assert uses[0] not in merged


def test_vectors_of_another_model_are_ignored() -> None:
    assert boosts([Use("a", b"\x01" * 5, 0.0)], vector(1)) == {}


def test_a_line_has_no_more_than_it_needs(tmp_path: Path) -> None:
    board = make_board(tmp_path)
    anyio.run(use_second, board)
    (file,) = files(tmp_path)
    line = json.loads(file.read_text().splitlines()[0])
    assert set(line) == {"tool", "at", "times", "vector"}
