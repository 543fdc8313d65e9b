"""Issues: the workflow and its obstacles, links, moves and deletion."""

from __future__ import annotations

import pytest
from examples.tracker.words import Status
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples.world import TrackerWorld

from examples.tracker import workflow

pytestmark = pytest.mark.anyio
STATUSES: list[Status] = [*workflow.OPEN, *workflow.CLOSED]


async def test_a_new_issue_gets_the_next_key_and_starts_in_the_backlog(world: TrackerWorld) -> None:
    first = await world.ana("create_issue", project="web", title="One")
    second = await world.ana("create_issue", project="WEB", title="Two")

    assert (first["key"], second["key"]) == ("WEB-6", "WEB-7")
    assert (first["status"], first["reporter"]) == ("backlog", "ana")


async def test_a_refused_issue_does_not_use_up_a_key(world: TrackerWorld) -> None:
    why = await world.ana.refused("create_issue", project="WEB", title="One", labels=["nonsense"])
    created = await world.ana("create_issue", project="WEB", title="Two")

    assert "There is no label 'nonsense'" in why
    assert created["key"] == "WEB-6"


async def test_only_members_of_the_project_can_be_assigned(world: TrackerWorld) -> None:
    why = await world.ana.refused("assign_issue", issue="WEB-3", assignee="dora")

    assert "dora does not take part in WEB" in why
    assert "ana, ben, chen" in why
    await world.ana("add_project_member", project="WEB", member="dora")
    assert (await world.ana("assign_issue", issue="WEB-3", assignee="dora"))["assignee"] == "dora"


async def test_work_cannot_start_while_a_blocker_is_open(world: TrackerWorld) -> None:
    await world.ana("transition_issue", issue="WEB-2", status="todo")
    why = await world.ana.refused("transition_issue", issue="WEB-2", status="in_progress")
    listed = await world.ana("list_transitions", issue="WEB-2")

    assert "blocked by API-1" in why
    blocked = {t["status"]: t["allowed"] for t in listed["transitions"]}
    assert blocked == {"backlog": True, "in_progress": False, "canceled": True}

    await world.ben("transition_issue", issue="API-1", status="done")
    moved = await world.ana("transition_issue", issue="WEB-2", status="in_progress")
    assert moved["status"] == "in_progress"


async def test_work_cannot_start_without_an_assignee(world: TrackerWorld) -> None:
    await world.ana("transition_issue", issue="WEB-4", status="todo")

    why = await world.ana.refused("transition_issue", issue="WEB-4", status="in_progress")

    assert "assign_issue" in why


async def test_an_issue_is_not_done_before_its_sub_issues(world: TrackerWorld) -> None:
    child = await world.ana("create_issue", project="API", title="Part", parent="API-1")

    why = await world.ana.refused("transition_issue", issue="API-1", status="done")
    await world.ana("transition_issue", issue=child["key"], status="canceled")
    closed = await world.ana("transition_issue", issue="API-1", status="done")

    assert child["key"] in why
    assert closed["closed_at"] == world.clock.text


async def test_reopening_clears_the_closing_time(world: TrackerWorld) -> None:
    reopened = await world.ana("transition_issue", issue="WEB-1", status="todo")

    assert reopened["closed_at"] is None


async def test_blocking_links_may_not_close_into_a_circle(world: TrackerWorld) -> None:
    await world.ana("link_issues", source="WEB-2", kind="blocks", target="WEB-5")

    why = await world.ana.refused("link_issues", source="WEB-5", kind="blocks", target="API-1")
    links = await world.ana("get_issue_links", issue="WEB-5")

    assert "circle" in why
    assert links["blocked_by_chain"] == ["WEB-2", "API-1"]


async def test_marking_a_duplicate_cancels_it(world: TrackerWorld) -> None:
    await world.ana("link_issues", source="WEB-4", kind="duplicates", target="WEB-3")

    assert (await world.ana("get_issue", issue="WEB-4"))["status"] == "canceled"
    seen = await world.ana("get_issue_links", issue="WEB-3")
    kinds = {(link["kind"], link["issue"]["key"]) for link in seen["links"]}
    assert ("duplicated_by", "WEB-4") in kinds


