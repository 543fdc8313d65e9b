from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields
from typing import Any, get_args

import pytest

from pegboard.core.events import CallFinished, Event, SearchAnswered, event_to_json

KINDS: list[Any] = list(get_args(Event))


def test_every_kind_of_event_has_a_name_of_its_own() -> None:
    names = [kind.kind for kind in KINDS]
    assert len(set(names)) == len(names)
    assert all(name.count(".") == 1 for name in names)


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.kind)
def test_every_event_says_when(kind: Any) -> None:
    assert "at" in {f.name for f in fields(kind)}


def test_an_observer_cannot_change_an_event() -> None:
    event = CallFinished(at=1.0, id="c", tool="t", duration=0.1, outcome="ok")
    with pytest.raises(FrozenInstanceError):
        event.tool = "other"  # pyright: ignore[reportAttributeAccessIssue] the point of the test


def test_a_record_begins_with_its_kind_and_leaves_out_what_is_not_known() -> None:
    event = SearchAnswered(at=1.0, mode="proxy", matches=2, duration=0.01, found=("a", "b"))
    record = event_to_json(event)
    assert next(iter(record.items())) == ("event", "search.answered")
    assert record["found"] == ["a", "b"]
    assert "query" not in record
    assert json.loads(json.dumps(record)) == record


def test_a_zero_is_known() -> None:
    event = CallFinished(at=1.0, id="c", tool="t", duration=0.0, outcome="ok", tokens_out=0)
    assert event_to_json(event)["tokens_out"] == 0
    assert event_to_json(event)["cached"] is False
