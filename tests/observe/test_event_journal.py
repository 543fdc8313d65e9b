"""The journal: what one process leaves for the page of another, and what it does not."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import anyio
import pytest

from pegboard.core.events import CallFinished, CallStarted, ListAnswered, SearchAnswered
from pegboard.observe.event_journal import (
    MAX_AGE,
    MAX_FILES,
    EventJournal,
    JournalReader,
    delete_old_journals,
)


def ended(number: int = 0, **more: object) -> CallFinished:
    given = {"at": float(number), "id": str(number), "tool": "echo", "duration": 0.1}
    return CallFinished(outcome="ok", **{**given, **more})  # pyright: ignore[reportArgumentType] as given


@pytest.fixture
def journal(tmp_path: Path) -> EventJournal:
    return EventJournal(tmp_path / "journals", "key")


def reader_of(journal: EventJournal, key: str = "key") -> JournalReader:
    return JournalReader(journal.path.parent, key)


def test_another_process_reads_what_was_written_each_once(journal: EventJournal) -> None:
    reader = reader_of(journal)
    assert reader.read_new() == []
    journal.record(ended(1))
    journal.record(ListAnswered(at=2.0, mode="proxy", tools=5, duration=0.1))
    assert reader.read_new() == [
        ended(1),
        ListAnswered(at=2.0, mode="proxy", tools=5, duration=0.1),
    ]
    journal.record(ended(3))
    assert reader.read_new() == [ended(3)]
    assert reader.read_new() == []
    assert reader_of(journal, "other").read_new() == []


def test_what_was_said_is_not_written(journal: EventJournal) -> None:
    journal.record(ended(1, arguments={"password": "hunter2"}, handle="0123abcd"))
    journal.record(
        SearchAnswered(at=2.0, mode="proxy", matches=1, duration=0.1, query="hunter2", found=("x",))
    )
    journal.record(CallStarted(at=3.0, id="3", tool="echo", trace={"baggage": "hunter2"}))
    written = journal.path.read_text()
    assert "hunter2" not in written
    assert "0123abcd" not in written
    assert [event.kind for event in reader_of(journal).read_new()] == [
        "call.finished",
        "search.answered",
    ]


def test_only_the_user_can_read_it(journal: EventJournal) -> None:
    journal.record(ended())
    assert stat.S_IMODE(journal.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(journal.path.parent.stat().st_mode) == 0o700


def test_it_stays_small_and_a_reader_misses_nothing(tmp_path: Path) -> None:
    journal = EventJournal(tmp_path, "key", max_bytes=2_000)
    reader = reader_of(journal)
    seen: list[str] = []
    for number in range(200):
        journal.record(ended(number))
        seen += [event.id for event in reader.read_new() if isinstance(event, CallFinished)]
    assert seen == [str(number) for number in range(200)]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 4_000


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"event":"call.finished"}', b'{"event":"of.later"}', b"\xff\xfe", b"1"]
)
def test_a_line_that_is_none_is_passed_over(journal: EventJournal, line: bytes) -> None:
    journal.record(ended(1))
    with journal.path.open("ab") as file:
        file.write(line + b"\n")
    journal.record(ended(2))
    assert reader_of(journal).read_new() == [ended(1), ended(2)]


def test_half_a_line_is_read_when_it_is_whole(journal: EventJournal) -> None:
    journal.record(ended(1))
    line = journal.path.read_bytes()
    reader = reader_of(journal)
    reader.read_new()
    for half, read in ((line[:20], 0), (line[20:], 1)):
        with journal.path.open("ab") as file:
            file.write(half)
        assert len(reader.read_new()) == read


def test_a_folder_that_cannot_be_written_is_told_of_once_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    journal = EventJournal(tmp_path / "file", "key")
    journal.record(ended(1))
    journal.record(ended(2))
    assert caplog.text.count("pegboard ui") == 1


def test_what_is_old_or_too_much_is_swept_away(tmp_path: Path) -> None:
    for number in range(MAX_FILES + 5):
        path = tmp_path / f"key-{number}-1.jsonl"
        path.write_text("")
        os.utime(path, (number, number))
    delete_old_journals(tmp_path, now=0.0)
    assert {int(path.name.split("-")[1]) for path in tmp_path.iterdir()} == set(range(5, 25))
    delete_old_journals(tmp_path, now=MAX_AGE + 10)
    assert {int(path.name.split("-")[1]) for path in tmp_path.iterdir()} == set(range(10, 25))


def test_events_are_written_together_behind_the_answers(journal: EventJournal) -> None:
    reader = reader_of(journal)

    async def work() -> None:
        journal.record(ended(1))
        journal.record(ended(2))
        assert reader.read_new() == []
        while not (found := reader.read_new()):  # noqa: ASYNC110 - what is waited for is a file
            await anyio.sleep(0.01)
        assert [event.at for event in found] == [ended(1).at, ended(2).at]

    for _ in range(2):  # a loop that has ended takes no later event with it
        anyio.run(work)


def test_what_waits_is_written_when_it_is_closed_and_nothing_after(journal: EventJournal) -> None:
    reader = reader_of(journal)

    async def work() -> None:
        journal.record(ended(1))
        journal.close()
        journal.record(ended(2))

    anyio.run(work)
    assert len(reader.read_new()) == 1
