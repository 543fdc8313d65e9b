"""Notifications: who hears of what, when and how."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from examples.tracker.events import after_quiet
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples.world import Caller, TrackerWorld

pytestmark = pytest.mark.anyio


async def texts(call: Caller, **filters: object) -> list[str]:
    inbox = await call("list_notifications", **filters)
    return [n["text"] for n in inbox["notifications"]]


@pytest.fixture
async def clean(world: TrackerWorld) -> TrackerWorld:
    """The world with every inbox read."""
    for member in (world.ana, world.ben, world.chen, world.dora):
        await member("mark_all_notifications_read")
    return world


async def test_watchers_hear_of_comments_and_the_author_does_not(clean: TrackerWorld) -> None:
    await clean.ben("add_comment", issue="WEB-3", body="Fixed on my branch.")

    told = "ben commented on WEB-3: Fixed on my branch."
    assert await texts(clean.ana) == await texts(clean.chen) == [told]
    assert await texts(clean.ben) == []


async def test_who_is_named_hears_of_it_and_watches_from_then_on(clean: TrackerWorld) -> None:
    await clean.ana("add_comment", issue="WEB-5", body="@dora please check the spelling.")
    await clean.chen("add_comment", issue="WEB-5", body="Done.")

    assert len(await texts(clean.dora)) == 2
    assert (await clean.dora("list_watched"))["subjects"] == ["issue:WEB-5"]
    await clean.dora("watch_issue", issue="WEB-5", watching=False)
    await clean.chen("add_comment", issue="WEB-5", body="Once more.")
    assert len(await texts(clean.dora)) == 2


async def test_an_assignee_hears_of_the_assignment(clean: TrackerWorld) -> None:
    await clean.ana("assign_issue", issue="WEB-4", assignee="chen")

    assert await texts(clean.chen, topic="assigned") == ["ana assigned WEB-4 to chen"]


async def test_a_topic_that_is_off_says_nothing_and_mentions_cannot_be_off(
    clean: TrackerWorld,
) -> None:
    await clean.chen("set_notification_preference", topic="comment", delivery="off")
    await clean.ben("add_comment", issue="WEB-3", body="Hello?")

    assert await texts(clean.chen) == []
    why = await clean.chen.refused("set_notification_preference", topic="mentioned", delivery="off")
    assert "inbox or digest" in why


async def test_the_digest_groups_by_subject_and_is_cleared_by_reading(clean: TrackerWorld) -> None:
    for n in range(2):
        await clean.ben("update_document", document="release-plan", body=f"version {n}")

    digest = await clean.ana("get_digest")
    assert [(g["subject"], g["count"]) for g in digest["groups"]] == [("document:release-plan", 2)]
    assert await texts(clean.ana) == []
    await clean.ana("mark_all_notifications_read")
    assert (await clean.ana("get_digest"))["total"] == 0


async def test_quiet_hours_hold_back_until_they_end(clean: TrackerWorld) -> None:
    clean.clock.forward(hours=14)  # 22:00; ana is quiet from 20 to 7
    await clean.ben("add_comment", issue="WEB-3", body="Late idea.")
    inbox = await clean.ana("list_notifications")
    assert (inbox["unread"], inbox["held_back"]) == (0, 1)

    clean.clock.forward(hours=9)
    assert await texts(clean.ana) == ["ben commented on WEB-3: Late idea."]


async def test_a_snoozed_notification_comes_back_unread(clean: TrackerWorld) -> None:
    await clean.ben("add_comment", issue="WEB-3", body="Soon.")
    number = (await clean.ana("list_notifications"))["notifications"][0]["id"]
    past = await clean.ana.refused(
        "snooze_notification", notification=number, until="2026-03-01T00:00:00Z"
    )
    snoozed = await clean.ana(
        "snooze_notification", notification=number, until="2026-03-09T10:00:00Z"
    )
    clean.clock.forward(hours=2)

    assert "after now" in past
    assert (snoozed["unread"], snoozed["held_back"]) == (0, 1)
    assert len(await texts(clean.ana)) == 1


async def test_everybody_reads_their_own_inbox_only(clean: TrackerWorld) -> None:
    await clean.ben("add_comment", issue="WEB-3", body="Hi.")
    number = (await clean.ana("list_notifications"))["notifications"][0]["id"]

    assert "of yours" in await clean.dora.refused("mark_notification_read", notification=number)
    read = await clean.ana("mark_notification_read", notification=number)
    again = await clean.ana("mark_notification_read", notification=number)
    assert (read["marked"], again["marked"], again["unread"]) == (1, 0, 0)


async def test_quiet_hours_need_two_hours_or_none(world: TrackerWorld) -> None:
    assert "two different hours" in await world.ana.refused("set_quiet_hours", from_hour=20)
    assert (await world.ana("set_quiet_hours"))["quiet_hours"] is None


@settings(deadline=None)
@given(st.integers(0, 23), st.integers(0, 23), st.integers(0, 23), st.integers(0, 59))
def test_nothing_comes_up_in_quiet_hours_nor_later_than_their_end(
    start: int, end: int, hour: int, minute: int
) -> None:
    now = datetime(2026, 3, 9, hour, minute, tzinfo=UTC)
    quiet = (
        {h % 24 for h in range(start, end if start < end else end + 24)} if start != end else set()
    )
    due = after_quiet(now, start, end)

    assert due >= now
    assert due.hour not in quiet
    assert (due == now) is (hour not in quiet)