async def test_an_unlinked_blocker_no_longer_stands_in_the_way(world: TrackerWorld) -> None:
    wrong_way = await world.ana.refused("unlink_issues", source="WEB-2", target="API-1")
    after = await world.ana("unlink_issues", source="API-1", target="WEB-2")

    assert "try the other way" in wrong_way
    assert after["links"] == []


async def test_a_moved_issue_keeps_its_history_and_loses_what_stays_behind(
    world: TrackerWorld,
) -> None:
    before = await world.ana("get_issue_timeline", issue="WEB-3")
    moved = await world.ana("move_issue", issue="WEB-3", project="OPS")
    after = await world.ana("get_issue_timeline", issue="OPS-3")

    issue = moved["issue"]
    assert (moved["old_key"], issue["key"]) == ("WEB-3", "OPS-3")
    assert (issue["milestone"], issue["assignee"]) == (None, None)
    assert after["steps"][: len(before["steps"])] == before["steps"]
    assert (await world.ana("list_comments", issue="OPS-3"))["total_comments"] == 3
    assert "There is no issue" in await world.ana.refused("get_issue", issue="WEB-3")


async def test_an_issue_with_logged_time_cannot_be_deleted(world: TrackerWorld) -> None:
    assert "Time was logged" in await world.ana.refused("delete_issue", issue="WEB-1")
    assert "role owner or admin" in await world.chen.refused("delete_issue", issue="WEB-5")
    assert (await world.ana("delete_issue", issue="WEB-5"))["deleted"] == "WEB-5"


async def test_deleting_an_issue_frees_the_space_of_its_attachments(world: TrackerWorld) -> None:
    before = (await world.ana("get_storage_quota"))["used_bytes"]
    await world.ana("attach_file", issue="WEB-5", filename="x.txt", content="a" * 100)
    gone = await world.ana("delete_issue", issue="WEB-5")

    assert gone["attachments"] == 1
    assert (await world.ana("get_storage_quota"))["used_bytes"] == before


async def test_lists_filter_by_every_argument_given(world: TrackerWorld) -> None:
    async def keys(**filters: object) -> list[str]:
        return [i["key"] for i in (await world.ana("list_issues", **filters))["issues"]]

    assert await keys(project="WEB", type="bug", status="any") == ["WEB-3", "WEB-1"]
    assert await keys(assignee="nobody", project="OPS") == ["OPS-2"]
    assert await keys(label="security") == ["API-2"]
    assert await keys(overdue=True) == ["WEB-3"]
    assert (await keys(sort="priority", limit=3)) == ["WEB-2", "WEB-3", "API-1"]


async def test_pages_of_a_list_do_not_overlap(world: TrackerWorld) -> None:
    first = await world.ana("list_issues", limit=4, sort="created")
    second = await world.ana("list_issues", limit=4, offset=4, sort="created")

    assert first["total"] == 8
    assert not {i["key"] for i in first["issues"]} & {i["key"] for i in second["issues"]}
    assert len(first["issues"]) + len(second["issues"]) == 8


async def test_an_issue_cannot_become_part_of_its_own_part(world: TrackerWorld) -> None:
    await world.ana("update_issue", issue="WEB-4", parent="WEB-5")

    assert "circle" in await world.ana.refused("update_issue", issue="WEB-5", parent="WEB-4")


async def test_an_update_without_changes_says_what_could_be_changed(world: TrackerWorld) -> None:
    assert "title, description" in await world.ana.refused("update_issue", issue="WEB-3")


async def test_labels_are_swapped_in_one_step(world: TrackerWorld) -> None:
    changed = await world.ana("label_issue", issue="WEB-3", add=["triage"], remove=["customer"])

    assert changed["labels"] == ["regression", "triage"]


@settings(deadline=None)
@given(st.sampled_from(STATUSES), st.sampled_from(STATUSES))
def test_no_rule_lets_a_blocked_issue_be_worked_on(current: Status, target: Status) -> None:
    facts = workflow.Facts(assignee="ana", open_blockers=["API-1"])
    allowed = workflow.obstacle(current, target, facts) is None

    assert not (allowed and target in ("in_progress", "done"))
    assert allowed <= (target in workflow.NEXT[current])
