"""Time tracking: timers and logged work; weeks and reports are in `timesheets`."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Annotated

from pydantic import Field

from pegboard import Example

from ..database import Record, Refused, Row, iso, moment, unknown
from ..toolbox import ADDS, READS, REMOVES, SETS, Toolbox
from .events import record
from .lookup import need_issue, need_member
from .tracker import Tracker
from .words import AnyMember, FirstDay, IssueKey, LastDay

time_tracking = Toolbox[Tracker](
    "time_tracking", "Work hours: timers, time entries, weekly timesheets, reports and estimates."
)

LONGEST_ENTRY = timedelta(hours=16)
EntryId = Annotated[int, Field(description="Number of the time entry.")]
Note = Annotated[str, Field(description="What was done.")]
Billable = Annotated[bool, Field(description="Whether it can be charged.")]


class Entry(Record):
    id: int
    member: str
    issue: str
    started_at: datetime
    ended_at: datetime | None = Field(description="Null while the timer runs.")
    minutes: int
    note: str
    billable: bool


class Entries(Record):
    entries: list[Entry]
    total_minutes: int


class Running(Record):
    timer: Entry | None


@time_tracking.tool(
    summary="Start a timer on an issue",
    annotations=ADDS,
    aliases=("clock in", "track time"),
    related=("stop_timer", "get_running_timer"),
    examples=[Example("On WEB-3", {"issue": "WEB-3", "note": "Reproduce on Safari"})],
)
def start_timer(t: Tracker, issue: IssueKey, note: Note = "", billable: Billable = True) -> Entry:
    """Start counting your time on an issue.

    You have one timer at most; a running one must be stopped first, so that no minute counts twice.
    """
    row = need_issue(t, issue, writable=True)
    if running := get_running_timer(t).timer:
        raise Refused(
            f"Your timer runs on {running.issue} since {running.started_at:%H:%M}; stop it."
        )
    _check_free(t, t.me, t.now(), t.now() + timedelta(seconds=1))
    _check_unsubmitted(t, t.me, t.now())
    number = t.insert(
        "time_entries",
        member=t.me,
        issue=row["key"],
        started_at=t.stamp,
        note=note,
        billable=billable,
    )
    return _entry(t, _need(t, number))


@time_tracking.tool(
    summary="Stop your running timer and keep the time",
    annotations=ADDS,
    aliases=("clock out",),
    related=("start_timer",),
    examples=[Example("With a note", {"note": "Found the cause"})],
)
def stop_timer(
    t: Tracker, note: Annotated[str | None, Field(description="Replaces the timer's note.")] = None
) -> Entry:
    """Stop your timer and log the time since it was started on its issue.

    A timer that ran for more than 16 hours was forgotten: it is cut to 16, and the entry can be
    edited.
    """
    running = get_running_timer(t).timer
    if running is None:
        raise Refused(
            "No timer of yours is running; start_timer starts one, log_time adds past work."
        )
    end = min(t.now(), running.started_at + LONGEST_ENTRY)
    t.update("time_entries", "id", running.id, ended_at=end)
    if note is not None:
        t.update("time_entries", "id", running.id, note=note)
    return _logged(t, running.id)


@time_tracking.tool(
    summary="Show a member's running timer",
    annotations=READS,
    related=("stop_timer",),
    examples=[Example("Ben's", {"member": "ben"})],
)
def get_running_timer(t: Tracker, member: AnyMember = None) -> Running:
    """Show the running timer with the minutes so far; `timer` is null when none runs."""
    handle = need_member(t, member or t.me)["handle"]
    row = t.row("SELECT * FROM time_entries WHERE member = ? AND ended_at IS NULL", handle)
    return Running(timer=_entry(t, row) if row else None)


@time_tracking.tool(
    summary="Log past work on an issue",
    annotations=ADDS,
    aliases=("book hours", "add worklog"),
    related=("start_timer", "list_time_entries"),
    examples=[
        Example(
            "Ninety minutes this morning",
            {"issue": "WEB-3", "started_at": "2026-03-06T08:00:00Z", "minutes": 90},
        )
    ],
)
def log_time(
    t: Tracker,
    issue: IssueKey,
    started_at: Annotated[datetime, Field(description="When the work began, UTC.")],
    minutes: Annotated[int, Field(ge=1, le=960, description="How long it took.")],
    note: Note = "",
    billable: Billable = True,
) -> Entry:
    """Add a time entry for work that is over.

    It may not overlap another entry of yours, end in the future, or fall into a week that you have
    submitted.
    """
    row = need_issue(t, issue, writable=True)
    start = moment(iso(started_at))
    end = start + timedelta(minutes=minutes)
    _check_span(t, t.me, start, end)
    number = t.insert(
        "time_entries",
        member=t.me,
        issue=row["key"],
        started_at=start,
        ended_at=end,
        note=note,
        billable=billable,
    )
    return _logged(t, number)


@time_tracking.tool(
    summary="Correct a time entry of yours",
    annotations=SETS,
    related=("list_time_entries",),
    examples=[Example("Half an hour more", {"entry": 5, "minutes": 90})],
)
def edit_time_entry(
    t: Tracker,
    entry: EntryId,
    started_at: Annotated[datetime | None, Field(description="New start, UTC.")] = None,
    minutes: Annotated[int | None, Field(ge=1, le=960, description="New length.")] = None,
    note: Annotated[str | None, Field(description="New note.")] = None,
    billable: Annotated[bool | None, Field(description="Whether it can be charged.")] = None,
) -> Entry:
    """Change start, length, note or billing of an entry of yours that is not submitted yet.

    The same rules hold as for `log_time`. A running timer is stopped before it is edited.
    """
    row = _need_mine(t, entry)
    if row["ended_at"] is None:
        raise Refused(f"Entry {entry} is a running timer; stop_timer first.")
    length = moment(row["ended_at"]) - moment(row["started_at"])
    start = moment(iso(started_at)) if started_at else moment(row["started_at"])
    end = start + (timedelta(minutes=minutes) if minutes else length)
    _check_span(t, t.me, start, end, but=entry)
    t.update("time_entries", "id", entry, started_at=start, ended_at=end)
    if note is not None:
        t.update("time_entries", "id", entry, note=note)
    if billable is not None:
        t.update("time_entries", "id", entry, billable=billable)
    return _entry(t, _need(t, entry))


@time_tracking.tool(
    summary="Delete a time entry of yours",
    annotations=REMOVES,
    related=("list_time_entries",),
    examples=[Example("By number", {"entry": 5})],
)
def delete_time_entry(t: Tracker, entry: EntryId) -> Entry:
    """Delete an entry, or discard a running timer, of yours; not one of a submitted week."""
    row = _need_mine(t, entry)
    gone = _entry(t, row)
    t.run("DELETE FROM time_entries WHERE id = ?", entry)
    return gone


@time_tracking.tool(
    summary="List time entries by member, issue and period",
    annotations=READS,
    aliases=("worklogs",),
    related=("get_time_report",),
    examples=[Example("On one issue", {"issue": "WEB-1"})],
)
def list_time_entries(
    t: Tracker,
    member: AnyMember = None,
    issue: Annotated[str | None, Field(description="Only this issue, of all members.")] = None,
    first_day: FirstDay | None = None,
    last_day: LastDay | None = None,
) -> Entries:
    """List your time entries, or those of a member or an issue, oldest first, with their sum."""
    handle = need_member(t, member or t.me)["handle"] if member or not issue else None
    key = need_issue(t, issue)["key"] if issue else None
    rows = t.rows(
        "SELECT * FROM time_entries WHERE (? IS NULL OR member = ?) AND (? IS NULL OR issue = ?) "
        "AND started_at >= ? AND substr(started_at, 1, 10) <= ? ORDER BY started_at, id",
        handle,
        handle,
        key,
        key,
        first_day or "",
        last_day or "9999",
    )
    entries = [_entry(t, r) for r in rows]
    return Entries(entries=entries, total_minutes=sum(e.minutes for e in entries))


def _entry(t: Tracker, row: Row) -> Entry:
    end = moment(row["ended_at"]) if row["ended_at"] else t.now()
    minutes = round((end - moment(row["started_at"])).total_seconds() / 60)
    return Entry(**row, minutes=minutes)


def _logged(t: Tracker, number: int) -> Entry:
    entry = _entry(t, _need(t, number))
    project = need_issue(t, entry.issue)["project"]
    summary = f"{t.me} worked {entry.minutes} minutes on {entry.issue}"
    subject = f"issue:{entry.issue}"
    record(t, "time.logged", subject, summary, project=project, minutes=entry.minutes)
    return entry


def _need(t: Tracker, number: int) -> Row:
    row = t.row("SELECT * FROM time_entries WHERE id = ?", number)
    if row is None:
        raise unknown("time entry", number)
    return row


def _need_mine(t: Tracker, number: int) -> Row:
    row = _need(t, number)
    if row["member"] != t.me:
        raise Refused(f"Entry {number} is {row['member']}'s; everybody corrects their own.")
    _check_unsubmitted(t, t.me, moment(row["started_at"]))
    return row


def _check_span(
    t: Tracker, member: str, start: datetime, end: datetime, but: int | None = None
) -> None:
    if end > t.now():
        raise Refused(f"Work is logged when it is over; {iso(end)} is in the future.")
    _check_unsubmitted(t, member, start)
    _check_free(t, member, start, end, but)


def _check_free(
    t: Tracker, member: str, start: datetime, end: datetime, but: int | None = None
) -> None:
    clash = t.row(
        "SELECT * FROM time_entries WHERE member = ? AND id IS NOT ? AND started_at < ? "
        "AND coalesce(ended_at, '9999') > ?",
        member,
        but,
        end,
        start,
    )
    if clash:
        raise Refused(
            f"This overlaps entry {clash['id']} on {clash['issue']}, {clash['started_at']} to "
            f"{clash['ended_at'] or 'now'}; choose another time or edit that one."
        )


def _check_unsubmitted(t: Tracker, member: str, start: datetime) -> None:
    monday = start.date() - timedelta(days=start.weekday())
    if submitted_at(t, member, monday):
        raise Refused(f"The week of {monday} is submitted; its entries are fixed.")


def submitted_at(t: Tracker, member: str, monday: date) -> datetime | None:
    """When a member handed in a week; `None` when they have not."""
    found = t.value(
        "SELECT submitted_at FROM submitted_weeks WHERE member = ? AND monday = ?", member, monday
    )
    return moment(found) if found else None
