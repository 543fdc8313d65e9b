"""Calendar: recurrence, invitations, free time, deadlines."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from examples.tracker.recurrence import Frequency, Rule, Span, gaps, merged, occurrences
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples.world import Caller, TrackerWorld

pytestmark = pytest.mark.anyio
MARCH = {"start": "2026-03-01T00:00:00Z", "end": "2026-04-01T00:00:00Z"}


async def starts(call: Caller, **asked: Any) -> list[str]:
    agenda = await call("list_calendar_events", **{**MARCH, **asked})
    return [f"{o['title']} {o['starts_at'][5:10]}" for o in agenda["occurrences"]]


async def test_repeated_events_appear_once_per_occurrence_in_order(world: TrackerWorld) -> None:
    assert await starts(world.ana, member="ana") == [
        "Stand-up 03-02",
        "Stand-up 03-09",
        "Partner call 03-12",
        "Stand-up 03-16",
        "Stand-up 03-23",
        "Stand-up 03-30",
    ]


async def test_a_monthly_event_skips_months_without_its_day(world: TrackerWorld) -> None:
    window = {"start": "2026-02-01T00:00:00Z", "end": "2026-05-01T00:00:00Z"}

    assert await starts(world.ana, project="OPS", **window) == ["Restore drill 03-31"]


async def test_one_occurrence_can_be_cancelled_and_only_by_the_organizer(
    world: TrackerWorld,
) -> None:
    assert "ana organizes" in await world.ben.refused("cancel_calendar_event", event=1)
    wrong = await world.ana.refused("cancel_calendar_event", event=1, day="2026-03-17")
    await world.ana("cancel_calendar_event", event=1, day="2026-03-16")

    assert "does not take place on 2026-03-17" in wrong
    assert "Stand-up 03-16" not in await starts(world.ana)
    assert "Stand-up 03-23" in await starts(world.ana)


async def test_a_cancelled_series_is_gone_and_attendees_hear_of_it(world: TrackerWorld) -> None:
    await world.ana("cancel_calendar_event", event=1)

    assert await starts(world.ana, member="ana") == ["Partner call 03-12"]
    inbox = await world.ben("list_notifications", topic="calendar")
    assert inbox["notifications"][0]["text"] == "ana cancelled Stand-up"


async def test_who_declines_is_no_longer_busy(world: TrackerWorld) -> None:
    day = {"start": "2026-03-12T00:00:00Z", "end": "2026-03-13T00:00:00Z"}
    before = await world.ana("get_free_busy", members=["ana", "ben"], **day)
    await world.ana("respond_to_invitation", event=2, response="declined")
    after = await world.ana("get_free_busy", members=["ana", "ben"], **day)

    call = [{"start": "2026-03-12T13:00:00Z", "end": "2026-03-12T14:00:00Z"}]
    assert [m["busy"] for m in before["members"]] == [call, call]
    assert [m["busy"] for m in after["members"]] == [[], call]
    assert "not invited" in await world.dora.refused(
        "respond_to_invitation", event=2, response="accepted"
    )


async def test_moving_an_event_asks_the_others_again(world: TrackerWorld) -> None:
    await world.ana("respond_to_invitation", event=2, response="accepted")
    moved = await world.ben("reschedule_calendar_event", event=2, starts_at="2026-03-13T10:00:00Z")

    assert (moved["starts_at"], moved["ends_at"]) == (
        "2026-03-13T10:00:00Z",
        "2026-03-13T11:00:00Z",
    )
    assert {a["member"]: a["response"] for a in moved["attendees"]} == {
        "ana": "invited",
        "ben": "accepted",
    }


async def test_free_slots_lie_in_working_hours_between_meetings(world: TrackerWorld) -> None:
    window = {"start": "2026-03-07T00:00:00Z", "end": "2026-03-10T00:00:00Z"}  # Saturday on
    found = await world.ana("find_free_slots", members=["ana", "ben"], minutes=60, **window)

    assert found["slots"] == [{"start": "2026-03-09T09:15:00Z", "end": "2026-03-09T17:00:00Z"}]


async def test_a_window_runs_forward_and_not_for_ever(world: TrackerWorld) -> None:
    backwards = {"start": MARCH["end"], "end": MARCH["start"]}
    endless = {"start": MARCH["start"], "end": "2027-03-01T00:00:00Z"}

    for window in (backwards, endless):
        assert "within 92 days" in await world.ana.refused("list_calendar_events", **window)


async def test_deadlines_include_everything_overdue(world: TrackerWorld) -> None:
    found = await world.ana("list_deadlines", days=5)
    mine = await world.ana("list_deadlines", days=5, assignee="chen")

    assert [(d["ref"], d["overdue"]) for d in found["deadlines"]] == [
        ("WEB-3", True),
        ("WEB-5", False),
        ("WEB-2", False),
        ("1", False),
    ]
    assert [d["ref"] for d in mine["deadlines"]] == ["WEB-5"]


async def test_until_needs_a_repetition_that_reaches_it(world: TrackerWorld) -> None:
    once = {"title": "x", "starts_at": "2026-03-09T09:00:00Z", "until": "2026-04-01"}

    assert "`until` goes with" in await world.ana.refused("create_calendar_event", **once)


MOMENTS = st.integers(0, 500).map(
    lambda n: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=30 * n)
)
SPANS = st.lists(
    st.tuples(MOMENTS, st.integers(1, 20)).map(
        lambda p: Span(p[0], p[0] + timedelta(minutes=30 * p[1]))
    ),
    max_size=12,
)


@settings(deadline=None)
@given(SPANS)
def test_merged_time_neither_overlaps_nor_loses_a_moment(spans: list[Span]) -> None:
    out = merged(spans)

    assert all(a.end < b.start for a, b in pairwise(out))
    assert all(any(m.start <= s.start and s.end <= m.end for m in out) for s in spans)


@settings(deadline=None)
@given(SPANS, MOMENTS, st.integers(1, 100))
def test_gaps_and_busy_time_fill_a_window_exactly(
    spans: list[Span], start: datetime, length: int
) -> None:
    window = Span(start, start + timedelta(minutes=30 * length))
    inside = [
        Span(max(s.start, window.start), min(s.end, window.end))
        for s in spans
        if s.start < window.end and s.end > window.start
    ]
    parts = [*gaps(window, spans), *merged(inside)]

    assert sum((p.end - p.start for p in parts), timedelta()) == window.end - window.start


@settings(deadline=None)
@given(st.sampled_from(["daily", "weekly", "monthly"]), st.integers(1, 5), st.integers(0, 200))
def test_occurrences_keep_order_hour_and_end(frequency: Frequency, every: int, days: int) -> None:
    first = datetime(2026, 1, 31, 9, tzinfo=UTC)
    until = date(2026, 1, 31) + timedelta(days=days)
    rule, end = Rule(frequency, every, until), datetime(2030, 1, 1, tzinfo=UTC)
    found = list(occurrences(first, rule, end))

    assert found[0] == first
    assert all(a < b for a, b in pairwise(found))
    assert all(f.hour == 9 and f.date() <= until for f in found)
    if frequency == "monthly":
        assert {f.day for f in found} == {31}
