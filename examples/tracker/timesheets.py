"""Time tracking by the week and in sums: timesheets, reports, estimates against hours."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from pegboard import Example

from ..database import Record, Refused
from ..toolbox import READS, SETS, Toolbox
from .events import record
from .lookup import need_issue, need_member, need_project
from .time_tracking import list_time_entries, submitted_at, time_tracking
from .tracker import Tracker
from .words import AnyMember, AnyProject, FirstDay, LastDay

timesheets = Toolbox[Tracker](time_tracking.name, time_tracking.description)

Week = Annotated[date, Field(description="Any day of the week; weeks start on Monday.")]


class Line(Record):
    issue: str
    title: str
    minutes_by_day: list[int] = Field(description="Seven numbers, from Monday.")
    minutes: int


class Timesheet(Record):
    member: str
    monday: date
    lines: list[Line]
    minutes_by_day: list[int]
    minutes: int
    submitted_at: datetime | None


class Group(Record):
    group: str
    minutes: int
    billable_minutes: int
    entries: int


class Report(Record):
    by: str
    groups: list[Group]
    minutes: int
    billable_minutes: int


class Comparison(Record):
    issue: str
    title: str
    estimate_hours: float
    actual_hours: float
    ratio: float = Field(description="Actual by estimate; over 1 took longer than thought.")
    closed: bool


class Comparisons(Record):
    issues: list[Comparison]
    overall_ratio: float | None


@timesheets.tool(
    summary="Show a member's week as a table of issues by day",
    annotations=READS,
    related=("submit_timesheet",),
    examples=[Example("One week of Chen", {"week": "2026-03-02", "member": "chen"})],
)
def get_timesheet(t: Tracker, week: Week, member: AnyMember = None) -> Timesheet:
    """Show what a member worked on in a week: minutes per issue and day, with sums.

    An entry counts on the day on which it began.
    """
    handle = need_member(t, member or t.me)["handle"]
    monday = week - timedelta(days=week.weekday())
    entries = list_time_entries(t, handle, None, monday, monday + timedelta(days=6)).entries
    table: dict[str, list[int]] = {}
    for entry in entries:
        table.setdefault(entry.issue, [0] * 7)[entry.started_at.weekday()] += entry.minutes
    lines = [
        Line(issue=key, title=need_issue(t, key)["title"], minutes_by_day=days, minutes=sum(days))
        for key, days in sorted(table.items())
    ]
    by_day = [sum(line.minutes_by_day[d] for line in lines) for d in range(7)]
    return Timesheet(
        member=handle,
        monday=monday,
        lines=lines,
        minutes_by_day=by_day,
        minutes=sum(by_day),
        submitted_at=submitted_at(t, handle, monday),
    )


@timesheets.tool(
    summary="Submit your week, after which its entries cannot change",
    annotations=SETS,
    related=("get_timesheet",),
    examples=[Example("Last week", {"week": "2026-03-02"})],
)
def submit_timesheet(t: Tracker, week: Week) -> Timesheet:
    """Hand in a week that is over; its entries are fixed from then on.

    It refuses while a timer runs, before the week has ended, and for a week without entries.
    """
    sheet = get_timesheet(t, week)
    if sheet.submitted_at:
        return sheet
    if t.today < sheet.monday + timedelta(days=7):
        raise Refused(f"The week of {sheet.monday} is not over; submit it from the Monday after.")
    if not sheet.lines:
        raise Refused(f"The week of {sheet.monday} has no entries; log_time adds them.")
    if any(e.ended_at is None for e in list_time_entries(t, None, None, sheet.monday).entries):
        raise Refused("Your timer is running; stop it first.")
    t.insert("submitted_weeks", member=t.me, monday=sheet.monday, submitted_at=t.stamp)
    summary = f"{t.me} submitted {sheet.minutes} minutes for the week of {sheet.monday}"
    record(t, "timesheet.submitted", f"member:{t.me}", summary, minutes=sheet.minutes)
    return get_timesheet(t, week)


@timesheets.tool(
    summary="Report hours by member, project, issue or day",
    annotations=READS,
    aliases=("billing report", "hours summary"),
    examples=[
        Example(
            "March by project",
            {"first_day": "2026-03-01", "last_day": "2026-03-31", "by": "project"},
        )
    ],
    related=("list_time_entries",),
)
def get_time_report(
    t: Tracker,
    first_day: FirstDay,
    last_day: LastDay,
    by: Annotated[
        Literal["member", "project", "issue", "day"], Field(description="What to group by.")
    ] = "member",
    project: AnyProject = None,
) -> Report:
    """Sum the finished entries of everybody over a period, largest group first.

    Running timers are left out. An entry counts on the day on which it began.
    """
    if last_day < first_day:
        raise Refused(f"A period ends after it starts; got {first_day} to {last_day}.")
    key = need_project(t, project)["key"] if project else None
    column = {"day": "substr(started_at, 1, 10)", "project": "issues.project"}.get(by, by)
    minutes = "cast(round((julianday(ended_at) - julianday(started_at)) * 1440) AS INTEGER)"
    rows = t.rows(
        f'SELECT {column} AS "group", sum({minutes}) AS minutes, count(*) AS entries, '
        f"sum({minutes} * billable) AS billable_minutes "
        "FROM time_entries JOIN issues ON issues.key = issue WHERE ended_at IS NOT NULL "
        "AND substr(started_at, 1, 10) BETWEEN ? AND ? AND (? IS NULL OR issues.project = ?) "
        "GROUP BY 1 ORDER BY minutes DESC, 1",
        first_day,
        last_day,
        key,
        key,
    )
    groups = [Group.model_validate(r) for r in rows]
    return Report(
        by=by,
        groups=groups,
        minutes=sum(g.minutes for g in groups),
        billable_minutes=sum(g.billable_minutes for g in groups),
    )


@timesheets.tool(
    summary="Compare estimated with actual hours per issue",
    annotations=READS,
    related=("get_time_report",),
    examples=[Example("Of one project", {"project": "WEB"})],
)
def compare_estimates(t: Tracker, project: AnyProject = None) -> Comparisons:
    """Compare the estimate of each issue with the time logged on it, worst underestimate first.

    Only issues with both are compared; `overall_ratio` is over all of them together.
    """
    key = need_project(t, project)["key"] if project else None
    rows = t.rows(
        "SELECT key AS issue, title, estimate_hours, closed_at IS NOT NULL AS closed, "
        "round(sum(julianday(ended_at) - julianday(started_at)) * 24, 2) AS actual_hours "
        "FROM issues JOIN time_entries ON issue = key WHERE ended_at IS NOT NULL "
        "AND estimate_hours IS NOT NULL AND (? IS NULL OR project = ?) GROUP BY key",
        key,
        key,
    )
    ratios = [(round(r["actual_hours"] / r["estimate_hours"], 2), r) for r in rows]
    found = [Comparison(**r, ratio=ratio) for ratio, r in sorted(ratios, key=lambda x: -x[0])]
    estimated = sum(c.estimate_hours for c in found)
    actual = sum(c.actual_hours for c in found)
    return Comparisons(
        issues=found, overall_ratio=round(actual / estimated, 2) if estimated else None
    )
