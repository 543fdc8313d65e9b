"""Issues: reporting, describing, assigning, labelling and moving them between projects.

Status, links and moves are in `issue_flow`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from pegboard import Example

from ..database import Refused, Value, changed, unknown
from ..toolbox import ADDS, READS, SETS, Toolbox
from . import workflow
from .events import mentioned, record, watch
from .lifecycle import (
    PRIORITY_ORDER,
    Issue,
    Issues,
    assign,
    brief,
    whole,
)
from .lookup import need_issue, need_member, need_milestone, need_project
from .tracker import Tracker
from .words import (
    AnyProject,
    IssueKey,
    IssueType,
    Limit,
    Offset,
    Priority,
    ProjectKey,
    Status,
)

issues = Toolbox[Tracker](
    "issues",
    "Bugs, features, tasks and questions: report, assign, label, move through the workflow, link.",
)

Title = Annotated[str, Field(min_length=1, max_length=200, description="What is wrong or wanted.")]
Text = Annotated[str, Field(description="Markdown; @handle notifies a member.")]
Hours = Annotated[float, Field(gt=0, le=1000, description="Expected effort.")]


@issues.tool(
    summary="List issues by project, status, assignee, label or priority",
    annotations=READS,
    aliases=("tickets", "bugs", "backlog"),
    related=("search_issues", "get_issue"),
    examples=[
        Example(
            "Ben's open bugs, most urgent first",
            {"assignee": "ben", "type": "bug", "sort": "priority"},
        ),
    ],
)
def list_issues(
    t: Tracker,
    project: AnyProject = None,
    status: Annotated[
        Status | Literal["open", "closed", "any"],
        Field(description="Status or group."),
    ] = "open",
    assignee: Annotated[str | None, Field(description="Handle, or 'nobody'.")] = None,
    type: Annotated[IssueType | None, Field(description="Only this type")] = None,
    priority: Annotated[Priority | None, Field(description="Only this priority.")] = None,
    label: Annotated[str | None, Field(description="Only with this label.")] = None,
    overdue: Annotated[bool, Field(description="Only past their due day.")] = False,
    sort: Annotated[
        Literal["updated", "created", "priority", "due"], Field(description="What comes first.")
    ] = "updated",
    limit: Limit = 20,
    offset: Offset = 0,
) -> Issues:
    """List issues that fit every filter, a page at a time; `get_issue` has the details."""
    if project:
        project = need_project(t, project)["key"]
    where, values = _filters(
        status=status, assignee=assignee, project=project, type=type, priority=priority
    )
    if label:
        where.append("key IN (SELECT issue FROM issue_labels WHERE label = ?)")
        values.append(label.lower())
    if overdue:
        where.append("closed_at IS NULL AND due_on < ?")
        values.append(t.today.isoformat())
    order = {
        "updated": "updated_at DESC",
        "created": "created_at DESC",
        "priority": PRIORITY_ORDER,
        "due": "due_on IS NULL, due_on",
    }[sort]
    sql = f"FROM issues WHERE {' AND '.join(where)}"
    rows = t.rows(
        f"SELECT * {sql} ORDER BY {order}, rowid LIMIT ? OFFSET ?", *values, limit, offset
    )
    return Issues(issues=[brief(r) for r in rows], total=t.value(f"SELECT count(*) {sql}", *values))


@issues.tool(
    summary="Show one issue with description, labels, dates and estimate",
    annotations=READS,
    aliases=("ticket details",),
    related=("list_comments", "get_issue_links", "get_issue_timeline"),
    examples=[Example("By key", {"issue": "WEB-3"})],
)
def get_issue(t: Tracker, issue: IssueKey) -> Issue:
    """Show an issue with its description, people, labels, milestone, dates and estimate.

    Comments, attachments, links and history have tools of their own.
    """
    return whole(t, need_issue(t, issue)["key"])


@issues.tool(
    summary="Create an issue: report a bug, ask for a feature, note a task",
    annotations=ADDS,
    aliases=("file a bug", "new ticket", "report a problem"),
    related=("find_similar_issues", "update_issue"),
    examples=[
        Example(
            "A bug",
            {"project": "WEB", "title": "Login fails on Safari", "type": "bug", "priority": "high"},
        ),
    ],
)
def create_issue(
    t: Tracker,
    project: ProjectKey,
    title: Title,
    description: Text = "",
    type: Annotated[IssueType, Field(description="Kind of work.")] = "task",
    priority: Annotated[Priority, Field(description="Urgency.")] = "medium",
    assignee: Annotated[str | None, Field(description="Handle.")] = None,
    labels: Annotated[Sequence[str], Field(description="Existing labels.")] = (),
    parent: Annotated[str | None, Field(description="Issue it is part of.")] = None,
    milestone: Annotated[int | None, Field(description="Its number.")] = None,
    estimate_hours: Hours | None = None,
    due_on: Annotated[date | None, Field(description="Last day.")] = None,
) -> Issue:
    """Create an issue in a project's backlog; an assignee must take part in the project."""
    row = need_project(t, project, writable=True)
    key = f"{row['key']}-{row['next_number']}"
    t.update("projects", "key", row["key"], next_number=row["next_number"] + 1)
    t.insert(
        "issues",
        key=key,
        project=row["key"],
        type=type,
        title=title,
        description=description,
        priority=priority,
        reporter=t.me,
        parent=_parent(t, parent, row["key"]),
        milestone=_milestone(t, milestone, row["key"]),
        estimate_hours=estimate_hours,
        due_on=due_on,
        created_at=t.stamp,
        updated_at=t.stamp,
    )
    _announce(t, key, row["key"], title, description)
    for label in labels:
        t.insert("issue_labels", issue=key, label=_label(t, label))
    if assignee:
        assign(t, need_issue(t, key), need_member(t, assignee)["handle"])
    return whole(t, key)


