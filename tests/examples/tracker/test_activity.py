"""Activity: feeds, timelines, time in status, comparisons."""

from __future__ import annotations

import pytest
from tests.examples.world import TrackerWorld

pytestmark = pytest.mark.anyio
WEEK = {"first_day": "2026-03-02", "last_day": "2026-03-08"}


async def test_a_kind_takes_in_everything_below_it(world: TrackerWorld) -> None:
    feed = await world.ana("list_activity", kind="comment", limit=10)
    exact = await world.ana("list_activity", kind="comment.added", project="WEB", member="ben")

    assert {e["kind"] for e in feed["events"]} == {"comment.added"}
    assert [e["actor"] for e in exact["events"]] == ["ben"]


async def test_polling_reads_on_without_gaps_or_repeats(world: TrackerWorld) -> None:
    last = (await world.ana("list_activity", limit=1))["events"][0]["id"]
    assert (await world.ana("poll_activity", after=last))["events"] == []
    for n in range(3):
        await world.ana("create_issue", project="WEB", title=f"Issue {n}")

    first = await world.ana("poll_activity", after=last, limit=2)
    rest = await world.ana("poll_activity", after=first["next_after"], limit=2)

    assert [e["summary"][-7:] for e in first["events"] + rest["events"]] == [
        "Issue 0",
        "Issue 1",
        "Issue 2",
    ]
    assert rest["next_after"] is None


async def test_a_timeline_keeps_old_and_new_values(world: TrackerWorld) -> None:
    await world.ana("update_issue", issue="WEB-4", priority="high")

    step = (await world.ana("get_issue_timeline", issue="WEB-4"))["steps"][-1]

    assert step["detail"] == {"before": {"priority": "low"}, "after": {"priority": "high"}}


async def test_time_in_status_adds_up_to_the_lead_time(world: TrackerWorld) -> None:
    closed = await world.ana("get_status_durations", issue="WEB-1")
    still_open = await world.ana("get_status_durations", issue="WEB-5")

    hours = {s["status"]: s["hours"] for s in closed["statuses"]}
    open_hours = sum(h for status, h in hours.items() if status != "done")
    assert open_hours == pytest.approx(closed["lead_time_hours"], abs=0.05)
    assert closed["cycle_time_hours"] == pytest.approx(
        hours["in_progress"] + hours["in_review"], abs=0.05
    )
    assert (still_open["lead_time_hours"], still_open["cycle_time_hours"]) == (None, None)


async def test_a_status_visited_twice_counts_both_visits(world: TrackerWorld) -> None:
    await world.ben("transition_issue", issue="API-1", status="todo")
    world.clock.forward(hours=5)
    await world.ben("transition_issue", issue="API-1", status="in_progress")

    seen = await world.ana("get_status_durations", issue="API-1")

    assert {s["status"]: s["visits"] for s in seen["statuses"]} == {
        "backlog": 1,
        "todo": 2,
        "in_progress": 2,
    }


async def test_a_summary_counts_each_event_once_in_every_grouping(world: TrackerWorld) -> None:
    summary = await world.ana("summarize_activity", **WEEK)

    for grouping in ("by_member", "by_kind"):
        assert sum(c["count"] for c in summary[grouping]) == summary["events"]
    assert sum(summary["by_day"].values()) == summary["events"] > 20


async def test_a_contribution_calendar_shows_empty_days_and_the_longest_streak(
    world: TrackerWorld,
) -> None:
    seen = await world.ana("get_contribution_calendar", member="chen", **WEEK)

    assert [bool(d["events"]) for d in seen["days"]] == [True, True, True, True, True, False, False]
    assert seen["longest_streak"] == 5


async def test_a_comparison_sets_the_last_days_against_those_before(world: TrackerWorld) -> None:
    await world.ana("create_issue", project="WEB", title="Fresh")

    changes = (await world.ana("compare_activity", days=3))["changes"]

    by_name = {c["what"]: c for c in changes}
    assert by_name["issues created"] == {
        "what": "issues created",
        "before": 0,
        "now": 1,
        "change": 1,
    }
    assert by_name["issues closed"]["before"] == 2
    assert by_name["issues closed"]["change"] == -2


async def test_contributors_are_ranked_by_what_is_asked_for(world: TrackerWorld) -> None:
    by_time = await world.ana("list_top_contributors", sort="minutes_logged", **WEEK)

    assert [(c["member"], c["minutes_logged"]) for c in by_time["contributors"]][:3] == [
        ("ben", 420),
        ("chen", 270),
        ("ana", 45),
    ]


async def test_a_period_is_bounded(world: TrackerWorld) -> None:
    endless = {"first_day": "2020-01-01", "last_day": "2026-03-08"}

    assert "within 92 days" in await world.ana.refused("summarize_activity", **endless)
