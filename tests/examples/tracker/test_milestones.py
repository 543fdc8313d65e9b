"""Milestones: planning, burndown, forecast, closing."""

from __future__ import annotations

import pytest
from tests.examples.world import TrackerWorld

pytestmark = pytest.mark.anyio


async def test_progress_and_state_follow_issues_and_calendar(world: TrackerWorld) -> None:
    listed = await world.ana("list_milestones", project="WEB")
    sprint = listed["milestones"][0]

    assert (sprint["state"], sprint["open_issues"], sprint["percent_done"]) == ("active", 4, 20.0)
    world.clock.forward(days=7)
    later = (await world.ana("get_milestone", milestone=1))["state"]
    assert later == "overdue"


async def test_the_burndown_falls_on_the_day_an_issue_was_closed(world: TrackerWorld) -> None:
    chart = await world.ana("get_burndown", milestone=1)

    remaining = {day["day"]: day["remaining"] for day in chart["days"]}
    assert remaining["2026-03-04"] == 5
    assert remaining["2026-03-05"] == 4
    assert list(remaining)[-1] == "2026-03-09"
    assert chart["days"][0]["ideal"] == 5
    assert chart["ahead"] < 0


async def test_in_hours_only_estimates_count(world: TrackerWorld) -> None:
    chart = await world.ana("get_burndown", milestone=1, unit="hours")

    assert (chart["total"], chart["remaining"]) == (29.0, 25.0)


async def test_a_milestone_takes_only_open_issues_of_its_project_or_none_at_all(
    world: TrackerWorld,
) -> None:
    foreign = await world.ana.refused("plan_issues", milestone=2, issues=["API-3", "WEB-4"])
    closed = await world.ana.refused("plan_issues", milestone=1, issues=["WEB-1"])
    await world.ana("unplan_issues", milestone=2, issues=["API-3"])
    again = await world.ana.refused("unplan_issues", milestone=2, issues=["API-3"])

    assert "WEB-4 is not in API" in foreign
    assert "WEB-1 is done" in closed
    assert "API-3 not in milestone 2" in again


async def test_open_issues_are_carried_over_when_a_milestone_closes(world: TrackerWorld) -> None:
    sprint = {"project": "WEB", "starts_on": "2026-03-16", "due_on": "2026-03-27"}
    following = await world.ana("create_milestone", name="Sprint 9", **sprint)

    closing = await world.ana("close_milestone", milestone=1, carry_to=following["id"])
    carried = await world.ana("get_milestone", milestone=following["id"])

    assert closing["carried_over"] == ["WEB-2", "WEB-3", "WEB-4", "WEB-5"]
    assert (closing["milestone"]["state"], closing["milestone"]["closed_issues"]) == ("closed", 1)
    assert len(carried["issues"]) == 4
    assert "was closed" in await world.ana.refused("plan_issues", milestone=1, issues=["WEB-4"])


async def test_carrying_over_to_another_project_changes_nothing(world: TrackerWorld) -> None:
    assert "same project" in await world.ana.refused("close_milestone", milestone=1, carry_to=2)
    assert (await world.ana("get_milestone", milestone=1))["open_issues"] == 4


async def test_the_forecast_extends_the_rate_of_the_last_four_weeks(world: TrackerWorld) -> None:
    forecast = await world.ana("forecast_milestone", milestone=1)
    stalled = await world.ana("forecast_milestone", milestone=2)

    assert (forecast["remaining_issues"], forecast["closed_per_week"]) == (4, 0.25)
    assert forecast["likely_end"] == "2026-06-29"  # four issues at one in four weeks
    assert forecast["days_late"] == 108
    assert (stalled["likely_end"], stalled["on_track"]) == (None, False)


async def test_a_milestone_ends_after_it_starts_and_has_its_own_name(world: TrackerWorld) -> None:
    days = {"starts_on": "2026-03-27", "due_on": "2026-03-16"}
    backwards = await world.ana.refused("create_milestone", project="WEB", name="X", **days)
    namesake = await world.ana.refused("update_milestone", milestone=2, due_on="2026-01-01")
    days = {"starts_on": "2026-03-16", "due_on": "2026-03-27"}
    taken = await world.ana.refused("create_milestone", project="WEB", name="Sprint 8", **days)

    assert "ends after it starts" in backwards
    assert "ends after it starts" in namesake
    assert "already" in taken
