"""Documents: versions, lost updates, diffs, links."""

from __future__ import annotations

import pytest
from tests.examples.world import TrackerWorld

pytestmark = pytest.mark.anyio


async def test_every_version_stays_readable(world: TrackerWorld) -> None:
    latest = await world.ana("get_document", document="release-plan")
    first = await world.ana("get_document", document="release-plan", version=1)

    assert (latest["version"], latest["author"]) == (2, "ben")
    assert (first["version"], first["author"]) == (1, "ana")
    assert "After the release" in latest["body"]
    assert "After the release" not in first["body"]
    missing = await world.ana.refused("get_document", document="release-plan", version=7)
    assert "versions 1 to 2" in missing


async def test_a_change_made_in_between_is_not_lost(world: TrackerWorld) -> None:
    why = await world.ana.refused(
        "update_document", document="release-plan", body="mine", expected_version=1
    )

    assert "at version 2 by ben" in why
    saved = await world.ana(
        "update_document", document="release-plan", body="mine", expected_version=2
    )
    assert saved["version"] == 3


async def test_saving_the_same_text_makes_no_version(world: TrackerWorld) -> None:
    body = (await world.ana("get_document", document="release-plan"))["body"]

    saved = await world.ana("update_document", document="release-plan", body=body)

    assert saved["version"] == 2


async def test_a_diff_counts_lines_added_and_removed(world: TrackerWorld) -> None:
    latest = await world.ana("diff_document_versions", document="release-plan")
    same = await world.ana(
        "diff_document_versions", document="release-plan", from_version=2, to_version=2
    )

    assert (latest["from_version"], latest["to_version"]) == (1, 2)
    assert (latest["added"], latest["removed"]) == (4, 0)
    assert "+Watch error rates for two hours." in latest["diff"]
    assert same["diff"] == ""


async def test_a_restored_version_becomes_the_latest_and_keeps_those_between(
    world: TrackerWorld,
) -> None:
    restored = await world.ana("restore_document_version", document="release-plan", version=1)
    history = await world.ana("list_document_versions", document="release-plan")

    first = await world.ana("get_document", document="release-plan", version=1)
    assert restored["body"] == first["body"]
    assert [(v["version"], v["message"]) for v in history["versions"]] == [
        (3, "Restored version 1"),
        (2, "What comes after"),
        (1, "Created"),
    ]


async def test_links_tell_pages_from_broken_ones_and_from_issues(world: TrackerWorld) -> None:
    plan = await world.ana("get_document_links", document="release-plan")
    guide = await world.ana("get_document_links", document="api-guidelines")

    assert (plan["links_to"], plan["broken"]) == (["api-guidelines"], ["release-checklist"])
    assert plan["issues"] == ["WEB-1", "WEB-3"]
    assert guide["linked_from"] == ["release-plan"]


async def test_a_linked_page_cannot_be_deleted(world: TrackerWorld) -> None:
    assert "release-plan link" in await world.ana.refused(
        "delete_document", document="api-guidelines"
    )
    await world.ana("delete_document", document="release-plan")
    gone = await world.ana("delete_document", document="api-guidelines")

    assert gone["slug"] == "api-guidelines"
    assert (await world.ana("list_documents"))["documents"] == []
    assert (await world.ana("fulltext_search", query="cursor", kinds=["document"]))["total"] == 0


async def test_the_outline_has_levels_and_lines(world: TrackerWorld) -> None:
    outline = await world.ana("get_document_outline", document="release-plan")

    assert [(h["level"], h["title"], h["line"]) for h in outline["headings"]] == [
        (1, "Release plan", 1),
        (2, "Before", 5),
        (2, "The day", 11),
        (2, "After the release", 15),
    ]


async def test_slugs_are_unique_and_unknown_ones_get_the_nearest(world: TrackerWorld) -> None:
    page = {"project": "WEB", "slug": "release-plan", "title": "Again"}

    assert "already" in await world.ana.refused("create_document", **page)
    assert "release-plan" in await world.ana.refused("get_document", document="releaseplan")
