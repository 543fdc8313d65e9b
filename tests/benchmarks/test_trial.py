"""What a log of an agent's work says, and the page where no log is at hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.contestants import shown_lines

from benchmarks import trial

LOG = [
    {"op": "list", "tokens": 100},
    {"op": "call", "name": "search_tools", "arguments": {"queries": ["log time"]}, "sent": 10,
     "received": 50, "error": False},
    {"op": "call", "name": "call_tool", "arguments": {}, "sent": 20, "received": 5, "error": True},
]  # fmt: skip


def test_every_turn_carries_all_before_it() -> None:
    assert trial.of_log(LOG) == {
        "calls": 2,
        "errors": 1,
        "searches": 1,
        "list": 100,
        "search": 50,
        "context": 185,
        "input": 110 + 180,
    }


def test_trials_are_read_with_what_is_known_about_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_TRIAL", str(tmp_path))
    (tmp_path / "log_ours.jsonl").write_text("\n".join(map(json.dumps, LOG)) + "\n")
    (tmp_path / "trials.json").write_text('{"ours": {"agent": "a person"}}')
    (name, (about, rows)), *_ = trial.recorded().items()
    assert (name, about["agent"], len(rows)) == ("ours", "a person", 3)


def test_without_logs_the_page_says_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PEGBOARD_TRIAL", raising=False)
    assert trial.recorded() == {}
    told = trial.section({"trials": {}, "replay": {"missing": "no data"}})
    assert "Not run." in told
    assert "not replayed: no data" in told


def test_a_reader_sees_signatures_and_names_of_an_answer() -> None:
    text = "log time:\nlog_time(issue) [write] - Log\nAlso: stop_timer, a.b\nhub_x: see above"
    assert shown_lines(text) == {
        "log_time": "log_time(issue) [write] - Log",
        "stop_timer": "",
        "a.b": "",
    }
    weak = "No tool clearly does this. Nearest: edit(text) - Edit\nAlso: move (Move it)"
    assert list(shown_lines(weak)) == ["edit", "move"]
