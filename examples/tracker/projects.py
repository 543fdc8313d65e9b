"""Projects: what work is for, who takes part, and how it is doing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from pegboard import Example

from ..database import Record, Refused, changed, iso
from ..toolbox import ADDS, READS, REMOVES, SETS, Toolbox
from .events import record
from .lifecycle import set_status
from .lookup import need_issue, need_member, need_project, need_role
from .tracker import Tracker
from .words import Member, ProjectKey, ProjectStatus

projects = Toolbox[Tracker](
    "projects", "Projects: create and archive them, choose who takes part, see how they are doing."
)


class Project(Record):
    key: str
    name: str
    description: str
    lead: str
    status: ProjectStatus
    created_at: datetime
    open_issues: int
    closed_issues: int


class ProjectDetails(Project):
    members: list[str]
    issues_by_status: dict[str, int]
    documents: int
    open_milestones: list[str]


class Projects(Record):
    projects: list[Project]
    total: int


class Participants(Record):
    project: str
    members: list[str]


class Health(Record):
    project: str
    grade: Literal["good", "at_risk", "bad"]
    open_issues: int
    overdue: int
    blocked: int
    unassigned_urgent: int
    opened_last_14_days: int
    closed_last_14_days: int
    reasons: list[str] = Field(description="What pulls the grade down, in words.")


_PROJECT = """SELECT projects.*,
    (SELECT count(*) FROM issues i WHERE i.project = projects.key AND closed_at IS NULL)
        AS open_issues,
    (SELECT count(closed_at) FROM issues i WHERE i.project = projects.key) AS closed_issues
    FROM projects"""


@projects.tool(
    summary="List projects with their lead, status and issue counts",
    annotations=READS,
    related=("get_project", "list_issues"),
    examples=[
        Example("Everything that is not archived", {}),
        Example("Paused", {"status": "paused"}),
    ],
)
def list_projects(
    t: Tracker,
    status: Annotated[
        ProjectStatus | None, Field(description="Only projects in this status.")
    ] = None,
    member: Annotated[
        str | None, Field(description="Only projects this member takes part in.")
    ] = None,
) -> Projects:
    """List projects by key, with how many issues are open and closed in each.

    Archived projects are left out unless you ask for that status. Project keys are the prefix of
    issue keys and what the other tools take as `project`.
    """
    handle = need_member(t, member)["handle"] if member else None
    rows = t.rows(
        _PROJECT + " WHERE (status = ? OR (? IS NULL AND status <> 'archived')) AND (? IS NULL OR "
        "key IN (SELECT project FROM project_members WHERE member = ?)) ORDER BY key",
        status,
        status,
        handle,
        handle,
    )
    return Projects(projects=[Project.model_validate(r) for r in rows], total=len(rows))


@projects.tool(
    summary="Show one project with members, milestones and issue counts",
    annotations=READS,
    related=("get_project_health", "list_milestones"),
    examples=[Example("The website", {"project": "WEB"})],
)
def get_project(t: Tracker, project: ProjectKey) -> ProjectDetails:
    """Show a project with its description, members, open milestones and issues by status."""
    key = need_project(t, project)["key"]
    counts = t.rows(
        "SELECT status, count(*) AS n FROM issues WHERE project = ? GROUP BY status", key
    )
    return ProjectDetails(
        **(t.row(_PROJECT + " WHERE key = ?", key) or {}),
        members=_participants(t, key),
        issues_by_status={r["status"]: r["n"] for r in counts},
        documents=t.value("SELECT count(*) FROM documents WHERE project = ?", key),
        open_milestones=t.column(
            "SELECT name FROM milestones WHERE project = ? AND closed_at IS NULL ORDER BY due_on",
            key,
        ),
    )


@projects.tool(
    summary="Create a project",
    annotations=ADDS,
    related=("add_project_member", "create_issue"),
    examples=[
        Example("A mobile app led by Ben", {"key": "APP", "name": "Mobile app", "lead": "ben"})
    ],
)
def create_project(
    t: Tracker,
    key: Annotated[str, Field(pattern="^[A-Z]{2,6}$", description="Two to six capitals, unique.")],
    name: Annotated[str, Field(min_length=1, description="Display name.")],
    lead: Annotated[str | None, Field(description="Who leads it; you, when left out.")] = None,
    description: Annotated[str, Field(description="What the project is for.")] = "",
) -> ProjectDetails:
    """Create a project and make its lead the first member.

    The key becomes the prefix of every issue key and can never be changed or used again. Guests
    cannot create projects.
    """
    need_role(t, "owner", "admin", "member")
    leader = need_member(t, lead or t.me)["handle"]
    if t.row("SELECT 1 FROM projects WHERE key = ?", key):
        raise Refused(f"The key {key} is taken; choose another of two to six capitals.")
    t.insert(
        "projects", key=key, name=name, description=description, lead=leader, created_at=t.stamp
    )
    t.insert("project_members", project=key, member=leader)
    record(
        t, "project.created", f"project:{key}", f"{t.me} created the project {name}", project=key
    )
    return get_project(t, key)


@projects.tool(
    summary="Change a project's name, description, lead or status",
    annotations=SETS,
    examples=[Example("Pause it", {"project": "OPS", "status": "paused"})],
    related=(
        "get_project",
        "archive_project",
    ),
)
def update_project(
    t: Tracker,
    project: ProjectKey,
    name: Annotated[str | None, Field(min_length=1, description="New display name.")] = None,
    description: Annotated[str | None, Field(description="New description.")] = None,
    lead: Annotated[str | None, Field(description="Handle of the new lead.")] = None,
    status: Annotated[
        Literal["active", "paused"] | None, Field(description="Whether work goes on.")
    ] = None,
) -> ProjectDetails:
    """Change what is said of a project; whatever you leave out stays as it is.

    A new lead becomes a member of the project if they are not one. Archiving has a tool of its own,
    `archive_project`, since it has conditions.
    """
    key = need_project(t, project, writable=True)["key"]
    values = changed(name=name, description=description, lead=lead, status=status)
    if lead:
        values["lead"] = need_member(t, lead)["handle"]
        t.run("INSERT OR IGNORE INTO project_members VALUES (?, ?)", key, values["lead"])
    t.update("projects", "key", key, **values)
    record(
        t,
        "project.updated",
        f"project:{key}",
        f"{t.me} changed {', '.join(values)} of {key}",
        project=key,
        after=values,
    )
    return get_project(t, key)


@projects.tool(
    summary="Archive a project: it stays readable and takes no changes",
    annotations=REMOVES,
    related=("restore_project",),
    examples=[Example("With its open issues", {"project": "OPS", "cancel_open_issues": True})],
)
def archive_project(
    t: Tracker,
    project: ProjectKey,
    cancel_open_issues: Annotated[
        bool, Field(description="Cancel what is still open, instead of refusing.")
    ] = False,
) -> ProjectDetails:
    """Archive a project so that its issues and documents can be read but not changed.

    Owners, admins and the project's lead only. It refuses while issues are open, unless told to
    cancel them; `restore_project` brings the project back, but not the canceled issues.
    """
    row = need_project(t, project, writable=True)
    if t.me != row["lead"]:
        need_role(t, "owner", "admin")
    key = row["key"]
    still_open = t.column("SELECT key FROM issues WHERE project = ? AND closed_at IS NULL", key)
    if still_open and not cancel_open_issues:
        raise Refused(
            f"{key} has {len(still_open)} open issues ({', '.join(still_open[:5])} ...); close "
            "them, or pass cancel_open_issues=true."
        )
    for issue in still_open:
        set_status(t, need_issue(t, issue), "canceled", f"{key} was archived")
    t.update("projects", "key", key, status="archived")
    summary = f"{t.me} archived {key}"
    record(t, "project.archived", f"project:{key}", summary, project=key, canceled=still_open)
    return get_project(t, key)


@projects.tool(
    summary="Bring an archived project back to active",
    annotations=SETS,
    related=("archive_project",),
    examples=[Example("By key", {"project": "OPS"})],
)
def restore_project(t: Tracker, project: ProjectKey) -> ProjectDetails:
    """Make an archived project active again, so that it takes changes.

    Issues that were canceled when it was archived stay canceled; `transition_issue` reopens them.
    """
    need_role(t, "owner", "admin")
    row = need_project(t, project)
    if row["status"] != "archived":
        raise Refused(
            f"{row['key']} is {row['status']}, not archived; there is nothing to restore."
        )
    t.update("projects", "key", row["key"], status="active")
    subject = f"project:{row['key']}"
    record(t, "project.restored", subject, f"{t.me} restored {row['key']}", project=row["key"])
    return get_project(t, row["key"])


@projects.tool(
    summary="Let a member take part in a project",
    annotations=SETS,
    related=("remove_project_member", "list_members"),
    examples=[Example("Dora helps", {"project": "WEB", "member": "dora"})],
)
def add_project_member(t: Tracker, project: ProjectKey, member: Member) -> Participants:
    """Add a member to a project, so that issues of it can be assigned to them.

    Adding somebody who takes part already changes nothing.
    """
    key = need_project(t, project, writable=True)["key"]
    handle = need_member(t, member)["handle"]
    if t.run("INSERT OR IGNORE INTO project_members VALUES (?, ?)", key, handle):
        summary = f"{t.me} added {handle} to {key}"
        record(t, "project.member_added", f"project:{key}", summary, project=key)
    return Participants(project=key, members=_participants(t, key))


@projects.tool(
    summary="Take a member out of a project",
    annotations=REMOVES,
    related=("add_project_member",),
    examples=[Example("By handle", {"project": "WEB", "member": "dora"})],
)
def remove_project_member(t: Tracker, project: ProjectKey, member: Member) -> Participants:
    """Take a member out of a project; what they did there stays.

    The lead cannot be removed, nor somebody with open issues in the project: reassign those first.
    """
    row = need_project(t, project, writable=True)
    key, handle = row["key"], need_member(t, member)["handle"]
    if handle not in _participants(t, key):
        raise Refused(f"{handle} does not take part in {key}.")
    if handle == row["lead"]:
        raise Refused(f"{handle} leads {key}; give it another lead first (update_project).")
    busy = t.column(
        "SELECT key FROM issues WHERE project = ? AND assignee = ? AND closed_at IS NULL",
        key,
        handle,
    )
    if busy:
        raise Refused(f"{handle} still has {', '.join(busy)}; reassign them first (assign_issue).")
    t.run("DELETE FROM project_members WHERE project = ? AND member = ?", key, handle)
    summary = f"{t.me} removed {handle} from {key}"
    record(t, "project.member_removed", f"project:{key}", summary, project=key)
    return Participants(project=key, members=_participants(t, key))


@projects.tool(
    summary="Grade a project by overdue, blocked and unassigned work",
    annotations=READS,
    aliases=("project status report",),
    related=("get_burndown", "summarize_activity"),
    examples=[Example("By key", {"project": "WEB"})],
)
def get_project_health(t: Tracker, project: ProjectKey) -> Health:
    """Grade a project as good, at risk or bad, with the figures and the reasons for it.

    It counts open issues that are overdue, blocked by other open issues, or urgent without an
    assignee, and compares how many issues were opened and closed in the last 14 days.
    """
    key = need_project(t, project)["key"]
    figures = _figures(t, key)
    reasons = [
        text
        for text, bad in (
            (f"{figures['overdue']} overdue", figures["overdue"]),
            (f"{figures['blocked']} blocked", figures["blocked"]),
            (f"{figures['unassigned_urgent']} urgent and unassigned", figures["unassigned_urgent"]),
            (
                "more was opened than closed in the last 14 days",
                figures["opened_last_14_days"] > figures["closed_last_14_days"],
            ),
        )
        if bad
    ]
    grade = "good" if not reasons else "at_risk" if len(reasons) < 3 else "bad"
    return Health(project=key, grade=grade, reasons=reasons, **figures)


def _figures(t: Tracker, key: str) -> dict[str, int]:
    recently = iso(t.now() - timedelta(days=14))
    is_open = "project = ? AND closed_at IS NULL"
    blocked = """key IN (SELECT target FROM issue_links JOIN issues b ON b.key = source
        WHERE kind = 'blocks' AND b.closed_at IS NULL)"""
    count = "SELECT count(*) FROM issues WHERE "
    return {
        "open_issues": t.value(count + is_open, key),
        "overdue": t.value(f"{count}{is_open} AND due_on < ?", key, t.today),
        "blocked": t.value(f"{count}{is_open} AND {blocked}", key),
        "unassigned_urgent": t.value(
            f"{count}{is_open} AND priority = 'urgent' AND assignee IS NULL", key
        ),
        "opened_last_14_days": t.value(f"{count}project = ? AND created_at >= ?", key, recently),
        "closed_last_14_days": t.value(f"{count}project = ? AND closed_at >= ?", key, recently),
    }


def _participants(t: Tracker, key: str) -> list[str]:
    return t.column("SELECT member FROM project_members WHERE project = ? ORDER BY member", key)
