"""Calendar, looked at for time: who is busy when, where all are free, what is due."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from pegboard import Example

from ..database import Record
from ..toolbox import READS, Toolbox
from .calendar import Minutes, calendar, list_calendar_events, window_of
from .lookup import need_member, need_project
from .recurrence import Span, gaps, merged
from .tracker import Tracker
from .words import AnyProject, From, To

availability = Toolbox[Tracker](calendar.name, calendar.description)

People = Annotated[Sequence[str], Field(min_length=1, description="Handles of members.")]


class Stretch(Record):
    start: datetime
    end: datetime


class Busy(Record):
    member: str
    busy: list[Stretch]


class FreeBusy(Record):
    members: list[Busy]


class Slots(Record):
    slots: list[Stretch]
    note: str


class Deadline(Record):
    day: date
    kind: Literal["issue", "milestone"]
    ref: str
    title: str
    overdue: bool


class Deadlines(Record):
    deadlines: list[Deadline]


@availability.tool(
    summary="Show when members are busy in a period",
    annotations=READS,
    aliases=("availability",),
    related=("find_free_slots",),
    examples=[
        Example(
            "Two members, one day",
            {
                "members": ["ana", "ben"],
                "start": "2026-03-09T08:00:00Z",
                "end": "2026-03-09T18:00:00Z",
            },
        )
    ],
)
def get_free_busy(t: Tracker, members: People, start: From, end: To) -> FreeBusy:
    """Show for each member the merged stretches of time taken by events, without their titles.

    Declined events do not count.
    """
    window = window_of(start, end)
    return FreeBusy(
        members=[
            Busy(member=m, busy=[_stretch(s) for s in merged(_busy(t, m, window))])
            for m in (need_member(t, name)["handle"] for name in members)
        ]
    )


@availability.tool(
    summary="Find times when all members are free, within working hours",
    annotations=READS,
    aliases=("find meeting time",),
    related=("create_calendar_event",),
    examples=[
        Example(
            "An hour for two",
            {
                "members": ["ana", "ben"],
                "minutes": 60,
                "start": "2026-03-09T00:00:00Z",
                "end": "2026-03-12T00:00:00Z",
            },
        )
    ],
)
def find_free_slots(
    t: Tracker,
    members: People,
    start: From,
    end: To,
    minutes: Minutes = 30,
    limit: Annotated[int, Field(ge=1, le=50, description="How many to offer.")] = 5,
) -> Slots:
    """Find the earliest stretches, Monday to Friday within working hours, in which all are free.

    Each slot is as long as it can be, at least as long as asked. Working hours are a setting of the
    workspace.
    """
    window = window_of(start, end)
    people = [need_member(t, name)["handle"] for name in members]
    busy = [span for person in people for span in _busy(t, person, window)]
    hours = t.value("SELECT value FROM settings WHERE name = 'working_hours'")
    free = [gap for day in _working_days(window, hours) for gap in gaps(day, busy)]
    long_enough = [gap for gap in free if gap.end - gap.start >= timedelta(minutes=minutes)]
    return Slots(
        slots=[_stretch(gap) for gap in long_enough[:limit]],
        note=f"{len(long_enough)} slots of {minutes} minutes or more, working hours {hours} UTC.",
    )


@availability.tool(
    summary="List due days of issues and milestones, overdue ones first",
    annotations=READS,
    aliases=("due soon", "upcoming deadlines"),
    related=("list_issues",),
    examples=[Example("The next month", {"days": 30})],
)
def list_deadlines(
    t: Tracker,
    days: Annotated[int, Field(ge=1, le=365, description="How far to look ahead.")] = 14,
    project: AnyProject = None,
    assignee: Annotated[str | None, Field(description="Only issues of this member.")] = None,
) -> Deadlines:
    """List the due days of open issues and milestones up to some days ahead, in order of day.

    Everything overdue is included, however old. With an assignee, milestones are left out.
    """
    key = need_project(t, project)["key"] if project else None
    handle = need_member(t, assignee)["handle"] if assignee else None
    rows = t.rows(
        "SELECT due_on AS day, 'issue' AS kind, key AS ref, title, project, assignee FROM issues "
        "WHERE closed_at IS NULL UNION ALL "
        "SELECT due_on, 'milestone', CAST(id AS TEXT), name, project, NULL FROM milestones "
        "WHERE closed_at IS NULL"
    )
    last, today = (t.today + timedelta(days=days)).isoformat(), t.today.isoformat()
    wanted = [
        r
        for r in rows
        if r["day"] and r["day"] <= last and key in (None, r["project"])
        if handle in (None, r["assignee"])
    ]
    return Deadlines(
        deadlines=[
            Deadline(**r, overdue=r["day"] < today)
            for r in sorted(wanted, key=lambda r: (r["day"], r["kind"], r["ref"]))
        ]
    )


def _busy(t: Tracker, member: str, window: Span) -> list[Span]:
    agenda = list_calendar_events(t, window.start, window.end, member)
    return [
        Span(max(o.starts_at, window.start), min(o.ends_at, window.end)) for o in agenda.occurrences
    ]


def _working_days(window: Span, hours: str) -> list[Span]:
    first, _, last = hours.partition("-")
    days: list[Span] = []
    day = window.start.replace(hour=0, minute=0, second=0)
    while day < window.end:
        start = max(day + timedelta(hours=int(first)), window.start)
        end = min(day + timedelta(hours=int(last)), window.end)
        if day.weekday() < 5 and start < end:
            days.append(Span(start, end))
        day += timedelta(days=1)
    return days


def _stretch(span: Span) -> Stretch:
    return Stretch(start=span.start, end=span.end)
