"""Insight: metrics, health, comparison, timelines, pruning."""

from __future__ import annotations

import pytest
from tests.examples.world import Caller, World

pytestmark = pytest.mark.anyio


async def test_metrics_follow_what_is_remembered(recall: Caller) -> None:
    before = await recall("quality_metrics")
    await recall("complete_episode", episode_id="ep-0013", outcome_type="failure")
    after = await recall("quality_metrics")

    assert (before["episodes"], before["completed"], before["success_rate"]) == (14, 12, 0.75)
    assert (after["completed"], after["success_rate"]) == (13, 0.692)
    assert before["by_task_type"]["refactoring"] == 0.333
    assert after["mean_reward"] < before["mean_reward"]


async def test_metrics_can_be_limited_to_days_and_domain(recall: Caller) -> None:
    recent = await recall("quality_metrics", days=7)
    elsewhere = await recall("quality_metrics", domain="nowhere")

    assert recent["episodes"] == 3
    assert (elsewhere["success_rate"], elsewhere["median_duration_ms"]) == (None, None)


async def test_a_forgotten_episode_or_a_damaged_index_degrades_health(
    recall: Caller, remembered: World
) -> None:
    forgotten = await recall("health_check")
    patient = await recall("health_check", stale_after_hours=1000)
    remembered.database.run("DELETE FROM episode_index WHERE rowid = 3")
    damaged = await recall("health_check", stale_after_hours=1000)

    assert [c["name"] for c in forgotten["checks"] if not c["ok"]] == ["forgotten"]
    assert patient["status"] == "healthy"
    assert [c["detail"] for c in damaged["checks"] if not c["ok"]] == [
        "13 of 14 episodes are indexed"
    ]
    assert damaged["status"] == "degraded"


async def test_a_comparison_names_only_what_differs(recall: Caller) -> None:
    compared = await recall("compare_episodes", first="ep-0002", second="ep-0012")

    fields = {d["field"]: d["values"] for d in compared["differences"]}
    assert "task_type" not in fields
    assert fields["domain"] == {"ep-0002": "web-api", "ep-0012": "data-pipeline"}
    assert "Use read_file, then edit_file" in compared["shared_patterns"]
    assert compared["better"] is None
    assert "different" in await recall.refused(
        "compare_episodes", first="ep-0002", second="ep-0002"
    )


async def test_a_timeline_lays_steps_end_to_end(recall: Caller) -> None:
    timeline = await recall("get_episode_timeline", episode_id="ep-0003")

    assert [m["starts_after_ms"] for m in timeline["moments"]] == [0, 800, 1000, 1600]
    assert timeline["busy_ms"] == 2300
    assert timeline["slowest_step"] == 1
    empty = await recall("get_episode_timeline", episode_id="ep-0014")
    assert (empty["moments"], empty["slowest_step"]) == ([], None)


async def test_pruning_shows_before_it_deletes_and_keeps_what_others_need(recall: Caller) -> None:
    await recall("link_episodes", source="ep-0006", kind="depends_on", target="ep-0005")
    shown = await recall("prune_episodes", older_than_days=3)
    still = await recall("list_episodes")
    await recall("prune_episodes", older_than_days=3, dry_run=False)

    assert [e["id"] for e in shown["pruned"]] == ["ep-0011"]
    assert still["total"] == 14
    assert (await recall("list_episodes"))["total"] == 13
    assert (await recall("health_check", stale_after_hours=1000))["status"] == "healthy"
