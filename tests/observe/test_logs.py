from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.observe.samples import finished, started

from pegboard.core.events import (
    BreakerChanged,
    Event,
    ListAnswered,
    SearchAnswered,
    StoreStateChanged,
    UpstreamStateChanged,
)
from pegboard.core.redaction import Redactor
from pegboard.observe.logs import EventLog, RepeatFilter, log_json


class Lines:
    """What a test wrote to the log."""

    def __init__(self) -> None:
        self.stream = io.StringIO()

    def read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


@pytest.fixture
def lines() -> Iterator[Lines]:
    lines = Lines()
    handler = log_json(lines.stream, level="DEBUG", redactor=Redactor(["my-own-secret"]))
    yield lines
    logger = logging.getLogger("pegboard")
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


def test_a_call_is_one_line_of_json_with_everything_known_about_it(lines: Lines) -> None:
    EventLog().record(finished(principal="ann", mode="proxy", via="call_tool", tokens_out=12))
    (line,) = lines.read()
    assert line["message"] == "call.finished"
    assert line["level"] == "info"
    assert line["time"].endswith("+00:00")
    assert line | {"id": "c1", "tool": "github.search", "duration": 0.1, "outcome": "ok"} == line
    assert line | {"principal": "ann", "via": "call_tool", "tokens_out": 12} == line
    assert "arguments" not in line


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (started(), "debug"),
        (finished(), "info"),
        (finished(outcome="tool_error"), "info"),
        (finished(outcome="failed", error="timeout"), "warning"),
        (BreakerChanged(at=1, scope="tool", name="t", state="open"), "warning"),
        (BreakerChanged(at=1, scope="tool", name="t", state="closed"), "info"),
        (StoreStateChanged(at=1, available=False), "warning"),
        (UpstreamStateChanged(at=1, upstream="x", state="failed"), "warning"),
    ],
    ids=str,
)
def test_what_needs_attention_is_a_warning(lines: Lines, event: Event, level: str) -> None:
    EventLog().record(event)
    assert [line["level"] for line in lines.read()] == [level]


LISTED = ListAnswered(at=1, mode="proxy", tools=5, duration=0.01)


def test_what_went_well_is_no_news_where_lines_are_not_json(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        for event in (finished(), LISTED, finished(outcome="failed", error="timeout")):
            EventLog().record(event)
    assert [record.levelname for record in caplog.records] == ["DEBUG", "DEBUG", "WARNING"]


def test_below_the_level_nothing_is_written() -> None:
    stream = io.StringIO()
    handler = log_json(stream, level="WARNING")
    try:
        EventLog().record(finished())
    finally:
        logging.getLogger("pegboard").removeHandler(handler)
        logging.getLogger("pegboard").setLevel(logging.NOTSET)
    assert stream.getvalue() == ""


def test_what_people_searched_for_is_written_only_when_asked(lines: Lines) -> None:
    event = SearchAnswered(at=1, mode="proxy", matches=1, duration=0.01, query="my illness")
    EventLog().record(event)
    EventLog(queries=True).record(event)
    assert [line.get("query") for line in lines.read()] == [None, "my illness"]


def test_secrets_are_taken_out_of_arguments_messages_and_tracebacks(lines: Lines) -> None:
    arguments = {"api_key": "k" * 20, "note": "use Bearer abcdef123456", "q": "my-own-secret"}
    EventLog().record(finished(arguments=arguments))
    logger = logging.getLogger("pegboard.upstream")
    logger.warning("cannot reach %s", "https://ann:hunter2@example.org/mcp")
    try:
        raise RuntimeError("token=abcdefgh")
    except RuntimeError:
        logger.exception("failed")
    whole = lines.stream.getvalue()
    for secret in ("kkkk", "abcdef123456", "my-own-secret", "hunter2", "abcdefgh"):
        assert secret not in whole
    assert lines.read()[0]["arguments"]["note"] == "use Bearer [redacted]"
    assert "https://ann:[redacted]@example.org/mcp" in lines.read()[1]["message"]


def test_a_line_break_in_a_message_does_not_make_a_second_line(lines: Lines) -> None:
    logging.getLogger("pegboard.x").info('one\n{"level": "forged"}')
    (line,) = lines.read()
    assert line["message"] == 'one\n{"level": "forged"}'


def test_what_is_not_json_is_written_as_text(lines: Lines) -> None:
    EventLog().record(finished(arguments={"path": sys}))
    assert "module 'sys'" in lines.read()[0]["arguments"]["path"]


def test_without_any_logging_set_up_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    lonely = logging.getLogger("a_program_without_logging")
    lonely.propagate = False
    EventLog(lonely).record(finished(outcome="failed"))
    assert capsys.readouterr().err == ""


def test_a_repeated_warning_is_limited_and_the_rest_are_counted() -> None:
    now = 0.0
    limit = RepeatFilter(burst=2, interval=10.0, clock=lambda: now)

    def line(text: str, level: int = logging.WARNING, **extra: object) -> logging.LogRecord:
        record = logging.LogRecord("a", level, "", 0, text, (), None)
        record.__dict__.update(extra)
        return record

    assert [limit.filter(line("same")) for _ in range(5)] == [True, True, False, False, False]
    assert limit.filter(line("other"))
    assert all(limit.filter(line("fine", logging.INFO)) for _ in range(5))
    assert all(limit.filter(line("event", pegboard_fields={"a": 1})) for _ in range(5))
    now = 11.0
    last = line("same")
    assert limit.filter(last)
    assert last.getMessage() == "same (3 more lines like this left out)"
