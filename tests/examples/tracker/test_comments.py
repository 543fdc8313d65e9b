"""Comments: threads, edits, deletion, mentions, reactions."""

from __future__ import annotations

import pytest
from tests.examples.world import TrackerWorld

pytestmark = pytest.mark.anyio


async def test_replies_stay_in_one_thread_however_deep_the_answer(world: TrackerWorld) -> None:
    await world.chen("reply_to_comment", comment=2, body="Agreed.")

    threads = (await world.ana("list_comments", issue="WEB-3"))["threads"]

    assert [t["comment"]["id"] for t in threads] == [1, 3]
    assert [r["author"] for r in threads[0]["replies"]] == ["ben", "chen"]


async def test_only_the_author_edits_and_the_earlier_text_is_kept(world: TrackerWorld) -> None:
    assert "by chen" in await world.ana.refused("edit_comment", comment=3, body="No.")

    await world.chen("edit_comment", comment=3, body="Three customers by now.")
    history = await world.ana("get_comment_history", comment=3)

    assert history["comment"]["body"] == "Three customers by now."
    assert [r["body"] for r in history["earlier"]] == [
        "Two customers wrote to us about it as well."
    ]


async def test_an_edit_to_the_same_text_leaves_no_revision(world: TrackerWorld) -> None:
    same = "Two customers wrote to us about it as well."
    await world.chen("edit_comment", comment=3, body=same)

    assert (await world.ana("get_comment_history", comment=3))["earlier"] == []


async def test_a_deleted_comment_keeps_its_place_only_when_it_was_answered(
    world: TrackerWorld,
) -> None:
    answered = await world.ana("delete_comment", comment=1)
    alone = await world.ana("delete_comment", comment=3)
    threads = await world.ana("list_comments", issue="WEB-3")

    assert (answered["left_placeholder"], alone["left_placeholder"]) == (True, False)
    assert [t["comment"]["body"] for t in threads["threads"]] == ["(deleted)"]
    assert threads["total_comments"] == 1
    assert "no comment" in await world.ana.refused("edit_comment", comment=1, body="x")


async def test_members_delete_only_their_own_comments(world: TrackerWorld) -> None:
    assert "only they or an admin" in await world.chen.refused("delete_comment", comment=2)


async def test_the_same_reaction_twice_takes_it_back(world: TrackerWorld) -> None:
    once = await world.ben("toggle_reaction", comment=3, emoji="eyes")
    twice = await world.ben("toggle_reaction", comment=3, emoji="eyes")

    assert once["reactions"] == {"eyes": ["ben"]}
    assert twice["reactions"] == {}


async def test_a_reply_opens_a_resolved_thread_again(world: TrackerWorld) -> None:
    assert "resolve its thread, 1" in await world.ana.refused("resolve_comment", comment=2)
    await world.ana("resolve_comment", comment=1)
    left = await world.ana("list_comments", issue="WEB-3", unresolved_only=True)
    await world.ben("reply_to_comment", comment=1, body="Not so fast.")
    again = await world.ana("list_comments", issue="WEB-3", unresolved_only=True)

    assert [t["comment"]["id"] for t in left["threads"]] == [3]
    assert [t["comment"]["id"] for t in again["threads"]] == [1, 3]


async def test_a_mention_is_a_whole_handle_of_an_active_member(world: TrackerWorld) -> None:
    await world.ana("add_comment", issue="WEB-5", body="Ask @bennett, mail a@ben or @chen.")

    found = await world.ana("list_mentions", member="ben")
    about_chen = await world.ana("list_mentions", member="chen")

    assert [m["issue"] for m in found["mentions"]] == ["WEB-3"]
    assert [m["issue"] for m in about_chen["mentions"]] == ["WEB-5"]
