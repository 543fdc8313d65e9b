"""Activity: what happened, derived from events: feeds, timelines, durations and comparisons."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import Field

from pegboard import Example

from ..database import Record, Refused, Row, Value, moment
from ..toolbox import READS, Toolbox
from .lookup import need_issue, need_member, need_project
from .tracker import Tracker
from .words import AnyMember, AnyProject, FirstDay, IssueKey, LastDay, Limit, Status

activity = Toolbox[Tracker](
    "activity", "What happened: feeds, issue timelines, time in status, contributions, comparisons."
)


class Activity(Record):
    id: int
    at: datetime
    actor: str
    kind: str = Field(description="Such as issue.created or document.updated.")
    subject: str = Field(description="What it happened to, such as issue:WEB-3.")
    project: str | None
    summary: str


class Feed(Record):
    events: list[Activity]
    next_after: int | None = Field(description="Pass as `after` to go on; null at the end.")


class Step(Record):
    at: datetime
    actor: str
    what: str
    detail: dict[str, Any]


class Timeline(Record):
    issue: str
    steps: list[Step]


class InStatus(Record):
    status: Status
    hours: float
    visits: int


class Durations(Record):
    issue: str
    statuses: list[InStatus]
    lead_time_hours: float | None = Field(description="From creation to closing.")
    cycle_time_hours: float | None = Field(description="From first in_progress to closing.")


class Count(Record):
    name: str
    count: int


class Summary(Record):
    first_day: date
    last_day: date
    events: int
    by_member: list[Count]
    by_kind: list[Count]
    by_day: dict[str, int]


class DayCount(Record):
    day: date
    events: int


class Contributions(Record):
    member: str
    days: list[DayCount]
    total: int
    longest_streak: int = Field(description="Days in a row with at least one event.")


class Change(Record):
    what: str
    before: int
    now: int
    change: int


class Comparison(Record):
    days: int
    changes: list[Change]


class Contributor(Record):
    member: str
    events: int
    issues_closed: int
    comments: int
    minutes_logged: int


class Contributors(Record):
    contributors: list[Contributor]


@activity.tool(
    summary="List what happened by project, member or kind",
    annotations=READS,
    aliases=("recent changes", "audit log"),
    examples=[Example("In one project", {"project": "WEB", "limit": 10})],
    related=(
        "poll_activity",
        "summarize_activity",
    ),
)
def list_activity(
    t: Tracker,
    project: AnyProject = None,
    member: Annotated[str | None, Field(description="Only what this member did.")] = None,
    kind: Annotated[str | None, Field(description="Such as issue or issue.created.")] = None,
    before: Annotated[int | None, Field(description="Only events before this number.")] = None,
    limit: Limit = 20,
) -> Feed:
    """List events, newest first. A kind such as `issue` takes in everything that begins with it.

    To follow what comes in from now on, use `poll_activity`.
    """
    where, values = _filters(t, project, member, kind)
    rows = t.rows(
        f"SELECT * FROM events WHERE id < ? AND {where} ORDER BY id DESC LIMIT ?",
        before or 2**62,
        *values,
        limit,
    )
    return Feed(events=[Activity.model_validate(r) for r in rows], next_after=None)


@activity.tool(
    summary="Read events that came after one you have seen",
    annotations=READS,
    aliases=("follow", "watch feed"),
    related=("list_activity",),
    examples=[Example("What is new since event 70", {"after": 70})],
)
def poll_activity(
    t: Tracker,
    after: Annotated[int, Field(ge=0, description="Number of the last event you have seen.")],
    project: AnyProject = None,
    limit: Limit = 50,
) -> Feed:
    """Read on from an event, in order; when more are waiting, `next_after` is where to go on."""
    where, values = _filters(t, project, None, None)
    rows = t.rows(
        f"SELECT * FROM events WHERE id > ? AND {where} ORDER BY id LIMIT ?",
        after,
        *values,
        limit + 1,
    )
    shown = rows[:limit]
    return Feed(
        events=[Activity.model_validate(r) for r in shown],
        next_after=shown[-1]["id"] if len(rows) > limit else None,
    )


@activity.tool(
    summary="Show the whole history of an issue",
    annotations=READS,
    aliases=("ticket history", "changelog"),
    related=("get_status_durations",),
    examples=[Example("By key", {"issue": "WEB-1"})],
)
def get_issue_timeline(t: Tracker, issue: IssueKey) -> Timeline:
    """Show everything that happened to an issue in order, with old and new values."""
    key = need_issue(t, issue)["key"]
    rows = t.rows("SELECT * FROM events WHERE subject = ? ORDER BY id", f"issue:{key}")
    steps = [
        Step(at=r["at"], actor=r["actor"], what=r["summary"], detail=json.loads(r["detail"]))
        for r in rows
    ]
    return Timeline(issue=key, steps=steps)


@activity.tool(
    summary="Show how long an issue was in each status",
    annotations=READS,
    aliases=("cycle time", "lead time"),
    examples=[Example("One issue", {"issue": "WEB-1"})],
    related=("get_issue_timeline",),
)
def get_status_durations(t: Tracker, issue: IssueKey) -> Durations:
    """Add up the hours that an issue spent in each status, with lead time and cycle time.

    Lead time runs from creation to closing, cycle time from the first in_progress; both are null
    while the issue is open.
    """
    row = need_issue(t, issue)
    visits = _visits(t, row)
    hours: dict[Status, float] = {}
    for status, start, end in visits:
        hours[status] = hours.get(status, 0.0) + (end - start).total_seconds() / 3600
    times = Counter(status for status, _, _ in visits)
    closed = moment(row["closed_at"]) if row["closed_at"] else None
    begun = next((start for status, start, _ in visits if status == "in_progress"), None)
    return Durations(
        issue=row["key"],
        statuses=[InStatus(status=s, hours=round(h, 2), visits=times[s]) for s, h in hours.items()],
        lead_time_hours=_hours(moment(row["created_at"]), closed),
        cycle_time_hours=_hours(begun, closed),
    )


@activity.tool(
    summary="Summarize events by member, kind and day",
    annotations=READS,
    aliases=("weekly report",),
    related=("compare_activity", "list_top_contributors"),
    examples=[Example("A week", {"first_day": "2026-03-02", "last_day": "2026-03-08"})],
)
def summarize_activity(
    t: Tracker, first_day: FirstDay, last_day: LastDay, project: AnyProject = None
) -> Summary:
    """Count what happened in a period of at most 92 days by member, by kind and by day."""
    rows = _period(t, first_day, last_day, project)
    members, kinds = Counter(r["actor"] for r in rows), Counter(r["kind"] for r in rows)
    days = Counter(r["at"][:10] for r in rows)
    return Summary(
        first_day=first_day,
        last_day=last_day,
        events=len(rows),
        by_member=[Count(name=n, count=c) for n, c in members.most_common()],
        by_kind=[Count(name=n, count=c) for n, c in kinds.most_common()],
        by_day=dict(sorted(days.items())),
    )


@activity.tool(
    summary="Show a member's contributions day by day",
    annotations=READS,
    aliases=("contribution graph",),
    related=("list_top_contributors",),
    examples=[
        Example(
            "Ben's week", {"first_day": "2026-03-02", "last_day": "2026-03-08", "member": "ben"}
        )
    ],
)
def get_contribution_calendar(
    t: Tracker, first_day: FirstDay, last_day: LastDay, member: AnyMember = None
) -> Contributions:
    """Count what a member did on each day of a period, days without anything included."""
    handle = need_member(t, member or t.me)["handle"]
    rows = [r for r in _period(t, first_day, last_day, None) if r["actor"] == handle]
    counts = Counter(r["at"][:10] for r in rows)
    length = (last_day - first_day).days + 1
    days = [first_day + timedelta(days=n) for n in range(length)]
    longest = streak = 0
    for day in days:
        streak = streak + 1 if counts[day.isoformat()] else 0
        longest = max(longest, streak)
    return Contributions(
        member=handle,
        days=[DayCount(day=d, events=counts[d.isoformat()]) for d in days],
        total=len(rows),
        longest_streak=longest,
    )


@activity.tool(
    summary="Compare the last days with as many days before",
    annotations=READS,
    aliases=("trend",),
    related=("summarize_activity",),
    examples=[Example("This week and the one before", {"days": 7})],
)
def compare_activity(
    t: Tracker,
    days: Annotated[int, Field(ge=1, le=46, description="Length of each period.")] = 7,
    project: AnyProject = None,
) -> Comparison:
    """Compare the last days, today included, with the same number of days before them.

    It counts issues created and closed, comments, document changes, messages and all events.
    """
    start = t.today - timedelta(days=days - 1)
    now = _tally(_period(t, start, t.today, project))
    earlier = _tally(_period(t, start - timedelta(days=days), start - timedelta(days=1), project))
    return Comparison(
        days=days,
        changes=[
            Change(what=what, before=earlier[what], now=now[what], change=now[what] - earlier[what])
            for what in now
        ],
    )


@activity.tool(
    summary="List who did most in a period",
    annotations=READS,
    aliases=("leaderboard",),
    related=("get_contribution_calendar",),
    examples=[
        Example(
            "By closed issues",
            {"first_day": "2026-03-02", "last_day": "2026-03-08", "sort": "issues_closed"},
        )
    ],
)
def list_top_contributors(
    t: Tracker,
    first_day: FirstDay,
    last_day: LastDay,
    project: AnyProject = None,
    sort: Annotated[
        Literal["events", "issues_closed", "comments", "minutes_logged"],
        Field(description="What counts."),
    ] = "events",
) -> Contributors:
    """List members by what they did in a period, most first, with the figures of each."""
    rows = _period(t, first_day, last_day, project)
    found = [
        _contribution(actor, [r for r in rows if r["actor"] == actor])
        for actor in {r["actor"] for r in rows}
    ]
    ranked = sorted(found, key=lambda c: (-getattr(c, sort), c.member))
    return Contributors(contributors=ranked)


def _filters(
    t: Tracker, project: str | None, member: str | None, kind: str | None
) -> tuple[str, list[Value]]:
    key = need_project(t, project)["key"] if project else None
    where = "(? IS NULL OR project = ?) AND (? IS NULL OR actor = ?)"
    where += " AND (? IS NULL OR kind = ? OR kind LIKE ? || '.%') AND subject NOT IN "
    # what is said in private channels shows only to their members
    where += "(SELECT 'channel:' || name FROM channels WHERE private AND name NOT IN "
    where += "(SELECT channel FROM channel_members WHERE member = ?))"
    return where, [key, key, member, member, kind, kind, kind, t.me]


def _period(t: Tracker, first: date, last: date, project: str | None) -> list[Row]:
    if not 0 <= (last - first).days < 92:
        raise Refused(f"A period ends after it starts, within 92 days; got {first} to {last}.")
    where, values = _filters(t, project, None, None)
    return t.rows(
        f"SELECT * FROM events WHERE substr(at, 1, 10) BETWEEN ? AND ? AND {where} ORDER BY id",
        first,
        last,
        *values,
    )


def _visits(t: Tracker, row: Row) -> list[tuple[Status, datetime, datetime]]:
    """Every stay of an issue in a status, with start and end; the present one ends now."""
    moves = t.rows(
        "SELECT at, detail FROM events WHERE subject = ? AND kind = 'issue.transitioned' "
        "ORDER BY id",
        f"issue:{row['key']}",
    )
    stays: list[tuple[Status, datetime, datetime]] = []
    status: Status = "backlog"
    since = moment(row["created_at"])
    for move in moves:
        until = moment(move["at"])
        stays.append((status, since, until))
        status, since = json.loads(move["detail"])["after"], until
    stays.append((status, since, t.now()))
    return stays


def _hours(start: datetime | None, end: datetime | None) -> float | None:
    return round((end - start).total_seconds() / 3600, 2) if start and end else None


def _closes(row: Row) -> bool:
    return row["kind"] == "issue.transitioned" and json.loads(row["detail"])["after"] == "done"


def _tally(rows: list[Row]) -> dict[str, int]:
    kinds = Counter(r["kind"] for r in rows)
    return {
        "issues created": kinds["issue.created"],
        "issues closed": sum(_closes(r) for r in rows),
        "comments": kinds["comment.added"],
        "document changes": kinds["document.created"] + kinds["document.updated"],
        "messages": kinds["message.posted"],
        "all events": len(rows),
    }


def _contribution(member: str, rows: list[Row]) -> Contributor:
    minutes = [json.loads(r["detail"])["minutes"] for r in rows if r["kind"] == "time.logged"]
    return Contributor(
        member=member,
        events=len(rows),
        issues_closed=sum(_closes(r) for r in rows),
        comments=sum(r["kind"] == "comment.added" for r in rows),
        minutes_logged=sum(minutes),
    )
