"""Storage: paths, moves, trash, quota."""

from __future__ import annotations

import pytest
from tests.examples.world import Caller, TrackerWorld

pytestmark = pytest.mark.anyio


async def paths(call: Caller, path: str = "/") -> list[str]:
    return [i["path"] for i in (await call("list_folder", path=path, recursive=True))["items"]]


async def test_missing_folders_are_created_on_the_way(world: TrackerWorld) -> None:
    await world.ana("upload_file", path="/a/b/c.txt", content="x")

    assert await paths(world.ana, "/a") == ["/a/b", "/a/b/c.txt"]
    top = await world.ana("list_folder")
    assert [(i["path"], i["kind"]) for i in top["items"]] == [
        ("/a", "folder"),
        ("/design", "folder"),
        ("/runbooks", "folder"),
    ]


async def test_nothing_is_stored_below_a_file(world: TrackerWorld) -> None:
    why = await world.ana.refused("upload_file", path="/design/colors.css/x", content="x")

    assert "/design/colors.css is a file" in why


@pytest.mark.parametrize("path", ["design/x", "/design/../x"])
async def test_paths_start_at_the_root_and_do_not_climb(world: TrackerWorld, path: str) -> None:
    assert "path" in (await world.ana.refused("upload_file", path=path, content="x")).lower()


async def test_a_file_is_replaced_only_when_asked_and_can_be_brought_back(
    world: TrackerWorld,
) -> None:
    path = "/design/colors.css"
    assert "replace=true" in await world.ana.refused("upload_file", path=path, content="new")

    await world.ana("upload_file", path=path, content="new", replace=True)
    old = (await world.ana("list_trash"))["items"][0]
    assert "taken by now" in await world.ana.refused("restore_stored_file", item=old["id"])
    await world.ana("move_stored_file", path=path, to="/design/new.css")
    await world.ana("restore_stored_file", item=old["id"])

    assert "--brand" in (await world.ana("read_stored_file", path=path))["content"]
    assert (await world.ana("read_stored_file", path="/design/new.css"))["content"] == "new"


async def test_a_moved_folder_takes_everything_below_with_it(world: TrackerWorld) -> None:
    await world.ana("upload_file", path="/design/icons/a.svg", content="<svg/>")
    await world.ana("upload_file", path="/designs.txt", content="not below /design")

    await world.ana("move_stored_file", path="/design", to="/brand/2026")

    assert await paths(world.ana, "/brand") == [
        "/brand/2026",
        "/brand/2026/colors.css",
        "/brand/2026/icons",
        "/brand/2026/icons/a.svg",
    ]
    assert "/designs.txt" in await paths(world.ana)
    into_itself = await world.ana.refused("move_stored_file", path="/brand", to="/brand/x")
    assert "into itself" in into_itself


async def test_a_deleted_folder_comes_back_item_by_item(world: TrackerWorld) -> None:
    trashed = (await world.ana("delete_stored_file", path="/runbooks"))["items"]
    assert [i["path"] for i in trashed] == ["/runbooks", "/runbooks/backup.md"]
    assert await paths(world.ana) == ["/design", "/design/colors.css"]

    await world.ana("restore_stored_file", item=trashed[1]["id"])

    assert await paths(world.ana, "/runbooks") == ["/runbooks/backup.md"]


async def test_only_emptying_the_trash_frees_space(world: TrackerWorld) -> None:
    await world.ana("delete_stored_file", path="/runbooks/backup.md")
    trashed = await world.ana("get_storage_quota")

    assert "role" in await world.chen.refused("empty_trash")
    cleared = await world.ana("empty_trash")
    after = await world.ana("get_storage_quota")

    assert cleared == {"items": 1, "freed_bytes": trashed["trash_bytes"]}
    assert after["used_bytes"] == trashed["used_bytes"] - cleared["freed_bytes"]


async def test_the_quota_counts_equal_content_once(world: TrackerWorld) -> None:
    before = await world.ana("get_storage_quota")
    for name in ("one", "two"):
        await world.ana("upload_file", path=f"/{name}", content="z" * 5000)
    after = await world.ana("get_storage_quota")

    assert after["used_bytes"] - before["used_bytes"] == 5000
    assert after["files_bytes"] - before["files_bytes"] == 10000
    assert after["largest"][0]["size"] == 5000


async def test_reading_a_folder_or_listing_a_file_says_what_it_is(world: TrackerWorld) -> None:
    assert "is a folder" in await world.ana.refused("read_stored_file", path="/design")
    assert "is a file" in await world.ana.refused("list_folder", path="/design/colors.css")
    assert "/design" in await world.ana.refused("list_folder", path="/desgn")
