"""An issue as tools show it, and the one way in which its status changes."""

from __future__ import annotations

from datetime import date, datetime

from pydantic import Field

from ..database import Record, Refused, Row
from . import workflow
from .events import record, watch
from .tracker import Tracker
from .words import IssueType, Priority, Status

PRIORITY_ORDER = (
    "CASE priority WHEN 'urgent' THEN 0 WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END"
)


class IssueBrief(Record):
    key: str
    title: str
    type: IssueType
    status: Status
    priority: Priority
    assignee: str | None
    due_on: date | None


class Issue(IssueBrief):
    project: str
    description: str
    reporter: str
    labels: list[str]
    milestone: int | None
    parent: str | None
    estimate_hours: float | None
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None


class Issues(Record):
    issues: list[IssueBrief]
    total: int = Field(description="How many there are altogether, beyond this page.")


def brief(row: Row) -> IssueBrief:
    """An issue as lists show it."""
    return IssueBrief.model_validate(row)


def whole(t: Tracker, key: str) -> Issue:
    """An issue with everything that belongs to it alone."""
    row = t.row("SELECT * FROM issues WHERE key = ?", key) or {}
    labels = t.column("SELECT label FROM issue_labels WHERE issue = ? ORDER BY label", key)
    return Issue(**row, labels=labels)


def facts(t: Tracker, row: Row) -> workflow.Facts:
    """What the rules of the workflow look at."""
    return workflow.Facts(
        assignee=row["assignee"],
        open_blockers=t.column(
            "SELECT source FROM issue_links JOIN issues ON key = source "
            "WHERE target = ? AND kind = 'blocks' AND closed_at IS NULL ORDER BY source",
            row["key"],
        ),
        open_children=t.column(
            "SELECT key FROM issues WHERE parent = ? AND closed_at IS NULL ORDER BY key", row["key"]
        ),
    )


def set_status(t: Tracker, row: Row, target: Status, note: str = "") -> None:
    """Move an issue to a status that the caller has found to be allowed."""
    closed = t.stamp if target in workflow.CLOSED else None
    t.update("issues", "key", row["key"], status=target, updated_at=t.stamp)
    t.run("UPDATE issues SET closed_at = ? WHERE key = ?", closed, row["key"])
    record(
        t,
        "issue.transitioned",
        f"issue:{row['key']}",
        f"{t.me} moved {row['key']} from {row['status']} to {target}",
        project=row["project"],
        topic="status",
        before=row["status"],
        after=target,
        note=note,
    )


def transition(t: Tracker, row: Row, target: Status, note: str = "") -> None:
    """Move an issue to another status if the rules allow it.

    Raises:
        Refused: they do not; the message names the rule.
    """
    why = workflow.obstacle(row["status"], target, facts(t, row))
    if why:
        raise Refused(f"{row['key']} cannot go from {row['status']} to {target}: {why}.")
    set_status(t, row, target, note)


def assign(t: Tracker, row: Row, assignee: str | None) -> None:
    """Give an issue to a member of its project, or to nobody."""
    if assignee is not None:
        members = t.column("SELECT member FROM project_members WHERE project = ?", row["project"])
        if assignee not in members:
            raise Refused(
                f"{assignee} does not take part in {row['project']} (members: "
                f"{', '.join(sorted(members))}); add_project_member lets them."
            )
        watch(t, assignee, f"issue:{row['key']}")
    t.run(
        "UPDATE issues SET assignee = ?, updated_at = ? WHERE key = ?",
        assignee,
        t.stamp,
        row["key"],
    )
    record(
        t,
        "issue.assigned",
        f"issue:{row['key']}",
        f"{t.me} assigned {row['key']} to {assignee or 'nobody'}",
        project=row["project"],
        topic="assigned",
        tell=[assignee] if assignee else [],
        before=row["assignee"],
        after=assignee,
    )
