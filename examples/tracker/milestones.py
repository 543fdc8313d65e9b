"""Milestones: planned stretches of work, their burndown and when they are likely to end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from pegboard import Example

from ..database import Record, Refused, Row, changed
from ..toolbox import ADDS, READS, REMOVES, SETS, Toolbox
from .events import record
from .lifecycle import IssueBrief, brief
from .lookup import need_issue, need_milestone, need_project
from .tracker import Tracker
from .words import AnyProject, MilestoneId, ProjectKey

milestones = Toolbox[Tracker](
    "milestones", "Milestones and sprints: plan issues, follow the burndown, forecast, close."
)

IssueKeys = Annotated[Sequence[str], Field(min_length=1, description="Keys of issues.")]
Unit = Annotated[
    Literal["issues", "hours"], Field(description="Count issues, or their estimated hours.")
]


class Milestone(Record):
    id: int
    project: str
    name: str
    goal: str
    starts_on: date
    due_on: date
    state: Literal["planned", "active", "overdue", "closed"]
    open_issues: int
    closed_issues: int
    percent_done: float
    closed_at: datetime | None


class MilestoneDetails(Milestone):
    issues: list[IssueBrief]


class Milestones(Record):
    milestones: list[Milestone]


class Planned(Record):
    milestone: Milestone
    changed: list[str] = Field(description="Keys of the issues whose plan changed.")


class Closing(Record):
    milestone: Milestone
    carried_over: list[str]
    carried_to: int | None


class Day(Record):
    day: date
    remaining: float
    ideal: float = Field(description="Where a straight line to the due day would be.")


class Burndown(Record):
    milestone: int
    unit: str
    total: float
    remaining: float
    ahead: float = Field(description="Ideal minus remaining today; negative means behind.")
    days: list[Day]


class Forecast(Record):
    milestone: int
    remaining_issues: int
    closed_per_week: float = Field(description="Rate in the project over the last four weeks.")
    likely_end: date | None = Field(description="Null when nothing was closed in that time.")
    due_on: date
    days_late: int | None
    on_track: bool


@milestones.tool(
    summary="List milestones with their progress",
    annotations=READS,
    aliases=("sprints", "releases", "roadmap"),
    related=("get_milestone", "get_burndown"),
    examples=[Example("Of one project", {"project": "WEB"})],
)
def list_milestones(
    t: Tracker,
    project: AnyProject = None,
    include_closed: Annotated[bool, Field(description="Also milestones that are closed.")] = False,
) -> Milestones:
    """List milestones by due day, with how much of each is done and whether it is overdue."""
    key = need_project(t, project)["key"] if project else None
    rows = t.rows(
        "SELECT * FROM milestones WHERE (? IS NULL OR project = ?) AND (? OR closed_at IS NULL) "
        "ORDER BY due_on, id",
        key,
        key,
        include_closed,
    )
    return Milestones(milestones=[_milestone(t, r) for r in rows])


@milestones.tool(
    summary="Show one milestone with its issues",
    annotations=READS,
    related=("plan_issues", "get_burndown"),
    examples=[Example("By number", {"milestone": 1})],
)
def get_milestone(t: Tracker, milestone: MilestoneId) -> MilestoneDetails:
    """Show a milestone with its goal, progress and every issue planned for it."""
    row = need_milestone(t, milestone)
    planned = t.rows("SELECT * FROM issues WHERE milestone = ? ORDER BY closed_at, key", milestone)
    shown = _milestone(t, row)
    return MilestoneDetails(**shown.model_dump(), issues=[brief(r) for r in planned])


@milestones.tool(
    summary="Create a milestone in a project",
    annotations=ADDS,
    aliases=("new sprint",),
    related=("plan_issues",),
    examples=[
        Example(
            "Two weeks",
            {
                "project": "WEB",
                "name": "Sprint 9",
                "starts_on": "2026-03-16",
                "due_on": "2026-03-27",
            },
        )
    ],
)
def create_milestone(
    t: Tracker,
    project: ProjectKey,
    name: Annotated[str, Field(min_length=1, description="Unique in the project.")],
    starts_on: Annotated[date, Field(description="First day of work.")],
    due_on: Annotated[date, Field(description="Last day of work.")],
    goal: Annotated[str, Field(description="What shall be true at the end.")] = "",
) -> MilestoneDetails:
    """Create a milestone, empty at first; `plan_issues` puts issues into it.

    Milestones of one project may overlap, but their names must differ.
    """
    key = need_project(t, project, writable=True)["key"]
    _check_days(starts_on, due_on)
    _check_name(t, key, name)
    number = t.insert(
        "milestones", project=key, name=name, goal=goal, starts_on=starts_on, due_on=due_on
    )
    summary = f"{t.me} created the milestone {name} in {key}"
    record(t, "milestone.created", f"milestone:{number}", summary, project=key)
    return get_milestone(t, number)


@milestones.tool(
    summary="Change a milestone's name, goal or days",
    annotations=SETS,
    related=("get_milestone",),
    examples=[Example("One week later", {"milestone": 1, "due_on": "2026-03-20"})],
)
def update_milestone(
    t: Tracker,
    milestone: MilestoneId,
    name: Annotated[str | None, Field(min_length=1, description="New name.")] = None,
    goal: Annotated[str | None, Field(description="New goal.")] = None,
    starts_on: Annotated[date | None, Field(description="New first day.")] = None,
    due_on: Annotated[date | None, Field(description="New last day.")] = None,
) -> MilestoneDetails:
    """Change an open milestone; whatever you leave out stays as it is."""
    row = need_milestone(t, milestone, still_open=True)
    values = changed(name=name, goal=goal, starts_on=starts_on, due_on=due_on)
    if name and name != row["name"]:
        _check_name(t, row["project"], name)
    _check_days(
        starts_on or date.fromisoformat(row["starts_on"]),
        due_on or date.fromisoformat(row["due_on"]),
    )
    t.update("milestones", "id", milestone, **values)
    summary = f"{t.me} changed {', '.join(values)} of {row['name']}"
    subject = f"milestone:{milestone}"
    record(t, "milestone.updated", subject, summary, project=row["project"], after=values)
    return get_milestone(t, milestone)


@milestones.tool(
    summary="Put issues into a milestone",
    annotations=SETS,
    related=("unplan_issues",),
    examples=[Example("Two of them", {"milestone": 1, "issues": ["WEB-2", "WEB-3"]})],
)
def plan_issues(t: Tracker, milestone: MilestoneId, issues: IssueKeys) -> Planned:
    """Put open issues of the same project into a milestone; an issue is in one milestone at most.

    Issues that were planned for another one move over. If any key does not fit, nothing changes.
    """
    row = need_milestone(t, milestone, still_open=True)
    found = [need_issue(t, key, writable=True) for key in issues]
    for issue in found:
        if issue["project"] != row["project"]:
            raise Refused(f"{issue['key']} is not in {row['project']}, as this milestone is.")
        if issue["closed_at"]:
            raise Refused(f"{issue['key']} is {issue['status']}; only open issues can be planned.")
    moved = [i["key"] for i in found if i["milestone"] != milestone]
    return _replan(t, row, moved, milestone, "planned")


@milestones.tool(
    summary="Take issues out of a milestone",
    annotations=SETS,
    related=("plan_issues",),
    examples=[Example("Not this time", {"milestone": 1, "issues": ["WEB-4"]})],
)
def unplan_issues(t: Tracker, milestone: MilestoneId, issues: IssueKeys) -> Planned:
    """Take issues out of an open milestone, back to the unplanned ones."""
    row = need_milestone(t, milestone, still_open=True)
    found = [need_issue(t, key, writable=True) for key in issues]
    strangers = [i["key"] for i in found if i["milestone"] != milestone]
    if strangers:
        raise Refused(f"{', '.join(strangers)} not in milestone {milestone}; see get_milestone.")
    return _replan(t, row, [i["key"] for i in found], None, "unplanned")


@milestones.tool(
    summary="Close a milestone and carry open issues over",
    annotations=REMOVES,
    aliases=("finish sprint",),
    examples=[Example("What is open becomes unplanned", {"milestone": 1})],
    related=("forecast_milestone",),
)
def close_milestone(
    t: Tracker,
    milestone: MilestoneId,
    carry_to: Annotated[
        int | None, Field(description="Milestone for what is still open; else it is unplanned.")
    ] = None,
) -> Closing:
    """Close a milestone for good; open issues go to another one of the project or become unplanned.

    A closed milestone keeps its closed issues and cannot be reopened.
    """
    row = need_milestone(t, milestone, still_open=True)
    if carry_to is not None:
        goal = need_milestone(t, carry_to, still_open=True)
        if carry_to == milestone or goal["project"] != row["project"]:
            raise Refused("Carry open issues to another open milestone of the same project.")
    keys = t.column("SELECT key FROM issues WHERE milestone = ? AND closed_at IS NULL", milestone)
    _replan(t, row, keys, carry_to, "carried over")
    t.update("milestones", "id", milestone, closed_at=t.stamp)
    summary = f"{t.me} closed {row['name']}"
    record(t, "milestone.closed", f"milestone:{milestone}", summary, project=row["project"])
    return Closing(
        milestone=_milestone(t, need_milestone(t, milestone)),
        carried_over=keys,
        carried_to=carry_to,
    )


@milestones.tool(
    summary="Show a milestone's burndown by day",
    annotations=READS,
    aliases=("progress chart", "sprint progress"),
    related=("forecast_milestone",),
    examples=[Example("In hours", {"milestone": 1, "unit": "hours"})],
)
def get_burndown(t: Tracker, milestone: MilestoneId, unit: Unit = "issues") -> Burndown:
    """Show what remained at the end of each day from the start until today, beside the ideal line.

    Issues count as what is in the milestone now; in hours, issues without an estimate count
    nothing.
    """
    row = need_milestone(t, milestone)
    planned = t.rows("SELECT * FROM issues WHERE milestone = ?", milestone)
    weights = [(i["estimate_hours"] or 0.0 if unit == "hours" else 1.0, i) for i in planned]
    total = sum(weight for weight, _ in weights)
    start, due = date.fromisoformat(row["starts_on"]), date.fromisoformat(row["due_on"])
    last = min(t.today, due) if row["closed_at"] is None else due
    span = max((due - start).days, 1)
    days: list[Day] = []
    for passed in range((last - start).days + 1):
        day = start + timedelta(days=passed)
        done = sum(w for w, i in weights if i["closed_at"] and i["closed_at"][:10] <= str(day))
        ideal = round(total * (1 - passed / span), 2)
        days.append(Day(day=day, remaining=total - done, ideal=ideal))
    return Burndown(
        milestone=milestone,
        unit=unit,
        total=total,
        remaining=days[-1].remaining if days else total,
        ahead=round(days[-1].ideal - days[-1].remaining, 2) if days else 0.0,
        days=days,
    )


@milestones.tool(
    summary="Forecast when a milestone will be done",
    annotations=READS,
    aliases=("eta", "velocity"),
    related=("get_burndown",),
    examples=[Example("By number", {"milestone": 1})],
)
def forecast_milestone(t: Tracker, milestone: MilestoneId) -> Forecast:
    """Estimate when a milestone ends from what its project closed in the last four weeks.

    Canceled issues do not count as closed.
    """
    row = need_milestone(t, milestone, still_open=True)
    due = date.fromisoformat(row["due_on"])
    remaining = t.value(
        "SELECT count(*) FROM issues WHERE milestone = ? AND closed_at IS NULL", milestone
    )
    done = t.value(
        "SELECT count(*) FROM issues WHERE project = ? AND status = 'done' AND closed_at >= ?",
        row["project"],
        (t.today - timedelta(days=28)).isoformat(),
    )
    end = t.today + timedelta(days=-(-remaining * 28 // done)) if done else None
    end = t.today if remaining == 0 else end
    return Forecast(
        milestone=milestone,
        remaining_issues=remaining,
        closed_per_week=done / 4,
        likely_end=end,
        due_on=due,
        days_late=max((end - due).days, 0) if end else None,
        on_track=end is not None and end <= due,
    )


def _milestone(t: Tracker, row: Row) -> Milestone:
    total, closed = t.connection.execute(
        "SELECT count(*), count(closed_at) FROM issues WHERE milestone = ?", (row["id"],)
    ).fetchone()
    today = t.today.isoformat()
    late = "overdue" if row["due_on"] < today else "active"
    state = "closed" if row["closed_at"] else "planned" if row["starts_on"] > today else late
    return Milestone(
        **row,
        state=state,
        open_issues=total - closed,
        closed_issues=closed,
        percent_done=round(100 * closed / total, 1) if total else 0.0,
    )


def _replan(t: Tracker, row: Row, keys: list[str], goal: int | None, word: str) -> Planned:
    for key in keys:
        t.run("UPDATE issues SET milestone = ?, updated_at = ? WHERE key = ?", goal, t.stamp, key)
    if keys:
        subject, summary = f"milestone:{row['id']}", f"{t.me} {word} {', '.join(keys)}"
        record(t, "milestone.planned", subject, summary, project=row["project"], issues=keys)
    return Planned(milestone=_milestone(t, row), changed=keys)


def _check_days(starts_on: date, due_on: date) -> None:
    if due_on < starts_on:
        raise Refused(f"A milestone ends after it starts; got {starts_on} to {due_on}.")


def _check_name(t: Tracker, project: str, name: str) -> None:
    if t.row("SELECT 1 FROM milestones WHERE project = ? AND name = ?", project, name):
        raise Refused(f"{project} has a milestone {name!r} already; choose another name.")
