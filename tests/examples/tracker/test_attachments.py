"""Attachments: content by checksum, reading in parts, copies."""

from __future__ import annotations

import base64
import hashlib

import pytest
from tests.examples.world import TrackerWorld

pytestmark = pytest.mark.anyio


async def test_an_attachment_carries_the_checksum_of_its_content(world: TrackerWorld) -> None:
    added = await world.ana("attach_file", issue="WEB-4", filename="a.json", content='{"a": 1}')

    assert added["sha256"] == hashlib.sha256(b'{"a": 1}').hexdigest()
    assert (added["size"], added["media_type"]) == (8, "application/json")


async def test_content_that_is_not_base64_is_refused(world: TrackerWorld) -> None:
    garbage = {"filename": "x", "content": "not base64!", "encoding": "base64"}

    assert "not base64" in await world.ana.refused("attach_file", issue="WEB-4", **garbage)


async def test_a_long_file_is_read_in_parts_that_add_up(world: TrackerWorld) -> None:
    text = "".join(f"line {n}\n" for n in range(500))
    number = (await world.ana("attach_file", issue="WEB-4", filename="l.txt", content=text))["id"]

    parts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        part = await world.ana("read_attachment", attachment=number, offset=offset, length=1000)
        parts.append(part["content"])
        offset = part["next_offset"]

    assert "".join(parts) == text
    assert len(parts) == 5
    past = await world.ana.refused("read_attachment", attachment=number, offset=9999)
    assert "is past it" in past


async def test_bytes_that_are_not_text_come_back_as_base64(world: TrackerWorld) -> None:
    data = base64.b64encode(b"\xff\x00\xfe").decode()
    added = await world.ana(
        "attach_file", issue="WEB-4", filename="b.bin", content=data, encoding="base64"
    )

    part = await world.ana("read_attachment", attachment=added["id"])

    assert (part["encoding"], part["content"]) == ("base64", data)


async def test_equal_content_is_stored_once_and_stays_while_one_has_it(
    world: TrackerWorld,
) -> None:
    before = (await world.ana("get_storage_quota"))["used_bytes"]
    copy = await world.ana("copy_attachment", attachment=1, to_issue="API-1")
    shared = (await world.ana("find_duplicate_attachments"))["groups"]
    await world.ana("delete_attachment", attachment=1)

    assert (await world.ana("get_storage_quota"))["used_bytes"] == before
    assert [a["issue"] for a in shared[0]["attachments"]] == ["WEB-3", "API-1"]
    assert (await world.ana("verify_attachment", attachment=copy["id"]))["intact"] is True
    await world.ana("delete_attachment", attachment=copy["id"])
    assert (await world.ana("get_storage_quota"))["used_bytes"] < before


async def test_damaged_content_is_found_out(world: TrackerWorld) -> None:
    world.database.run("UPDATE blobs SET data = x'00'")

    verdict = await world.ana("verify_attachment", attachment=1)

    assert verdict["intact"] is False
    assert verdict["computed"] != verdict["recorded"]


async def test_names_are_unique_on_an_issue(world: TrackerWorld) -> None:
    name = "safari-trace.log"
    taken = await world.ana.refused("attach_file", issue="WEB-3", filename=name, content="x")
    other = await world.ana("attach_file", issue="WEB-3", filename="x.log", content="x")
    renaming = await world.ana.refused("rename_attachment", attachment=other["id"], filename=name)

    assert "already" in taken
    assert "already" in renaming


async def test_what_does_not_fit_the_quota_is_refused_and_not_kept(world: TrackerWorld) -> None:
    await world.ana("update_workspace", storage_quota_bytes=200)

    why = await world.ana.refused("attach_file", issue="WEB-4", filename="x", content="x" * 300)

    assert "300 bytes do not fit" in why
    assert (await world.ana("list_attachments", issue="WEB-4"))["attachments"] == []
