from __future__ import annotations

from pathlib import Path

from pegboard.upstream.stderr import BoundedLog


def test_the_file_holds_what_was_written(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "new" / "a.log")
    log.write(b"one\ntwo")
    log.note("three")
    log.close()
    assert (tmp_path / "new" / "a.log").read_bytes() == b"one\ntwo[pegboard] three\n"


def test_two_files_of_the_limit_are_the_most_that_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    log = BoundedLog(path, limit=100)
    for number in range(200):
        log.write(b"%09d\n" % number)
    log.write(b"x" * 1000)
    log.close()
    assert path.read_bytes() == b"x" * 100
    assert (tmp_path / "a.log.1").read_bytes().endswith(b"000000199\n")
    assert (tmp_path / "a.log.1").stat().st_size <= 100


def test_an_earlier_run_is_appended_to(tmp_path: Path) -> None:
    for text in (b"first\n", b"second\n"):
        log = BoundedLog(tmp_path / "a.log")
        log.write(text)
        log.close()
    assert (tmp_path / "a.log").read_bytes() == b"first\nsecond\n"


def test_the_last_line_that_says_something_is_at_hand() -> None:
    log = BoundedLog()
    assert log.last_line is None
    log.write(b"Traceback\nValueError: no\n\n   \n")
    assert log.last_line == "ValueError: no"
    log.write(b"unfinish")
    assert log.last_line == "unfinish"
    log.note("ours does not count")
    assert log.tail == ("Traceback", "ValueError: no")


def test_a_flood_is_remembered_by_its_end_alone() -> None:
    log = BoundedLog()
    log.write(b"".join(b"line %d\n" % n for n in range(10_000)))
    assert log.tail == tuple(f"line {n}" for n in range(9_980, 10_000))


def test_a_file_that_cannot_be_written_is_given_up_and_said(tmp_path: Path) -> None:
    (tmp_path / "a.log").mkdir()
    log = BoundedLog(tmp_path / "a.log")
    log.write(b"kept in memory\n")
    assert log.last_line == "kept in memory"
    assert log.fault is not None
    assert "cannot be written" in log.fault
