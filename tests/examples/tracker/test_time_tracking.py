"""Time tracking: timers, overlaps, timesheets, reports."""

from __future__ import annotations

import pytest
from tests.examples.world import TrackerWorld

pytestmark = pytest.mark.anyio


async def test_a_timer_counts_from_start_to_stop(world: TrackerWorld) -> None:
    await world.ana("start_timer", issue="WEB-3", note="Look")
    world.clock.forward(minutes=25)
    running = (await world.ana("get_running_timer"))["timer"]
    world.clock.forward(minutes=20)
    entry = await world.ana("stop_timer", note="Looked")

    assert (running["minutes"], running["ended_at"]) == (25, None)
    assert (entry["minutes"], entry["note"]) == (45, "Looked")
    assert (await world.ana("get_running_timer"))["timer"] is None


async def test_there_is_one_timer_per_member(world: TrackerWorld) -> None:
    await world.ana("start_timer", issue="WEB-3")

    assert "runs on WEB-3" in await world.ana.refused("start_timer", issue="WEB-4")
    assert (await world.ben("start_timer", issue="WEB-4"))["member"] == "ben"
    assert "No timer" in await world.chen.refused("stop_timer")


async def test_a_forgotten_timer_is_cut_to_sixteen_hours(world: TrackerWorld) -> None:
    await world.ana("start_timer", issue="WEB-3")
    world.clock.forward(days=3)

    assert (await world.ana("stop_timer"))["minutes"] == 16 * 60


async def test_entries_of_one_member_may_touch_but_not_overlap(world: TrackerWorld) -> None:
    work = {"issue": "WEB-1", "minutes": 30}
    overlapping = await world.chen.refused("log_time", started_at="2026-03-02T11:59:00Z", **work)
    touching = await world.chen("log_time", started_at="2026-03-02T12:00:00Z", **work)
    other = await world.ben("log_time", started_at="2026-03-02T11:00:00Z", **work)

    assert "overlaps entry 1 on WEB-1" in overlapping
    assert touching["started_at"] == "2026-03-02T12:00:00Z"
    assert other["member"] == "ben"


async def test_offsets_are_turned_into_utc(world: TrackerWorld) -> None:
    entry = await world.ana(
        "log_time", issue="WEB-3", started_at="2026-03-06T09:00:00+01:00", minutes=10
    )

    assert entry["started_at"] == "2026-03-06T08:00:00Z"


async def test_work_is_logged_only_when_it_is_over(world: TrackerWorld) -> None:
    why = await world.ana.refused(
        "log_time", issue="WEB-3", started_at="2026-03-09T07:30:00Z", minutes=60
    )

    assert "in the future" in why


async def test_everybody_corrects_their_own_entries(world: TrackerWorld) -> None:
    assert "chen's" in await world.ana.refused("edit_time_entry", entry=1, minutes=5)

    edited = await world.chen("edit_time_entry", entry=1, minutes=60, billable=False)
    assert (edited["minutes"], edited["billable"]) == (60, False)
    assert "overlaps" in await world.chen.refused(
        "edit_time_entry", entry=1, started_at="2026-03-04T13:30:00Z"
    )


async def test_a_timesheet_adds_up_by_issue_and_by_day(world: TrackerWorld) -> None:
    sheet = await world.ana("get_timesheet", week="2026-03-05", member="ben")

    assert sheet["monday"] == "2026-03-02"
    assert sheet["lines"][0]["minutes_by_day"] == [0, 240, 0, 180, 0, 0, 0]
    assert sheet["minutes"] == 420 == sum(sheet["minutes_by_day"])


async def test_a_submitted_week_is_fixed(world: TrackerWorld) -> None:
    assert "not over" in await world.chen.refused("submit_timesheet", week="2026-03-09")
    assert "no entries" in await world.chen.refused("submit_timesheet", week="2026-02-23")

    sheet = await world.chen("submit_timesheet", week="2026-03-02")

    assert sheet["submitted_at"] == world.clock.text
    assert "submitted" in await world.chen.refused("delete_time_entry", entry=1)
    late = {"issue": "WEB-1", "started_at": "2026-03-06T10:00:00Z", "minutes": 5}
    assert "submitted" in await world.chen.refused("log_time", **late)
    assert (await world.ben("log_time", **late))["minutes"] == 5


async def test_reports_group_the_same_minutes_in_different_ways(world: TrackerWorld) -> None:
    period = {"first_day": "2026-03-01", "last_day": "2026-03-31"}
    by_member = await world.ana("get_time_report", by="member", **period)
    by_project = await world.ana("get_time_report", by="project", **period)
    by_day = await world.ana("get_time_report", by="day", **period)
    by_issue = await world.ana("get_time_report", by="issue", project="WEB", **period)

    assert [(g["group"], g["minutes"]) for g in by_member["groups"]] == [
        ("ben", 420),
        ("chen", 270),
        ("ana", 45),
    ]
    assert {g["group"]: g["minutes"] for g in by_project["groups"]} == {"API": 420, "WEB": 315}
    assert by_member["minutes"] == by_project["minutes"] == by_day["minutes"] == 735
    assert [g["group"] for g in by_issue["groups"]] == ["WEB-1", "WEB-3"]


async def test_estimates_are_compared_with_hours_worst_first(world: TrackerWorld) -> None:
    compared = await world.ana("compare_estimates")

    found = [(i["issue"], i["ratio"], i["closed"]) for i in compared["issues"]]
    assert found[:2] == [("WEB-1", 1.12, True), ("API-1", 0.7, False)]
    assert compared["overall_ratio"] == 0.61
