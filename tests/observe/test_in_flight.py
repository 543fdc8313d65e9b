from __future__ import annotations

from tests.observe.samples import finished, started

from pegboard.observe.statistics import InFlight


def test_calls_are_in_flight_from_start_to_end() -> None:
    calls = InFlight()
    calls.record(started("a"))
    calls.record(started("b"))
    assert [c.id for c in calls.calls] == ["a", "b"]
    calls.record(finished("a"))
    assert len(calls) == 1


def test_an_end_without_a_start_does_no_harm() -> None:
    calls = InFlight()
    calls.record(finished("unknown"))
    assert len(calls) == 0
