"""The history of calls: what is counted, and what several processes make of one file."""

from __future__ import annotations

import logging
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pegboard.core.events import CallFinished, CallRejected, ListAnswered
from pegboard.observe import call_history
from pegboard.observe.call_history import HOUR, CallHistory, HistoryRow, config_key

NOON = int(time.time()) // HOUR * HOUR - 2 * HOUR


def finished(tool: str = "tracker.get", at: float = NOON + 5, **more: object) -> CallFinished:
    given = {"outcome": "ok", "upstream": "tracker", "duration": 0.1, **more}
    return CallFinished(at=at, id="1", tool=tool, **given)  # pyright: ignore[reportArgumentType] fields


def test_calls_are_counted_by_hour_server_and_tool() -> None:
    history = CallHistory()
    history.record(finished(tokens_out_before=900, tokens_out=300))
    history.record(finished(outcome="failed"))
    history.record(finished(at=NOON + HOUR))
    history.record(ListAnswered(at=NOON, mode="proxy", tools=5, duration=0.1))
    history.record(CallRejected(at=NOON, name="guess", error="unknown_tool", arguments=""))
    assert set(history.read(NOON)) == {
        HistoryRow(NOON, "call", "tracker", "tracker.get", 2, 1, 600),
        HistoryRow(NOON + HOUR, "call", "tracker", "tracker.get", 1, 0, 0),
        HistoryRow(NOON, "list", "", "proxy", 1, 0, 0),
        HistoryRow(NOON, "rejected", "", "", 1, 1, 0),
    }


def test_a_history_survives_its_process_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "history" / "calls.sqlite"
    first = CallHistory(path, "key")
    first.record(finished())
    first.save()
    first.record(finished())
    assert sum(row.count for row in first.read(0)) == 2
    assert [row.count for row in CallHistory(path, "key").read(0)] == [1]
    assert CallHistory(path, "other").read(0) == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_processes_add_to_the_same_counts(tmp_path: Path) -> None:
    path = tmp_path / "history" / "calls.sqlite"
    program = f"""
from pathlib import Path
from pegboard.core.events import ListAnswered
from pegboard.observe.call_history import CallHistory
for _ in range(20):
    history = CallHistory(Path({str(path)!r}), "key")
    history.record(ListAnswered(at={NOON}, mode="proxy", tools=5, duration=0.1))
    history.save()
"""
    started = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    assert [process.wait(60) for process in started] == [0, 0, 0]
    assert [row.count for row in CallHistory(path, "key").read(0)] == [60]


def test_old_rows_are_deleted(tmp_path: Path) -> None:
    history = CallHistory(tmp_path / "h" / "calls.sqlite", "key", clock=lambda: NOON + 91 * 86_400)
    history.record(finished())
    history.save()
    assert history.read(0) == []


def test_a_file_that_cannot_be_used_costs_the_charts_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "calls.sqlite"
    path.write_text("this is not a database, and longer than a header of one would be" * 20)
    history = CallHistory(path, "key")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            history.record(finished())
            history.save()
            assert history.read(0)
    assert len(caplog.records) == 1
    assert sum(row.count for row in history.read(0)) == 3


def test_memory_is_bounded_whatever_clients_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_history, "_MAX_ROWS", 50)
    history = CallHistory()
    for number in range(500):
        history.record(finished(f"tool{number}", at=NOON + number * HOUR / 10))
    assert len(history.read(0)) <= 50


def test_a_configuration_is_identified_without_its_path(tmp_path: Path) -> None:
    key = config_key(tmp_path / "pegboard.toml")
    assert key == config_key(tmp_path / "x" / ".." / "pegboard.toml")
    assert str(tmp_path) not in key
