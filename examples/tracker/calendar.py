"""Calendar: meetings that may repeat, and invitations; `availability` finds time for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal

from pydantic import Field

from pegboard import Example

from ..database import Record, Refused, Row, iso, moment, unknown
from ..toolbox import ADDS, READS, REMOVES, SETS, Toolbox
from .events import record
from .lookup import need_member, need_project
from .recurrence import Frequency, Rule, Span, occurrences
from .tracker import Tracker
from .words import AnyProject, From, To

calendar = Toolbox[Tracker](
    "calendar", "Meetings, repeated or once: invitations, free/busy, free slots, and deadlines."
)

LONGEST_WINDOW = timedelta(days=92)
EventId = Annotated[int, Field(description="Number of the event.")]
Response = Literal["accepted", "declined", "tentative"]
Minutes = Annotated[int, Field(ge=5, le=1440, description="Length in minutes.")]


class Attendee(Record):
    member: str
    response: str


class Event(Record):
    id: int
    title: str
    description: str
    location: str
    organizer: str
    project: str | None
    starts_at: datetime
    ends_at: datetime
    repeats: Frequency | None
    every: int
    until: date | None
    attendees: list[Attendee]


class Occurrence(Record):
    event: int
    title: str
    starts_at: datetime
    ends_at: datetime
    location: str
    repeats: Frequency | None


class Agenda(Record):
    occurrences: list[Occurrence]


class Cancelled(Record):
    event: int
    cancelled: Literal["series", "occurrence"]
    day: date | None


@calendar.tool(
    summary="List what takes place in a period, repeated events included",
    annotations=READS,
    aliases=("agenda", "schedule", "meetings"),
    examples=[Example("One day", {"start": "2026-03-09T00:00:00Z", "end": "2026-03-10T00:00:00Z"})],
    related=("get_calendar_event",),
)
def list_calendar_events(
    t: Tracker,
    start: From,
    end: To,
    member: Annotated[str | None, Field(description="Only where this member is invited.")] = None,
    project: AnyProject = None,
) -> Agenda:
    """List every occurrence of an event in a window of at most 92 days, in order.

    A repeated event appears once per occurrence; cancelled occurrences are left out, and so is what
    the member has declined.
    """
    window = window_of(start, end)
    handle = need_member(t, member)["handle"] if member else None
    key = need_project(t, project)["key"] if project else None
    rows = t.rows(
        "SELECT * FROM calendar_events WHERE (? IS NULL OR project = ?) AND (? IS NULL OR id IN "
        "(SELECT event FROM attendees WHERE member = ? AND response <> 'declined'))",
        key,
        key,
        handle,
        handle,
    )
    found = [
        Occurrence.model_validate({**r, "event": r["id"], "starts_at": s.start, "ends_at": s.end})
        for r in rows
        for s in _within(t, r, window)
    ]
    return Agenda(occurrences=sorted(found, key=lambda o: (o.starts_at, o.event)))


@calendar.tool(
    summary="Show one event with its attendees and how it repeats",
    annotations=READS,
    related=("list_calendar_events",),
    examples=[Example("By number", {"event": 1})],
)
def get_calendar_event(t: Tracker, event: EventId) -> Event:
    """Show an event with its description, place, rule of repetition and who has answered what."""
    row = _need(t, event)
    invited = t.rows("SELECT * FROM attendees WHERE event = ? ORDER BY member", event)
    return Event(**row, attendees=[Attendee.model_validate(a) for a in invited])


@calendar.tool(
    summary="Create an event, once or repeated, and invite members",
    annotations=ADDS,
    aliases=("schedule a meeting", "book", "invite"),
    related=("find_free_slots", "respond_to_invitation"),
    examples=[
        Example(
            "A weekly stand-up",
            {
                "title": "Stand-up",
                "starts_at": "2026-03-09T09:00:00Z",
                "minutes": 15,
                "attendees": ["ana", "ben"],
                "repeats": "weekly",
            },
        )
    ],
)
def create_calendar_event(
    t: Tracker,
    title: Annotated[str, Field(min_length=1, description="What it is called.")],
    starts_at: Annotated[datetime, Field(description="First start, UTC.")],
    minutes: Minutes = 30,
    attendees: Annotated[Sequence[str], Field(description="Handles to invite beside you.")] = (),
    description: Annotated[str, Field(description="Agenda or notes.")] = "",
    location: Annotated[str, Field(description="Room or link.")] = "",
    project: Annotated[str | None, Field(description="Its project.")] = None,
    repeats: Annotated[Frequency | None, Field(description="Once if left out.")] = None,
    every: Annotated[int, Field(ge=1, le=52, description="2 means every second time.")] = 1,
    until: Annotated[date | None, Field(description="Last day to begin.")] = None,
) -> Event:
    """Create an event with you as organizer; attendees are invited and notified."""
    start = moment(iso(starts_at))
    if until and (repeats is None or until < start.date()):
        raise Refused("`until` goes with `repeats` and is not before the first occurrence.")
    people = {t.me, *(need_member(t, a)["handle"] for a in attendees)}
    number = t.insert(
        "calendar_events",
        title=title,
        description=description,
        location=location,
        organizer=t.me,
        project=need_project(t, project)["key"] if project else None,
        starts_at=start,
        ends_at=start + timedelta(minutes=minutes),
        repeats=repeats,
        every=every,
        until=until,
    )
    for person in sorted(people):
        response = "accepted" if person == t.me else "invited"
        t.insert("attendees", event=number, member=person, response=response)
    _announce(t, "created", number, f"{t.me} invites to {title}, {start:%Y-%m-%d %H:%M}")
    return get_calendar_event(t, number)


@calendar.tool(
    summary="Move an event to another time",
    annotations=SETS,
    examples=[Example("An hour later", {"event": 1, "starts_at": "2026-03-09T10:00:00Z"})],
    related=("find_free_slots",),
)
def reschedule_calendar_event(
    t: Tracker,
    event: EventId,
    starts_at: Annotated[datetime, Field(description="New start of the first occurrence, UTC.")],
    minutes: Annotated[int | None, Field(ge=5, le=1440, description="New length.")] = None,
) -> Event:
    """Move an event, with all its occurrences, to another time; only its organizer can.

    Invited members are notified and asked again. Occurrences that were cancelled by day stay
    cancelled.
    """
    row = _need_own(t, event)
    start = moment(iso(starts_at))
    length = moment(row["ends_at"]) - moment(row["starts_at"])
    end = start + (timedelta(minutes=minutes) if minutes else length)
    if row["until"] and start.date() > date.fromisoformat(row["until"]):
        raise Refused(f"The series ends on {row['until']}, before the new start.")
    t.update("calendar_events", "id", event, starts_at=start, ends_at=end)
    t.run("UPDATE attendees SET response = 'invited' WHERE event = ? AND member <> ?", event, t.me)
    _announce(t, "rescheduled", event, f"{t.me} moved {row['title']} to {start:%Y-%m-%d %H:%M}")
    return get_calendar_event(t, event)


@calendar.tool(
    summary="Cancel an event, or one occurrence of a repeated one",
    annotations=REMOVES,
    examples=[Example("Only that week", {"event": 1, "day": "2026-03-16"})],
    related=("reschedule_calendar_event",),
)
def cancel_calendar_event(
    t: Tracker,
    event: EventId,
    day: Annotated[date | None, Field(description="Day of one occurrence; null: all.")] = None,
) -> Cancelled:
    """Cancel the whole event for good, or one occurrence by its day; only the organizer can.

    Attendees are notified.
    """
    row = _need_own(t, event)
    if day is None:
        _announce(t, "cancelled", event, f"{t.me} cancelled {row['title']}")
        t.run("DELETE FROM calendar_events WHERE id = ?", event)
        return Cancelled(event=event, cancelled="series", day=None)
    midnight = datetime.combine(day, time(), UTC)
    if not _within(t, row, Span(midnight, midnight + timedelta(days=1))):
        raise Refused(f"{row['title']} does not take place on {day}; see list_calendar_events.")
    t.insert("skipped_occurrences", event=event, day=day)
    _announce(t, "cancelled", event, f"{t.me} cancelled {row['title']} on {day}")
    return Cancelled(event=event, cancelled="occurrence", day=day)


@calendar.tool(
    summary="Accept, decline or tentatively accept an invitation",
    annotations=SETS,
    aliases=("rsvp",),
    related=("get_calendar_event",),
    examples=[Example("Accept", {"event": 2, "response": "accepted"})],
)
def respond_to_invitation(
    t: Tracker, event: EventId, response: Annotated[Response, Field(description="Your answer.")]
) -> Event:
    """Answer an invitation to an event; the organizer is notified.

    What you decline no longer counts as busy time of yours.
    """
    row = _need(t, event)
    if not t.run(
        "UPDATE attendees SET response = ? WHERE event = ? AND member = ?", response, event, t.me
    ):
        raise Refused(f"You are not invited to {row['title']}; ask {row['organizer']}.")
    record(
        t,
        "calendar.responded",
        f"calendar:{event}",
        f"{t.me} {response} {row['title']}",
        project=row["project"],
        topic="calendar",
        tell=[row["organizer"]],
    )
    return get_calendar_event(t, event)


def window_of(start: datetime, end: datetime) -> Span:
    """A window of time that a caller may ask about."""
    window = Span(moment(iso(start)), moment(iso(end)))
    if not timedelta() < window.end - window.start <= LONGEST_WINDOW:
        raise Refused(f"A window ends after it starts, within 92 days; got {start} to {end}.")
    return window


def _within(t: Tracker, row: Row, window: Span) -> list[Span]:
    """The occurrences of an event that overlap a window."""
    first, length = moment(row["starts_at"]), moment(row["ends_at"]) - moment(row["starts_at"])
    until = date.fromisoformat(row["until"]) if row["until"] else None
    rule = Rule(row["repeats"], row["every"], until) if row["repeats"] else None
    skipped = t.column("SELECT day FROM skipped_occurrences WHERE event = ?", row["id"])
    return [
        Span(start, start + length)
        for start in occurrences(first, rule, window.end)
        if start + length > window.start and start.date().isoformat() not in skipped
    ]


def _need(t: Tracker, number: int) -> Row:
    row = t.row("SELECT * FROM calendar_events WHERE id = ?", number)
    if row is None:
        raise unknown("event", number)
    return row


def _need_own(t: Tracker, number: int) -> Row:
    row = _need(t, number)
    if row["organizer"] != t.me:
        raise Refused(f"{row['organizer']} organizes {row['title']}; only they can change it.")
    return row


def _announce(t: Tracker, what: str, number: int, summary: str) -> None:
    invited = t.column("SELECT member FROM attendees WHERE event = ?", number)
    project = _need(t, number)["project"]
    subject = f"calendar:{number}"
    record(t, f"calendar.{what}", subject, summary, project=project, topic="calendar", tell=invited)
