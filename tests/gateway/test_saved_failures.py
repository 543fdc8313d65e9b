"""A server that fails is remembered, with its reason, across reads and across commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.gateway.support import write

from pegboard import Pegboard
from pegboard.core.json import JsonObject
from pegboard.upstream.catalog_cache import CatalogCache, ListingFailure, ServerProfile
from pegboard.upstream.spec import UpstreamSpec

SLOW_TO_FAIL = """
import sys, time
open(sys.argv[1], "a").write("x")
time.sleep(float(sys.argv[2]))
sys.stderr.write("Error: no licence for this machine\\n")
sys.exit(1)
"""


def failing(folder: Path, seconds: float = 0.3) -> JsonObject:
    script = folder / "failing.py"
    script.write_text(SLOW_TO_FAIL)
    return {"command": sys.executable, "args": [str(script), str(folder / "starts"), str(seconds)]}


def starts(folder: Path) -> int:
    return len((folder / "starts").read_text())


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PEGBOARD_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "pegboard", *words]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=60)


def test_a_failing_server_is_started_once_by_a_command_and_not_by_the_next(tmp_path: Path) -> None:
    config = str(write(tmp_path, {"shop": failing(tmp_path)}))
    first = run(tmp_path, "measure", "--config", config)
    after_one = starts(tmp_path)
    assert after_one <= 2  # one attempt: as a modern server, then by the older handshake
    second = run(tmp_path, "measure", "--config", config)
    listed = run(tmp_path, "list", "--config", config)
    assert starts(tmp_path) == after_one
    for done in (first, second, listed):
        assert "Error: no licence for this machine" in done.stderr
        assert "has not answered yet" not in done.stderr
    assert "`pegboard doctor` retries now" in second.stderr
    run(tmp_path, "doctor", "--config", config)
    assert starts(tmp_path) > after_one


def test_a_board_reads_without_starting_a_failed_server_until_its_pause_is_over(
    tmp_path: Path,
) -> None:
    config = write(tmp_path, {"shop": failing(tmp_path)})
    settings = {"environ": {"PEGBOARD_HOME": str(tmp_path / "home")}}
    board = Pegboard.from_config(config, **settings)
    for _ in range(3):
        assert board.tools() == []
        assert board.search("anything") == []
    once = starts(tmp_path)
    [record] = (tmp_path / "home" / "catalogs").glob("*.failed")
    kept = json.loads(record.read_text())
    assert "no licence" in kept["reason"]
    record.write_text(json.dumps({**kept, "retry_at": 1.0}))  # its pause is over
    assert board.tools() == []
    assert starts(tmp_path) == 2 * once
    assert json.loads(record.read_text())["count"] == 2


def test_a_server_that_works_again_is_forgotten_as_a_failure(tmp_path: Path) -> None:
    folder = CatalogCache(tmp_path)
    spec = UpstreamSpec("shop", command="x")
    folder.mark_failed(spec, "no licence", now=1000.0)
    folder.save(spec, ServerProfile(), [])
    assert folder.last_failure(spec) is None


def test_the_pause_doubles_up_to_ten_minutes_and_survives_a_clock_that_goes_back(
    tmp_path: Path,
) -> None:
    folder = CatalogCache(tmp_path)
    spec = UpstreamSpec("shop", command="x")
    pauses = [folder.mark_failed(spec, "no", now=0.0).retry_at for _ in range(7)]
    assert pauses == [30, 60, 120, 240, 480, 600, 600]
    failure = ListingFailure("no", 7, 600.0)
    assert folder.last_failure(spec) == failure
    assert (failure.wait(0.0), failure.wait(599.0), failure.wait(600.0)) == (600.0, 1.0, 0.0)
    assert failure.wait(-86_400.0) == 0.0


@pytest.mark.parametrize("text", ["", "[]", '{"reason": 1, "more": 2}', "\x00"])
def test_a_record_that_cannot_be_read_is_a_failure_that_may_be_tried_now(
    text: str, tmp_path: Path
) -> None:
    folder = CatalogCache(tmp_path)
    spec = UpstreamSpec("shop", command="x")
    folder.mark_failed(spec, "no", now=0.0)
    next(tmp_path.glob("*.failed")).write_text(text)
    failure = folder.last_failure(spec)
    assert failure is not None
    assert failure.reason == "shop could not be listed the last time."
    assert failure.wait(0.0) == 0.0
