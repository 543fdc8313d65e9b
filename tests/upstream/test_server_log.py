from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.core.redaction import Redactor
from pegboard.upstream.server_log import BoundedLog


def test_the_file_holds_what_was_written(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "new" / "a.log")
    log.write(b"one\ntwo")
    log.note("three")
    log.close()
    assert (tmp_path / "new" / "a.log").read_bytes() == b"one\ntwo[pegboard] three\n"


def test_there_are_at_most_two_files_of_the_limit(tmp_path: Path) -> None:
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
    assert log.tail == ("Traceback", "ValueError: no", "unfinish")


def test_a_flood_is_remembered_by_its_end_alone() -> None:
    log = BoundedLog()
    log.write(b"".join(b"line %d\n" % n for n in range(10_000)))
    assert log.tail == tuple(f"line {n}" for n in range(9_980, 10_000))


def test_a_file_that_cannot_be_written_is_given_up_and_reported(tmp_path: Path) -> None:
    (tmp_path / "a.log").mkdir()
    log = BoundedLog(tmp_path / "a.log")
    log.write(b"kept in memory\n")
    assert log.last_line == "kept in memory"
    assert log.fault is not None
    assert "cannot be written" in log.fault


def test_secrets_are_in_neither_the_file_nor_the_tail_even_in_two_parts(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "a.log", redactor=Redactor(["s3cr3t-value"]))
    for part in (b"login s3cr", b"3t-value fail", b"ed\nagain s3cr3t-val"):
        log.write(part)
    log.write(b"ue")
    assert log.last_line == "again [redacted]"
    log.note("cause: s3cr3t-value")
    log.write(b"x" * 490 + b" s3cr3t-value\n")
    log.close()
    written = (tmp_path / "a.log").read_text()
    assert "s3cr3t" not in written
    assert written.startswith(
        "login [redacted] failed\nagain [redacted][pegboard] cause: [redacted]\n"
    )
    assert "s3cr" not in "".join(log.tail)


def test_bytes_that_are_no_text_stay_in_the_file(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "a.log")
    log.write(b"\xff\xfe one\n")
    log.close()
    assert (tmp_path / "a.log").read_bytes() == b"\xff\xfe one\n"
    assert log.last_line == "\ufffd\ufffd one"


def test_logs_are_their_owner_s_alone_and_older_ones_become_so(tmp_path: Path) -> None:
    folder, path = tmp_path / "home" / "logs", tmp_path / "home" / "logs" / "a.log"
    log = BoundedLog(path)
    log.write(b"one\n")
    log.close()
    assert [_mode(p) for p in (folder.parent, folder, path)] == [0o700, 0o700, 0o600]
    folder.chmod(0o755)
    path.chmod(0o644)
    log = BoundedLog(path, limit=8)
    log.write(b"two\n")
    log.write(b"three\n")
    log.close()
    rotated = path.with_name("a.log.1")
    assert [_mode(p) for p in (folder, path, rotated)] == [0o700, 0o600, 0o600]


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


NODE = """node:internal/modules/cjs/loader:1215
  throw err;
  ^

Error: Cannot find module '/srv/index.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1212:15)
    at node:internal/main/run_main_module:28:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.11.0
"""
GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "/srv/main.py", line 9, in <module>
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/srv/main.py", line 4, in main
    |     raise ValueError("the port is taken")
    | ValueError: the port is taken
    +------------------------------------
"""
PYDANTIC = """Traceback (most recent call last):
  File "/srv/main.py", line 3, in <module>
    Settings()
pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings
api_key
  Field required [type=missing, input_value={}, input_type=dict]
    For further information visit https://errors.pydantic.dev/2.11/v/missing
"""
RUST = """thread 'main' panicked at src/main.rs:2:5: no token
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""
NPM = """npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/weather-mcp
npm error 404
npm error 404  'weather-mcp@*' is not in this registry.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git url.
npm notice
npm notice New minor version of npm available! 11.19.1 -> 11.21.1
npm error A complete log of this run can be found in: /home/ada/.npm/_logs/debug-0.log
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (NPM, "npm error 404  'weather-mcp@*' is not in this registry."),
        (NODE, "Error: Cannot find module '/srv/index.js'"),
        (GROUP, "ValueError: the port is taken"),
        (
            PYDANTIC,
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings",
        ),
        (RUST, "thread 'main' panicked at src/main.rs:2:5: no token"),
        ("reading config\n}\n", "reading config"),
        ("}\n+---\n", "+---"),
        ("ValueError: an old one\nThe port 80 is taken\n", "The port 80 is taken"),
    ],
)
def test_the_line_that_says_what_went_wrong_is_the_one_shown(text: str, line: str) -> None:
    log = BoundedLog()
    log.write(text.encode())
    assert log.last_line == line
