"""Records in files: private, bounded, and in memory where files cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pegboard.core.json import Json
from pegboard.store.files import FileRecords

pytestmark = pytest.mark.anyio


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_making_one_touches_no_disk(tmp_path: Path) -> None:
    FileRecords(tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []


async def test_files_are_for_their_owner_alone_and_reveal_no_key(tmp_path: Path) -> None:
    await FileRecords(tmp_path / "runs").update("principal:ana", lambda _: {"a": 1}, ttl=60)
    [path] = (tmp_path / "runs").glob("*.json")
    assert path.stat().st_mode & 0o077 == 0
    assert (tmp_path / "runs").stat().st_mode & 0o077 == 0
    assert "ana" not in path.name


async def test_expired_records_are_removed_with_the_next_one(tmp_path: Path) -> None:
    clock = Clock()
    records = FileRecords(tmp_path / "runs", clock=clock)
    await records.update("old", lambda _: 1, ttl=60)
    clock.now += 61
    assert await records.get("old") is None
    await records.update("new", lambda _: 2, ttl=60)
    assert len(list((tmp_path / "runs").glob("*.json"))) == 1


async def test_over_their_limit_the_records_that_expire_first_go_first(tmp_path: Path) -> None:
    records = FileRecords(tmp_path / "runs", max_bytes=250)
    value: Json = "x" * 98  # 100 bytes with its quotes
    for key, ttl in (("a", 20), ("b", 10), ("c", 30)):
        await records.update(key, lambda _: value, ttl=ttl)
    assert [await records.get(key) for key in "abc"] == [value, None, value]


async def test_a_broken_file_reads_as_nothing(tmp_path: Path) -> None:
    records = FileRecords(tmp_path / "runs")
    await records.update("k", lambda _: {"a": 1}, ttl=60)
    [path] = (tmp_path / "runs").glob("*.json")
    expiry = path.stat().st_mtime
    path.write_bytes(b'{"a"')
    os.utime(path, (expiry, expiry))
    assert await records.get("k") is None
    assert await records.update("k", lambda old: [old], ttl=60) == [None]


async def test_where_files_cannot_be_written_records_are_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "runs").write_text("not a folder")
    records = FileRecords(tmp_path / "runs")
    assert await records.update("k", lambda _: 1, ttl=60) == 1
    assert await records.update("k", lambda old: old + 1, ttl=60) == 2
    assert await records.get("k") == 2
    assert await records.update("k", lambda _: None) is None
    assert await records.get("k") is None
    assert [record.message[:24] for record in caplog.records] == ["Runs are in memory only:"]


async def test_a_record_that_can_no_longer_be_written_is_changed_in_memory(tmp_path: Path) -> None:
    records = FileRecords(tmp_path / "runs")
    await records.update("k", lambda _: ["suspended"], ttl=60)
    lock = tmp_path / "runs" / ".lock"
    lock.unlink()
    lock.mkdir()  # from now on nothing can be written, as on a full disk
    changed: Json = ["suspended", "taken"]
    assert await records.update("k", lambda known: [*(known or []), "taken"], ttl=60) == changed
    assert await records.get("k") == changed
