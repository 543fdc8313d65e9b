"""Projects: archiving, taking part, health."""

from __future__ import annotations

import pytest
from tests.examples.world import TrackerWorld

pytestmark = pytest.mark.anyio


async def test_projects_come_with_their_open_and_closed_issues(world: TrackerWorld) -> None:
    listed = await world.ana("list_projects")

    assert {p["key"]: (p["open_issues"], p["closed_issues"]) for p in listed["projects"]} == {
        "API": (3, 0),
        "OPS": (1, 1),
        "WEB": (4, 1),
    }


async def test_an_unknown_project_is_answered_with_the_nearest(world: TrackerWorld) -> None:
    assert "Known: WEB" in await world.ana.refused("get_project", project="WEBB")


async def test_a_project_with_open_issues_is_archived_only_when_they_may_be_canceled(
    world: TrackerWorld,
) -> None:
    assert "open issues" in await world.ana.refused("archive_project", project="OPS")

    archived = await world.ana("archive_project", project="OPS", cancel_open_issues=True)

    assert archived["status"] == "archived"
    assert archived["issues_by_status"] == {"canceled": 1, "done": 1}
    timeline = await world.ana("get_issue_timeline", issue="OPS-2")
    assert timeline["steps"][-1]["detail"]["note"] == "OPS was archived"


async def test_an_archived_project_takes_no_changes_until_it_is_restored(
    world: TrackerWorld,
) -> None:
    await world.ana("archive_project", project="OPS", cancel_open_issues=True)

    assert "archived" in await world.ana.refused("create_issue", project="OPS", title="x")
    assert "archived" in await world.ana.refused("add_comment", issue="OPS-1", body="x")
    assert [p["key"] for p in (await world.ana("list_projects"))["projects"]] == ["API", "WEB"]

    await world.ana("restore_project", project="OPS")
    assert (await world.ana("create_issue", project="OPS", title="x"))["key"] == "OPS-3"


async def test_a_lead_may_archive_their_own_project_and_no_other(world: TrackerWorld) -> None:
    why = await world.chen.refused("archive_project", project="API", cancel_open_issues=True)

    assert "chen is member" in why
    done = await world.chen("archive_project", project="OPS", cancel_open_issues=True)
    assert done["status"] == "archived"


async def test_the_lead_and_those_with_open_issues_stay_in_the_project(
    world: TrackerWorld,
) -> None:
    leading = await world.ana.refused("remove_project_member", project="WEB", member="ana")
    busy = await world.ana.refused("remove_project_member", project="WEB", member="chen")

    assert "leads WEB" in leading
    assert "WEB-5" in busy
    await world.ana("assign_issue", issue="WEB-5", assignee="ana")
    left = await world.ana("remove_project_member", project="WEB", member="chen")
    assert left["members"] == ["ana", "ben"]


async def test_health_names_what_pulls_the_grade_down(world: TrackerWorld) -> None:
    healthy = await world.ana("get_project_health", project="OPS")
    troubled = await world.ana("get_project_health", project="WEB")

    assert (healthy["grade"], healthy["reasons"]) == ("good", [])
    assert troubled["grade"] == "at_risk"
    assert troubled["reasons"] == ["1 overdue", "1 blocked"]


async def test_a_new_lead_becomes_a_member(world: TrackerWorld) -> None:
    changed = await world.ana("update_project", project="OPS", lead="ben")

    assert changed["lead"] == "ben"
    assert changed["members"] == ["ben", "chen"]


async def test_keys_are_two_to_six_capitals_and_never_used_twice(world: TrackerWorld) -> None:
    assert "taken" in await world.ana.refused("create_project", key="WEB", name="Again")
    assert "key" in await world.ana.refused("create_project", key="w1", name="Odd")
    assert "chen" in (await world.chen("create_project", key="NEW", name="New"))["members"]
    assert "guest" in await world.dora.refused("create_project", key="MINE", name="Mine")
