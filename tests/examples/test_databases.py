"""The databases behind both servers: repeatable, persistent, and whole under concurrent calls."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import anyio
import pytest
from examples.database import Database
from tests.examples.world import Caller, TrackerWorld

from examples import memory
from examples.tracker import Tracker, board_for, seed

pytestmark = pytest.mark.anyio


def dump(database: Database) -> str:
    return "\n".join(database.connection.iterdump())


def test_the_demo_data_is_the_same_every_time() -> None:
    trackers = [Tracker.open(":memory:") for _ in range(2)]
    memories = [memory.open_memory() for _ in range(2)]
    for tracker in trackers:
        seed(tracker)
    for remembered in memories:
        memory.seed(remembered)

    assert dump(trackers[0]) == dump(trackers[1])
    assert dump(memories[0]) == dump(memories[1])
    for database in (*trackers, *memories):
        database.connection.close()


async def test_what_was_done_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    path = str(tmp_path / "tracker.db")
    with closing((tracker := Tracker.open(path)).connection):
        seed(tracker)
        await Caller(board_for(tracker))("create_issue", project="WEB", title="Kept")
    with closing((tracker := Tracker.open(path)).connection):
        seed(tracker)
        again = Caller(board_for(tracker))

        assert (await again("get_issue", issue="WEB-6"))["title"] == "Kept"
        assert (await again("list_projects"))["total"] == 3


async def test_an_unseeded_workspace_has_only_its_owner() -> None:
    with closing((tracker := Tracker.open(":memory:", me="zoe")).connection):
        seed(tracker, demo=False)
        call = Caller(board_for(tracker))

        assert (await call("get_current_member"))["role"] == "owner"
        assert (await call("list_projects"))["projects"] == []
        await call("create_project", key="NEW", name="New")
        assert (await call("create_issue", project="NEW", title="First"))["key"] == "NEW-1"


async def test_concurrent_calls_neither_lose_nor_mix_changes(world: TrackerWorld) -> None:
    keys: list[str] = []

    async def report(caller: Caller, title: str) -> None:
        keys.append((await caller("create_issue", project="WEB", title=title))["key"])

    async with anyio.create_task_group() as group:
        for n in range(12):
            group.start_soon(report, (world.ana, world.ben, world.chen)[n % 3], f"Issue {n}")

    assert sorted(keys) == sorted(f"WEB-{n}" for n in range(6, 18))


async def test_a_call_that_is_refused_half_way_leaves_nothing(world: TrackerWorld) -> None:
    before = dump(world.database)
    await world.ana.refused(
        "create_issue", project="WEB", title="x", labels=["triage"], assignee="dora"
    )
    await world.ana.refused("plan_issues", milestone=2, issues=["API-3", "WEB-4"])
    await world.ana.refused("upload_file", path="/a/b", content="%%", encoding="base64")

    assert dump(world.database) == before
