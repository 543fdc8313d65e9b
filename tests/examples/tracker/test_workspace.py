"""Workspace: roles, leaving, settings, labels."""

from __future__ import annotations

import pytest
from tests.examples.world import TrackerWorld

pytestmark = pytest.mark.anyio


async def test_the_caller_is_who_the_server_acts_as(world: TrackerWorld) -> None:
    assert (await world.ben("get_current_member"))["role"] == "admin"
    assert (await world.dora("get_current_member"))["role"] == "guest"


async def test_only_an_owner_can_make_another_owner(world: TrackerWorld) -> None:
    eva = {"handle": "eva", "name": "Eva", "email": "eva@example.com", "role": "owner"}

    assert "role owner" in await world.ben.refused("invite_member", **eva)
    assert (await world.ana("invite_member", **eva))["role"] == "owner"
    assert "role owner" in await world.ben.refused("change_member_role", member="eva", role="guest")


async def test_the_last_owner_can_neither_be_demoted_nor_leave(world: TrackerWorld) -> None:
    demoting = await world.ana.refused("change_member_role", member="ana", role="member")
    leaving = await world.ben.refused("deactivate_member", member="ana")

    assert "only owner" in demoting
    assert "only owner" in leaving


async def test_who_leaves_hands_over_open_issues_and_their_timer_stops(
    world: TrackerWorld,
) -> None:
    await world.chen("start_timer", issue="WEB-5")
    world.clock.forward(minutes=30)

    gone = await world.ana("deactivate_member", member="chen", reassign_to="ben")

    assert gone["reassigned"] == ["API-2", "WEB-5"]
    entries = await world.ana("list_time_entries", issue="WEB-5")
    assert [e["minutes"] for e in entries["entries"]] == [30]
    assert "deactivated" in await world.ana.refused("assign_issue", issue="WEB-4", assignee="chen")
    assert "chen" not in [m["handle"] for m in (await world.ana("list_members"))["members"]]


async def test_handles_and_addresses_are_taken_for_good(world: TrackerWorld) -> None:
    taken = await world.ana.refused(
        "invite_member", handle="ben", name="Other", email="other@example.com"
    )
    malformed = await world.ana.refused("invite_member", handle="eva", name="E", email="nowhere")

    assert "ben" in taken
    assert "not an e-mail address" in malformed


async def test_settings_change_one_by_one_and_hours_must_run_forward(world: TrackerWorld) -> None:
    changed = await world.ana("update_workspace", working_hours="8-18")

    assert (changed["name"], changed["working_hours"]) == ("Northwind", "8-18")
    assert "earlier" in await world.ana.refused("update_workspace", working_hours="18-8")
    assert "role" in await world.chen.refused("update_workspace", name="Ours")


async def test_a_deleted_label_leaves_the_issues_that_carried_it(world: TrackerWorld) -> None:
    gone = await world.ana("delete_label", name="regression")

    assert gone["issues"] == 1
    assert (await world.ana("get_issue", issue="WEB-3"))["labels"] == ["customer"]
    assert "Known:" in await world.ana.refused("delete_label", name="regresion")


async def test_labels_are_lower_case_and_unique(world: TrackerWorld) -> None:
    assert (await world.ana("create_label", name="Docs"))["name"] == "docs"
    assert "already" in await world.ana.refused("create_label", name="DOCS")
