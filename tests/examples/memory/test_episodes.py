"""Episodes: their life from creation to completion, recall, projection."""

from __future__ import annotations

from typing import Any

import pytest
from tests.examples.world import Caller, World

from examples.memory import RICH_EPISODE
from pegboard import count_tokens
from pegboard.core.json import compact

pytestmark = pytest.mark.anyio

FIELDS = [
    *("id", "task_description", "domain", "task_type", "complexity", "language", "framework"),
    *("tags", "status", "outcome_type", "created_at", "completed_at", "duration_ms"),
    *("reward_score", "steps", "patterns", "reflection", "artifacts", "relationships", "metadata"),
]
TASK = {"task_description": "Cache the menu", "domain": "Web-Shop", "task_type": "refactoring"}


async def begin(recall: Caller, **more: Any) -> str:
    return (await recall("create_episode", **TASK, **more))["episode"]["id"]


async def test_an_episode_has_its_twenty_fields_inside_one_envelope(recall: Caller) -> None:
    answer = await recall("get_episode", episode_id=RICH_EPISODE)

    assert list(answer) == ["episode"]
    assert list(answer["episode"]) == FIELDS


async def test_three_fields_of_a_rich_episode_save_over_ninety_percent(recall: Caller) -> None:
    asked = ["id", "task_description", "outcome_type"]
    whole = await recall.board.call("get_episode", {"episode_id": RICH_EPISODE})
    few = await recall.board.call("get_episode", {"episode_id": RICH_EPISODE}, include_fields=asked)

    assert list(few.structured["episode"]) == asked
    before, after = (count_tokens(compact(r.structured)) for r in (whole, few))
    assert 2300 <= before <= 2700
    assert after < before / 10


async def test_ids_follow_each_other_and_are_not_used_again(recall: Caller) -> None:
    first = await begin(recall)
    await recall("delete_episode", episode_id=first)

    assert (first, await begin(recall)) == ("ep-0015", "ep-0016")


async def test_labels_are_normalised(recall: Caller) -> None:
    created = await recall("create_episode", **TASK, tags=["Cache", "cache ", "menu"])

    assert created["episode"]["tags"] == ["cache", "menu"]
    assert created["episode"]["domain"] == "web-shop"


async def test_completing_scores_times_and_mines_the_episode(
    recall: Caller, remembered: World
) -> None:
    episode = await begin(recall, complexity="simple")
    for tool, success in (("grep", True), ("read_file", True), ("pytest", False), ("git", True)):
        step = {"tool": tool, "action": "x", "success": success}
        await recall("add_episode_step", episode_id=episode, **step)
    remembered.clock.forward(minutes=5)

    done = await recall(
        "complete_episode",
        episode_id=episode,
        outcome_type="success",
        reflection={"summary": "Fine."},
        artifacts=[{"kind": "commit", "name": "c", "location": "shop@1"}],
    )

    ended = done["episode"]
    assert (ended["status"], ended["duration_ms"]) == ("completed", 300_000)
    assert ended["reward_score"] == 0.95  # 0.7 outcome + 0.2 * 3/4 clean + 0.1 short
    assert [p["description"] for p in ended["patterns"]] == [
        "Use grep, then read_file",
        "When pytest fails, go on with git",
    ]
    assert ended["reflection"]["insights"] == []
    assert ended["artifacts"][0]["location"] == "shop@1"


async def test_a_completed_episode_is_fixed_but_can_still_be_described(recall: Caller) -> None:
    step = {"episode_id": "ep-0002", "tool": "git", "action": "Push"}
    again = await recall.refused("complete_episode", episode_id="ep-0002", outcome_type="failure")
    rescored = await recall.refused("update_episode", episode_id="ep-0002", complexity="simple")

    assert "is fixed" in await recall.refused("add_episode_step", **step)
    assert "is fixed" in again
    assert "is fixed" in rescored
    described = await recall("update_episode", episode_id="ep-0002", domain="orders")
    assert described["episode"]["domain"] == "orders"


async def test_a_query_recalls_the_episode_that_fits_best(recall: Caller) -> None:
    async def recalled(query: str, **filters: str) -> str:
        return (await recall("query_memory", query=query, **filters))["episode"]["id"]

    assert await recalled("token refresh fails under load") == RICH_EPISODE
    assert await recalled("report query too slow") == "ep-0003"
    assert await recalled("flaky tests") == "ep-0004"
    assert await recalled("redis", domain="web-shop") == "ep-0010"
    assert await recalled("imports stop", outcome_type="failure") == "ep-0011"


async def test_of_episodes_that_fit_alike_the_better_one_is_recalled(recall: Caller) -> None:
    for outcome in ("failure", "success"):
        episode = await begin(recall)
        await recall("complete_episode", episode_id=episode, outcome_type=outcome)

    best = await recall("query_memory", query="cache the menu")

    assert best["episode"]["outcome_type"] == "success"


async def test_a_query_that_fits_nothing_says_what_there_is(recall: Caller) -> None:
    assert "domains in memory: data-pipeline, database" in await recall.refused(
        "query_memory", query="zebra stripes"
    )
    assert "No episode" in await recall.refused("query_memory", query="redis", domain="nowhere")


async def test_what_was_learned_can_be_recalled_by(recall: Caller) -> None:
    episode = await begin(recall)
    await recall("add_episode_step", episode_id=episode, tool="curl", action="Probe the varnish")

    found = await recall("query_memory", query="varnish")

    assert found["episode"]["id"] == episode


async def test_lists_filter_and_page(recall: Caller) -> None:
    failed = await recall("list_episodes", outcome_type="failure")
    tagged = await recall("list_episodes", tag="Redis")
    page = await recall("list_episodes", limit=2, offset=2)

    assert [e["id"] for e in failed["episodes"]] == ["ep-0011", "ep-0005"]
    assert [e["id"] for e in tagged["episodes"]] == ["ep-0010", "ep-0001"]
    assert ([e["id"] for e in page["episodes"]], page["total"]) == (["ep-0012", "ep-0011"], 14)


async def test_tags_are_swapped_in_one_step(recall: Caller) -> None:
    changed = await recall("tag_episode", episode_id="ep-0003", add=["SQL"], remove=["index"])
    missing = await recall.refused("tag_episode", episode_id="ep-0003", remove=["indexes"])

    assert changed["tags"] == ["query", "report", "sql"]
    assert "no tag on this episode 'indexes'" in missing


async def test_a_deleted_episode_is_forgotten_everywhere(recall: Caller) -> None:
    gone = await recall("delete_episode", episode_id="ep-0010")

    assert gone == {"deleted": "ep-0010", "steps": 6, "relationships": 1}
    related = (await recall("get_episode", episode_id="ep-0001"))["episode"]["relationships"]
    assert [r["episode_id"] for r in related] == ["ep-0002"]
    assert "no episode 'ep-0010'" in await recall.refused("get_episode", episode_id="ep-0010")
    assert "No episode" in await recall.refused("query_memory", query="session store pool")
