"""Channels: membership, threads, unread marks, pins."""

from __future__ import annotations

import pytest
from tests.examples.world import TrackerWorld

pytestmark = pytest.mark.anyio


async def test_private_channels_exist_only_for_their_members(world: TrackerWorld) -> None:
    await world.ana("post_message", channel="hiring", body="An offer goes out to Kim.")

    listed = [c["name"] for c in (await world.ben("list_channels"))["channels"]]
    assert listed == ["general", "releases"]
    assert "no channel 'hiring'" in await world.ben.refused("read_channel", channel="hiring")
    assert "no channel 'hiring'" in await world.ben.refused("join_channel", channel="hiring")
    assert (await world.ben("fulltext_search", query="Kim"))["total"] == 0
    feed = await world.ben("list_activity", kind="message", limit=5)
    assert not any("Kim" in event["summary"] for event in feed["events"])

    await world.ana("invite_to_channel", channel="hiring", member="ben")
    assert (await world.ben("fulltext_search", query="Kim"))["total"] == 1


async def test_only_members_write(world: TrackerWorld) -> None:
    why = await world.chen.refused("post_message", channel="releases", body="Hi")

    assert "join_channel" in why
    await world.chen("join_channel", channel="#releases")
    posted = await world.chen("post_message", channel="releases", body="Hi")
    assert posted["author"] == "chen"


async def test_what_others_write_is_unread_until_marked(world: TrackerWorld) -> None:
    before = await world.ana("list_unread_messages")
    await world.ana("mark_channel_read", channel="general")
    after = await world.ana("list_unread_messages")
    back = await world.ana("mark_channel_read", channel="general", up_to=3)

    assert [m["author"] for m in before["channels"]["general"]] == ["chen", "ben"]
    assert "general" not in after["channels"]
    assert back["unread"] == 1


async def test_one_who_joins_has_nothing_to_catch_up_on(world: TrackerWorld) -> None:
    joined = await world.chen("join_channel", channel="releases")

    assert joined["unread"] == 0


async def test_a_thread_is_one_whichever_message_is_answered(world: TrackerWorld) -> None:
    await world.ben("reply_in_thread", message=2, body="It is.")

    thread = await world.ben("get_thread", message=2)
    page = await world.ben("read_channel", channel="releases")

    assert thread["root"]["id"] == 1
    assert [r["author"] for r in thread["replies"]] == ["ana", "ben"]
    assert [(m["id"], m["replies"]) for m in page["messages"]] == [(1, 2)]


async def test_writers_of_a_thread_hear_of_replies(world: TrackerWorld) -> None:
    await world.ana("mark_all_notifications_read")
    await world.ben("reply_in_thread", message=2, body="It is in.")

    inbox = await world.ana("list_notifications")
    assert [n["text"] for n in inbox["notifications"]] == ["ben in #releases: It is in."]


async def test_history_is_read_page_by_page(world: TrackerWorld) -> None:
    for n in range(5):
        await world.ana("post_message", channel="releases", body=f"number {n}")

    newest = await world.ana("read_channel", channel="releases", limit=4)
    older = await world.ana("read_channel", channel="releases", limit=4, before=newest["older"])

    assert [m["body"] for m in newest["messages"]] == [f"number {n}" for n in range(1, 5)]
    assert [m["body"] for m in older["messages"]] == ["Release branch for 4.1 is cut.", "number 0"]
    assert older["older"] is None


async def test_a_channel_holds_five_pins(world: TrackerWorld) -> None:
    numbers = [
        (await world.ana("post_message", channel="general", body=f"{n}"))["id"] for n in range(6)
    ]
    for number in numbers[:5]:
        await world.ana("pin_message", message=number)

    assert "five pins" in await world.ana.refused("pin_message", message=numbers[5])
    await world.ana("pin_message", message=numbers[0], pinned=False)
    assert (await world.ana("pin_message", message=numbers[5]))["pinned"] is True


async def test_an_archived_channel_is_read_only_and_its_name_stays_taken(
    world: TrackerWorld,
) -> None:
    assert "role" in await world.chen.refused("archive_channel", channel="releases")
    await world.ben("archive_channel", channel="releases")

    assert "archived" in await world.ana.refused("post_message", channel="releases", body="x")
    assert (await world.ana("read_channel", channel="releases"))["messages"]
    assert "is or was" in await world.ana.refused("create_channel", name="releases")


async def test_the_last_member_of_a_private_channel_cannot_leave(world: TrackerWorld) -> None:
    assert "last member" in await world.ana.refused("leave_channel", channel="hiring")
    left = await world.ana("leave_channel", channel="releases")
    assert left["members"] == ["ben"]


async def test_messages_are_edited_by_their_author_only(world: TrackerWorld) -> None:
    assert "by ben" in await world.ana.refused("edit_message", message=1, body="x")

    edited = await world.ben("edit_message", message=1, body="The branch for 4.1 is cut.")
    assert edited["edited_at"] == world.clock.text
    assert (await world.ana("fulltext_search", query="branch", kinds=["message"]))["total"] == 1
