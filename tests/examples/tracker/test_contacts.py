"""Contacts: duplicates, merging, imports, silence."""

from __future__ import annotations

import pytest
from tests.examples.world import TrackerWorld

pytestmark = pytest.mark.anyio


async def test_contacts_with_one_phone_or_name_are_probably_one(world: TrackerWorld) -> None:
    pairs = (await world.ana("find_duplicate_contacts"))["pairs"]

    assert [(p["keep"]["id"], p["other"]["id"]) for p in pairs] == [(1, 3)]
    assert pairs[0]["because"] == "same phone number"


async def test_a_merge_moves_everything_and_fills_gaps_only(world: TrackerWorld) -> None:
    await world.ana("update_contact", contact=3, position="CTO", notes="Prefers mail.")
    await world.ana("update_contact", contact=1, notes="Prefers calls.")
    await world.ana("log_interaction", contact=3, kind="email", summary="Asked again.")
    await world.ana("link_contact_to_issue", contact=3, issue="WEB-2")
    await world.ana("link_contact_to_issue", contact=3, issue="WEB-3")

    merged = await world.ana("merge_contacts", keep=1, other=3)

    kept = merged["contact"]
    assert (kept["position"], kept["notes"]) == ("CTO", "Prefers calls.")
    assert [i["key"] for i in kept["issues"]] == ["WEB-2", "WEB-3"]
    assert (len(kept["interactions"]), merged["moved_interactions"]) == (2, 1)
    assert "no contact" in await world.ana.refused("get_contact", contact=3)
    assert "itself" in await world.ana.refused("merge_contacts", keep=1, other=1)


async def test_an_address_belongs_to_one_contact_whatever_its_case(world: TrackerWorld) -> None:
    taken = await world.ana.refused("create_contact", name="M", email="MARCO@trattoria.example")
    malformed = await world.ana.refused("update_contact", contact=1, email="nowhere")

    assert "contact 2, Marco Rossi" in taken
    assert "not an e-mail address" in malformed


async def test_an_import_adds_updates_and_reports_what_it_left_out(world: TrackerWorld) -> None:
    rows = [
        "Name,Email,Company",
        "Kim Berg,kim@berg.example,Berg",
        "Marco Rossi,marco@trattoria.example,Rossi & Sons",
        "Nobody,,",
        '"Lee, Ann",ann@lee.example,',
    ]
    done = await world.ana("import_contacts", csv_text="\n".join(rows))

    assert (done["added"], done["updated"]) == (2, 1)
    assert done["rejected"] == ["line 4: needs a name and a proper e-mail address"]
    assert (await world.ana("get_contact", contact=2))["company"] == "Rossi & Sons"
    found = await world.ana("list_contacts", text="lee, ann")
    assert found["total"] == 1


async def test_an_import_without_the_needed_columns_adds_nothing(world: TrackerWorld) -> None:
    why = await world.ana.refused("import_contacts", csv_text="name,phone\nKim,123")

    assert "needs name and email; it has name, phone" in why
    assert (await world.ana("list_contacts"))["total"] == 3


async def test_silence_is_counted_from_the_last_interaction(world: TrackerWorld) -> None:
    silent = await world.ana("list_silent_contacts", days=30)
    world.clock.forward(days=40)
    later = await world.ana("list_silent_contacts", days=30)

    assert [c["contact"]["id"] for c in silent["contacts"]] == [2, 3]
    assert [c["contact"]["id"] for c in later["contacts"]] == [2, 3, 1]
    assert later["contacts"][2]["open_issues"] == 1


async def test_an_interaction_cannot_lie_in_the_future(world: TrackerWorld) -> None:
    plan = {"contact": 1, "kind": "meeting", "summary": "x", "at": "2026-04-01T10:00:00Z"}

    assert "create_calendar_event" in await world.ana.refused("log_interaction", **plan)


async def test_deleting_takes_an_admin_and_the_interactions_with_it(world: TrackerWorld) -> None:
    assert "role" in await world.chen.refused("delete_contact", contact=1)
    await world.ana("delete_contact", contact=1)

    assert (await world.ana("fulltext_search", query="Holm", kinds=["contact"]))["total"] == 1