@issues.tool(
    summary="Change an issue's title, description, priority, dates or estimate",
    annotations=SETS,
    aliases=("edit ticket",),
    related=("assign_issue", "transition_issue", "label_issue"),
    examples=[Example("Raise the priority", {"issue": "WEB-3", "priority": "urgent"})],
)
def update_issue(
    t: Tracker,
    issue: IssueKey,
    title: Title | None = None,
    description: Text | None = None,
    type: Annotated[IssueType | None, Field(description="New type.")] = None,
    priority: Annotated[Priority | None, Field(description="New priority.")] = None,
    estimate_hours: Hours | None = None,
    due_on: Annotated[date | None, Field(description="New due day.")] = None,
    parent: Annotated[str | None, Field(description="Issue it is part of.")] = None,
) -> Issue:
    """Change fields of an issue; whatever you leave out stays as it is.

    Status, assignee, labels and links have their own tools because they have rules. The old values
    are kept in the issue's timeline.
    """
    row = need_issue(t, issue, writable=True)
    values = changed(
        title=title,
        description=description,
        type=type,
        priority=priority,
        estimate_hours=estimate_hours,
        due_on=due_on,
        parent=_parent(t, parent, row["project"], child=row["key"]),
    )
    t.update("issues", "key", row["key"], **values, updated_at=t.stamp)
    before = {name: row[name] for name in values}
    summary = f"{t.me} changed {', '.join(values)} of {row['key']}"
    subject, project = f"issue:{row['key']}", row["project"]
    record(t, "issue.updated", subject, summary, project=project, before=before, after=values)
    return whole(t, row["key"])


@issues.tool(
    summary="Assign an issue to a member of its project, or to nobody",
    annotations=SETS,
    examples=[Example("To Ben", {"issue": "WEB-3", "assignee": "ben"})],
    related=(
        "list_members",
        "update_issue",
    ),
)
def assign_issue(
    t: Tracker,
    issue: IssueKey,
    assignee: Annotated[str | None, Field(description="Handle of the member; null unassigns.")],
) -> Issue:
    """Give an issue to a member of its project, who is notified and watches it from then on.

    Pass null to take it away from whoever has it. An issue in progress cannot be left without an
    assignee: move it back to todo first.
    """
    row = need_issue(t, issue, writable=True)
    handle = need_member(t, assignee)["handle"] if assignee else None
    if handle is None and row["status"] in ("in_progress", "in_review"):
        raise Refused(f"{row['key']} is {row['status']}; move it to todo before unassigning it.")
    if handle != row["assignee"]:
        assign(t, row, handle)
    return whole(t, row["key"])


