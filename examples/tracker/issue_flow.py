"""Issues on their way: statuses, the links that hold them up, moves, and their end."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pegboard import Example

from ..database import Record, Refused, Row
from ..toolbox import ADDS, READS, REMOVES, SETS, Toolbox
from . import blobs, workflow
from .events import record
from .issues import issues
from .lifecycle import Issue, IssueBrief, brief, facts, transition, whole
from .lookup import need_issue, need_project, need_role
from .tracker import Tracker
from .words import IssueKey, LinkKind, ProjectKey, Status

flow = Toolbox[Tracker](issues.name, issues.description)


class Transition(Record):
    status: Status
    allowed: bool
    reason: str | None = Field(description="What stands in the way, when it is not allowed.")


class Transitions(Record):
    issue: str
    status: Status
    transitions: list[Transition]


class Link(Record):
    kind: str
    issue: IssueBrief


class Links(Record):
    issue: str
    parent: str | None
    sub_issues: list[IssueBrief]
    links: list[Link]
    blocked_by_chain: list[str] = Field(
        description="Open issues that must close first, directly or through others, nearest first."
    )


class Moved(Record):
    old_key: str
    issue: Issue


class Deleted(Record):
    deleted: str
    comments: int
    attachments: int


@flow.tool(
    summary="Show which statuses an issue can move to",
    annotations=READS,
    related=("transition_issue",),
    examples=[Example("By key", {"issue": "WEB-3"})],
)
def list_transitions(t: Tracker, issue: IssueKey) -> Transitions:
    """List the statuses that may follow the current one, with the obstacle where there is one.

    Obstacles are open blockers, open sub-issues and a missing assignee.
    """
    row = need_issue(t, issue)
    status: Status = row["status"]
    reasons: dict[Status, str | None] = {
        s: workflow.obstacle(status, s, facts(t, row)) for s in workflow.NEXT[status]
    }
    return Transitions(
        issue=row["key"],
        status=status,
        transitions=[
            Transition(status=s, allowed=why is None, reason=why) for s, why in reasons.items()
        ],
    )


@flow.tool(
    summary="Move an issue to another status, such as in_progress or done",
    annotations=SETS,
    aliases=("close ticket", "resolve", "reopen", "start work"),
    related=("list_transitions", "assign_issue"),
    examples=[
        Example("Start work", {"issue": "WEB-3", "status": "in_progress"}),
        Example("Finish", {"issue": "API-1", "status": "done", "note": "Fixed in 4.2."}),
    ],
)
def transition_issue(
    t: Tracker,
    issue: IssueKey,
    status: Annotated[Status, Field(description="Where it shall go.")],
    note: Annotated[str, Field(description="Why; shown in the timeline.")] = "",
) -> Issue:
    """Move an issue along the workflow: backlog, todo, in_progress, in_review, done, or canceled.

    Work starts only with an assignee and without open blockers; an issue is done only when its
    blockers and sub-issues are closed. `list_transitions` tells what is possible now. Watchers are
    notified.
    """
    row = need_issue(t, issue, writable=True)
    if row["status"] != status:
        transition(t, row, status, note)
    return whole(t, row["key"])


@flow.tool(
    summary="Link two issues: blocks, relates_to or duplicates",
    annotations=SETS,
    related=("unlink_issues", "get_issue_links"),
    examples=[Example("WEB-2 must wait", {"source": "API-1", "kind": "blocks", "target": "WEB-2"})],
)
def link_issues(
    t: Tracker,
    source: Annotated[
        str, Field(description="Key of the issue that blocks, relates or duplicates.")
    ],
    kind: Annotated[LinkKind, Field(description="What the source does to the target.")],
    target: Annotated[str, Field(description="Key of the other issue.")],
) -> Links:
    """Link two issues, also across projects.

    A chain of blocks may not close into a circle. Marking an open issue as a duplicate cancels it,
    since the work goes on in the other one.
    """
    first, second = need_issue(t, source, writable=True), need_issue(t, target)
    if first["key"] == second["key"]:
        raise Refused(f"{first['key']} cannot be linked to itself.")
    if kind == "blocks" and second["key"] in [r["key"] for r in _before(t, first["key"])]:
        raise Refused(
            f"{second['key']} already has to close before {first['key']}; this is a circle."
        )
    added = t.run(
        "INSERT OR IGNORE INTO issue_links VALUES (?, ?, ?)", first["key"], kind, second["key"]
    )
    if added:
        summary = f"{t.me} linked: {first['key']} {kind.replace('_', ' ')} {second['key']}"
        subject, project = f"issue:{first['key']}", first["project"]
        record(t, "issue.linked", subject, summary, project=project, link=kind, to=second["key"])
    if kind == "duplicates" and first["status"] in workflow.OPEN:
        transition(t, first, "canceled", f"Duplicate of {second['key']}")
    return get_issue_links(t, first["key"])


@flow.tool(
    summary="Remove a link between two issues",
    annotations=REMOVES,
    related=("link_issues",),
    examples=[Example("They are independent", {"source": "WEB-3", "target": "WEB-4"})],
)
def unlink_issues(
    t: Tracker,
    source: Annotated[str, Field(description="Key of the issue the link starts at.")],
    target: Annotated[str, Field(description="Key of the issue the link leads to.")],
) -> Links:
    """Remove every link that leads from one issue to another.

    Links in the other direction stay. `get_issue_links` shows both directions.
    """
    first, second = need_issue(t, source, writable=True), need_issue(t, target)
    gone = t.run(
        "DELETE FROM issue_links WHERE source = ? AND target = ?", first["key"], second["key"]
    )
    if not gone:
        raise Refused(f"No link leads from {first['key']} to {second['key']}; try the other way.")
    summary = f"{t.me} unlinked {first['key']} from {second['key']}"
    record(t, "issue.unlinked", f"issue:{first['key']}", summary, project=first["project"])
    return get_issue_links(t, first["key"])


@flow.tool(
    summary="Show what an issue is linked to and what must close before it",
    annotations=READS,
    aliases=("dependencies", "blockers"),
    related=("link_issues",),
    examples=[Example("By key", {"issue": "WEB-2"})],
)
def get_issue_links(t: Tracker, issue: IssueKey) -> Links:
    """Show the parent, the sub-issues and the links of an issue in both directions.

    `blocked_by_chain` follows blocking links through other issues and lists every open one that
    stands before this issue.
    """
    row = need_issue(t, issue)
    key = row["key"]
    links = [(r["kind"], r) for r in _linked(t, "source", "target", key)]
    links += [(_PASSIVE[r["kind"]], r) for r in _linked(t, "target", "source", key)]
    children = t.rows("SELECT * FROM issues WHERE parent = ? ORDER BY key", key)
    return Links(
        issue=key,
        parent=row["parent"],
        sub_issues=[brief(r) for r in children],
        links=[Link(kind=kind, issue=brief(r)) for kind, r in links],
        blocked_by_chain=[r["key"] for r in _before(t, key) if r["closed_at"] is None],
    )


@flow.tool(
    summary="Move an issue to another project, under a new key",
    annotations=ADDS,
    examples=[Example("To the API", {"issue": "WEB-3", "project": "API"})],
    related=("list_projects",),
)
def move_issue(t: Tracker, issue: IssueKey, project: ProjectKey) -> Moved:
    """Move an issue to another project, where it gets the next key.

    Comments, attachments, links, logged time and history move with it. It leaves its milestone and
    its parent, which stay behind, and loses an assignee who does not take part in the new project.
    """
    row, goal = need_issue(t, issue, writable=True), need_project(t, project, writable=True)
    if row["project"] == goal["key"]:
        raise Refused(f"{row['key']} is in {goal['key']} already.")
    old, new = row["key"], f"{goal['key']}-{goal['next_number']}"
    members = t.column("SELECT member FROM project_members WHERE project = ?", goal["key"])
    t.update("projects", "key", goal["key"], next_number=goal["next_number"] + 1)
    t.run(
        "UPDATE issues SET key = ?, project = ?, milestone = NULL, parent = NULL, assignee = ?, "
        "updated_at = ? WHERE key = ?",
        new,
        goal["key"],
        row["assignee"] if row["assignee"] in members else None,
        t.stamp,
        old,
    )
    for table in ("events", "watches"):
        t.run(f"UPDATE {table} SET subject = ? WHERE subject = ?", f"issue:{new}", f"issue:{old}")
    summary = f"{t.me} moved {old} to {goal['key']} as {new}"
    record(t, "issue.moved", f"issue:{new}", summary, project=goal["key"], before=old, after=new)
    return Moved(old_key=old, issue=whole(t, new))


@flow.tool(
    summary="Delete an issue with its comments and attachments, for good",
    annotations=REMOVES,
    related=("transition_issue",),
    examples=[Example("Reported by mistake", {"issue": "WEB-4"})],
)
def delete_issue(t: Tracker, issue: IssueKey) -> Deleted:
    """Delete an issue for good, with its comments, attachments and links.

    Owners and admins only. It refuses when time was logged on the issue or it has sub-issues;
    cancel it with `transition_issue` in that case, which keeps the record.
    """
    need_role(t, "owner", "admin")
    row = need_issue(t, issue, writable=True)
    key = row["key"]
    if t.row("SELECT 1 FROM time_entries WHERE issue = ?", key):
        raise Refused(f"Time was logged on {key}; cancel it instead, so that reports stay right.")
    if children := t.column("SELECT key FROM issues WHERE parent = ?", key):
        raise Refused(f"{key} has sub-issues {', '.join(children)}; delete or move them first.")
    counts = {
        table: t.value(f"SELECT count(*) FROM {table} WHERE issue = ?", key)
        for table in ("comments", "attachments")
    }
    t.run("DELETE FROM issues WHERE key = ?", key)
    blobs.sweep(t)
    t.run("DELETE FROM watches WHERE subject = ?", f"issue:{key}")
    record(t, "issue.deleted", f"issue:{key}", f"{t.me} deleted {key}", project=row["project"])
    return Deleted(deleted=key, **counts)


_PASSIVE = {"blocks": "blocked_by", "relates_to": "relates_to", "duplicates": "duplicated_by"}


def _linked(t: Tracker, near: str, far: str, key: str) -> list[Row]:
    return t.rows(
        f"SELECT kind, issues.* FROM issue_links JOIN issues ON key = {far} WHERE {near} = ? "
        "ORDER BY kind, key",
        key,
    )


def _before(t: Tracker, key: str) -> list[Row]:
    """The issues that block one, directly or through others, nearest first."""
    return t.rows(
        """WITH RECURSIVE before (key, depth) AS (
            SELECT source, 1 FROM issue_links WHERE target = ? AND kind = 'blocks'
            UNION SELECT source, depth + 1 FROM issue_links JOIN before ON target = before.key
                WHERE kind = 'blocks')
        SELECT key, closed_at FROM before JOIN issues USING (key)
        GROUP BY key ORDER BY min(depth), key""",
        key,
    )
