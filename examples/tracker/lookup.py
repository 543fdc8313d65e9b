"""Finding what a call names, or saying what it could have named."""

from __future__ import annotations

from ..database import Refused, Row, unknown
from .tracker import Tracker
from .words import Role


def need_member(t: Tracker, handle: str) -> Row:
    """The active member of that handle."""
    handle = handle.removeprefix("@").lower()
    found = t.row("SELECT * FROM members WHERE handle = ?", handle)
    if found is None:
        raise unknown("member", handle, t.column("SELECT handle FROM members WHERE active"))
    if not found["active"]:
        raise Refused(f"{handle} is deactivated; pick an active member (list_members).")
    return found


def need_role(t: Tracker, *roles: Role) -> None:
    """Nothing, when the caller has one of these roles."""
    role = need_member(t, t.me)["role"]
    if role not in roles:
        raise Refused(f"This takes the role {' or '.join(roles)}; {t.me} is {role}.")


def need_project(t: Tracker, key: str, *, writable: bool = False) -> Row:
    """The project of that key; with `writable`, one that is not archived."""
    found = t.row("SELECT * FROM projects WHERE key = ?", key.upper())
    if found is None:
        raise unknown("project", key, t.column("SELECT key FROM projects"))
    if writable and found["status"] == "archived":
        raise Refused(
            f"{found['key']} is archived and takes no changes; restore_project reopens it."
        )
    return found


def need_issue(t: Tracker, key: str, *, writable: bool = False) -> Row:
    """The issue of that key; with `writable`, one whose project is not archived."""
    found = t.row("SELECT * FROM issues WHERE key = ?", key.upper())
    if found is None:
        project = key.upper().partition("-")[0]
        siblings = t.column("SELECT key FROM issues WHERE project = ?", project)
        raise unknown("issue", key, siblings or t.column("SELECT key FROM projects"))
    if writable:
        need_project(t, found["project"], writable=True)
    return found


def need_milestone(t: Tracker, number: int, *, still_open: bool = False) -> Row:
    """The milestone of that number; with `still_open`, one that was not closed."""
    found = t.row("SELECT * FROM milestones WHERE id = ?", number)
    if found is None:
        names = t.column("SELECT id || ' (' || project || ' ' || name || ')' FROM milestones")
        raise unknown("milestone", number, names)
    if still_open and found["closed_at"]:
        raise Refused(
            f"Milestone {number} was closed on {found['closed_at'][:10]}; use an open one."
        )
    return found