@issues.tool(
    summary="Put labels on an issue and take others off",
    annotations=SETS,
    related=("list_labels", "create_label"),
    examples=[Example("Swap two", {"issue": "WEB-3", "add": ["regression"], "remove": ["triage"]})],
)
def label_issue(
    t: Tracker,
    issue: IssueKey,
    add: Annotated[Sequence[str], Field(description="Labels to put on.")] = (),
    remove: Annotated[Sequence[str], Field(description="Labels to take off.")] = (),
) -> Issue:
    """Add and remove labels in one step; labels must exist in the workspace.

    Adding one that is there, or removing one that is not, changes nothing.
    """
    row = need_issue(t, issue, writable=True)
    if not add and not remove:
        raise Refused("Nothing to change: give labels to add or to remove.")
    for label in add:
        t.run("INSERT OR IGNORE INTO issue_labels VALUES (?, ?)", row["key"], _label(t, label))
    for label in remove:
        t.run(
            "DELETE FROM issue_labels WHERE issue = ? AND label = ?", row["key"], _label(t, label)
        )
    t.update("issues", "key", row["key"], updated_at=t.stamp)
    subject, summary = f"issue:{row['key']}", f"{t.me} changed the labels of {row['key']}"
    record(t, "issue.labeled", subject, summary, project=row["project"], add=add, remove=remove)
    return whole(t, row["key"])


def _filters(status: str, assignee: str | None, **columns: Value) -> tuple[list[str], list[Value]]:
    """Conditions and values that issues must fit."""
    groups = {
        "open": workflow.OPEN,
        "closed": workflow.CLOSED,
        "any": workflow.OPEN + workflow.CLOSED,
    }
    wanted = groups.get(status, (status,))
    where = [f"status IN ({', '.join('?' * len(wanted))})"]
    values: list[Value] = [*wanted]
    if assignee == "nobody":
        where.append("assignee IS NULL")
    elif assignee:
        where.append("assignee = ?")
        values.append(assignee.removeprefix("@").lower())
    for column, value in columns.items():
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    return where, values


def _label(t: Tracker, name: str) -> str:
    found = t.value("SELECT name FROM labels WHERE name = ?", name.lower())
    if found is None:
        raise unknown("label", name, t.column("SELECT name FROM labels"))
    return found


def _parent(t: Tracker, parent: str | None, project: str, child: str | None = None) -> str | None:
    """The key of a parent that an issue of the project may have."""
    if parent is None:
        return None
    row = need_issue(t, parent)
    if row["project"] != project:
        raise Refused(f"{row['key']} is in {row['project']}; a parent is in the same project.")
    above: str | None = row["key"]
    while above is not None:
        if above == child:
            raise Refused(f"{row['key']} is part of {child} already; this is a circle.")
        above = t.value("SELECT parent FROM issues WHERE key = ?", above)
    return row["key"]


def _milestone(t: Tracker, number: int | None, project: str) -> int | None:
    if number is None:
        return None
    row = need_milestone(t, number, still_open=True)
    if row["project"] != project:
        raise Refused(f"Milestone {number} belongs to {row['project']}, not to {project}.")
    return number


def _announce(t: Tracker, key: str, project: str, title: str, description: str) -> None:
    watch(t, t.me, f"issue:{key}")
    named = mentioned(t, description)
    record(
        t,
        "issue.created",
        f"issue:{key}",
        f"{t.me} created {key}: {title}",
        project=project,
        topic="mentioned" if named else None,
        tell=named,
    )
