"""Batches: in order, and all or nothing."""

from __future__ import annotations

import pytest
from tests.examples.world import Caller

pytestmark = pytest.mark.anyio

NEW = {"task_description": "Write tests", "domain": "cli", "task_type": "testing"}


async def test_many_episodes_come_in_the_order_asked_and_missing_ones_are_named(
    recall: Caller,
) -> None:
    found = await recall("bulk_episodes", episode_ids=["ep-0003", "ep-9999", "ep-0001"])

    assert [e["id"] for e in found["episodes"]] == ["ep-0003", "ep-0001"]
    assert found["missing"] == ["ep-9999"]
    assert len(found["episodes"][1]["steps"]) == 17


async def test_a_batch_of_new_episodes_gets_ids_in_order(recall: Caller) -> None:
    created = await recall("batch_create_episodes", episodes=[NEW, {**NEW, "tags": ["B"]}])

    assert created["ids"] == ["ep-0015", "ep-0016"]
    assert (await recall("get_episode", episode_id="ep-0016"))["episode"]["tags"] == ["b"]


async def test_one_wrong_episode_stops_the_whole_batch(recall: Caller) -> None:
    await recall.refused("batch_create_episodes", episodes=[NEW, {**NEW, "task_type": "cooking"}])

    assert (await recall("list_episodes"))["total"] == 14


async def test_steps_are_numbered_on_from_those_that_are_there(recall: Caller) -> None:
    steps = [{"tool": "sql", "action": "Look at cursors"}, {"tool": "git", "action": "Commit"}]
    added = await recall("batch_add_steps", batches=[{"episode_id": "ep-0013", "steps": steps}])

    episode = (await recall("get_episode", episode_id="ep-0013"))["episode"]
    assert added == {"steps_added": 2, "steps_by_episode": {"ep-0013": 3}}
    assert [(s["number"], s["tool"]) for s in episode["steps"]] == [
        (1, "read_log"),
        (2, "sql"),
        (3, "git"),
    ]


async def test_steps_for_a_completed_episode_add_none_to_the_others(recall: Caller) -> None:
    steps = [{"tool": "git", "action": "Commit"}]
    batches = [{"episode_id": i, "steps": steps} for i in ("ep-0013", "ep-0001")]

    assert "ep-0001 was completed" in await recall.refused("batch_add_steps", batches=batches)
    assert len((await recall("get_episode", episode_id="ep-0013"))["episode"]["steps"]) == 1


async def test_several_episodes_end_at_once_each_with_its_reward(recall: Caller) -> None:
    done = await recall(
        "batch_complete_episodes",
        completions=[
            {"episode_id": "ep-0013", "outcome_type": "success"},
            {"episode_id": "ep-0014", "outcome_type": "failure"},
        ],
    )

    assert done["rewards"] == {"ep-0013": 1.0, "ep-0014": 0.0}
    assert done["mean_reward"] == 0.5


async def test_an_episode_cannot_end_twice_in_one_batch(recall: Caller) -> None:
    twice = [{"episode_id": "ep-0013", "outcome_type": "success"}] * 2

    assert "more than once" in await recall.refused("batch_complete_episodes", completions=twice)
    still = await recall("get_episode", episode_id="ep-0013")
    assert still["episode"]["status"] == "in_progress"
