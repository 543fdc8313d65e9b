"""Workspace: members and their roles, settings, labels."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated

from pydantic import Field

from pegboard import Example

from ..database import Record, Refused, changed, unknown
from ..toolbox import ADDS, READS, REMOVES, SETS, Toolbox
from .events import record
from .lookup import need_member, need_role
from .tracker import Tracker
from .words import Member, Role

workspace = Toolbox[Tracker](
    "workspace",
    "Members and their roles, workspace settings, and the labels that issues can carry.",
)

EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
LabelName = Annotated[str, Field(description="Name of the label, such as regression.")]


class Person(Record):
    handle: str
    name: str
    email: str
    role: Role
    active: bool
    joined_at: datetime


class People(Record):
    members: list[Person]
    total: int


class Workspace(Record):
    name: str
    working_hours: str = Field(description="Hours of a working day in UTC, such as 9-17.")
    storage_quota_bytes: int
    members: int
    projects: int
    open_issues: int


class Label(Record):
    name: str
    color: str
    description: str
    issues: int = Field(description="How many issues carry it.")


class Labels(Record):
    labels: list[Label]


class Departure(Record):
    member: Person
    reassigned: list[str] = Field(description="Keys of the issues that went to somebody else.")


def person(t: Tracker, handle: str) -> Person:
    """A member as tools show them."""
    return Person.model_validate(t.row("SELECT * FROM members WHERE handle = ?", handle))


def setting(t: Tracker, name: str) -> str:
    """The value of a workspace setting."""
    return t.value("SELECT value FROM settings WHERE name = ?", name)


@workspace.tool(
    summary="Show the workspace: name, settings and head counts",
    annotations=READS,
    related=("update_workspace", "list_members"),
    examples=[Example("Name and settings", {})],
)
def get_workspace(t: Tracker) -> Workspace:
    """Show the workspace with its settings and how much is in it.

    Use it for orientation before anything else, or to learn the working hours and the storage quota
    that other tools apply.
    """
    counts = "SELECT (SELECT count(*) FROM members WHERE active) AS members, "
    counts += "(SELECT count(*) FROM projects WHERE status <> 'archived') AS projects, "
    counts += "(SELECT count(*) FROM issues WHERE closed_at IS NULL) AS open_issues"
    return Workspace(
        name=setting(t, "name"),
        working_hours=setting(t, "working_hours"),
        storage_quota_bytes=int(setting(t, "storage_quota_bytes")),
        **(t.row(counts) or {}),
    )


@workspace.tool(
    summary="Change the workspace's name, working hours or storage quota",
    annotations=SETS,
    examples=[Example("Longer days", {"working_hours": "8-18"})],
    related=("get_workspace",),
)
def update_workspace(
    t: Tracker,
    name: Annotated[str | None, Field(description="New display name.", min_length=1)] = None,
    working_hours: Annotated[
        str | None,
        Field(pattern=r"^\d{1,2}-\d{1,2}$", description="Working day in UTC, such as 9-17."),
    ] = None,
    storage_quota_bytes: Annotated[
        int | None, Field(ge=0, description="Bytes that attachments and files may take together.")
    ] = None,
) -> Workspace:
    """Change settings of the workspace; whatever you leave out stays as it is.

    Owners and admins only. Working hours bound the slots that `find_free_slots` offers. A quota
    below what is stored already is accepted, but nothing more can be uploaded until enough is
    deleted.
    """
    need_role(t, "owner", "admin")
    values = changed(
        name=name, working_hours=working_hours, storage_quota_bytes=storage_quota_bytes
    )
    if working_hours:
        start, _, end = working_hours.partition("-")
        if not 0 <= int(start) < int(end) <= 24:
            raise Refused(f"Working hours go from an earlier to a later hour; got {working_hours}.")
    for setting_name, value in values.items():
        t.run("UPDATE settings SET value = ? WHERE name = ?", str(value), setting_name)
    record(t, "workspace.updated", "workspace", f"{t.me} changed {', '.join(values)}", after=values)
    return get_workspace(t)


@workspace.tool(
    summary="Show who you are in this workspace",
    annotations=READS,
    aliases=("whoami", "my profile"),
    related=("list_members",),
    examples=[Example("Who you are", {})],
)
def get_current_member(t: Tracker) -> Person:
    """Show the member that this connection acts as, with their role.

    Tools that speak of "you" or "yourself" mean this member.
    """
    return person(t, t.me)


@workspace.tool(
    summary="List the members of the workspace",
    annotations=READS,
    aliases=("users", "people", "team"),
    examples=[Example("Everybody who administers", {"role": "admin"})],
    related=("invite_member",),
)
def list_members(
    t: Tracker,
    role: Annotated[Role | None, Field(description="Only members with this role.")] = None,
    include_inactive: Annotated[bool, Field(description="Also members who left.")] = False,
) -> People:
    """List members by handle, with role and e-mail address.

    Handles are what every other tool takes for assignees, attendees and mentions.
    """
    rows = t.rows(
        "SELECT * FROM members WHERE (? OR active) AND (? IS NULL OR role = ?) ORDER BY handle",
        include_inactive,
        role,
        role,
    )
    return People(members=[Person.model_validate(r) for r in rows], total=len(rows))


@workspace.tool(
    summary="Invite somebody into the workspace",
    annotations=ADDS,
    aliases=("add user",),
    examples=[
        Example(
            "A new developer",
            {"handle": "eva", "name": "Eva Lind", "email": "eva@northwind.example"},
        )
    ],
    related=("list_members",),
)
def invite_member(
    t: Tracker,
    handle: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{1,19}$", description="New handle.")],
    name: Annotated[str, Field(min_length=1, description="Full name.")],
    email: Annotated[str, Field(description="E-mail address, unique in the workspace.")],
    role: Annotated[Role, Field(description="What they may do.")] = "member",
) -> Person:
    """Add a member to the workspace; they are active at once.

    Owners and admins only, and only an owner can invite another owner. Handle and e-mail address
    must both be new, also among members who were deactivated.
    """
    need_role(t, *(("owner",) if role == "owner" else ("owner", "admin")))
    if not EMAIL.fullmatch(email):
        raise Refused(f"{email!r} is not an e-mail address; one looks like eva@northwind.example.")
    taken = t.row("SELECT * FROM members WHERE handle = ? OR email = ?", handle, email.lower())
    if taken:
        raise Refused(f"{taken['handle']} <{taken['email']}> is a member already; choose another.")
    t.insert("members", handle=handle, name=name, email=email.lower(), role=role, joined_at=t.stamp)
    record(t, "member.invited", f"member:{handle}", f"{t.me} invited {name} as {role}")
    return person(t, handle)


@workspace.tool(
    summary="Change what a member may do",
    annotations=SETS,
    examples=[Example("Make Ben an admin", {"member": "ben", "role": "admin"})],
    related=("list_members",),
)
def change_member_role(t: Tracker, member: Member, role: Role) -> Person:
    """Give a member another role: owner, admin, member or guest.

    Owners only. The workspace always keeps at least one owner, so the last one cannot be demoted
    before somebody else has been made owner.
    """
    need_role(t, "owner")
    handle = need_member(t, member)["handle"]
    if role != "owner":
        _keep_an_owner(t, handle)
    t.update("members", "handle", handle, role=role)
    record(t, "member.role_changed", f"member:{handle}", f"{t.me} made {handle} {role}", role=role)
    return person(t, handle)


@workspace.tool(
    summary="Deactivate a member and hand their open issues to somebody",
    annotations=REMOVES,
    aliases=("remove user", "offboard"),
    related=("list_members", "assign_issue"),
    examples=[Example("Ben takes over", {"member": "chen", "reassign_to": "ben"})],
)
def deactivate_member(
    t: Tracker,
    member: Member,
    reassign_to: Annotated[
        str | None, Field(description="Who gets their open issues; leave out to unassign them.")
    ] = None,
) -> Departure:
    """Deactivate a member who leaves; what they wrote stays, and their handle stays taken.

    Owners and admins only. Their open issues go to `reassign_to` or become unassigned, and a
    running timer is stopped. The last owner and yourself cannot be deactivated.
    """
    need_role(t, "owner", "admin")
    handle = need_member(t, member)["handle"]
    heir = need_member(t, reassign_to)["handle"] if reassign_to else None
    if handle in (t.me, heir):
        raise Refused(
            f"{handle} cannot leave and be {'you' if handle == t.me else 'the heir'} too."
        )
    _keep_an_owner(t, handle)
    keys = t.column(
        "SELECT key FROM issues WHERE assignee = ? AND closed_at IS NULL ORDER BY key", handle
    )
    for key in keys:
        t.update("issues", "key", key, assignee=heir, updated_at=t.stamp)
    t.run(
        "UPDATE time_entries SET ended_at = ? WHERE member = ? AND ended_at IS NULL",
        t.stamp,
        handle,
    )
    t.update("members", "handle", handle, active=0)
    record(t, "member.deactivated", f"member:{handle}", f"{t.me} deactivated {handle}", issues=keys)
    return Departure(member=person(t, handle), reassigned=keys)


@workspace.tool(
    summary="List the labels and how many issues carry each",
    annotations=READS,
    aliases=("tags",),
    related=(
        "label_issue",
        "create_label",
    ),
    examples=[Example("All of them", {})],
)
def list_labels(t: Tracker) -> Labels:
    """List every label of the workspace with its color and how many issues carry it."""
    rows = t.rows(
        "SELECT labels.*, count(issue) AS issues FROM labels "
        "LEFT JOIN issue_labels ON label = name GROUP BY name ORDER BY name"
    )
    return Labels(labels=[Label.model_validate(r) for r in rows])


@workspace.tool(
    summary="Create a label that issues can carry",
    annotations=ADDS,
    examples=[Example("A blue one", {"name": "accessibility", "color": "#3a6ea5"})],
    related=("label_issue",),
)
def create_label(
    t: Tracker,
    name: LabelName,
    color: Annotated[
        str, Field(pattern="^#[0-9a-f]{6}$", description="Color as #rrggbb.")
    ] = "#8a8f98",
    description: Annotated[str, Field(description="When to use the label.")] = "",
) -> Label:
    """Create a label for use on issues of every project.

    Names are kept in lower case and must be unique. Use `label_issue` to put it on an issue.
    """
    name = name.strip().lower()
    if not name:
        raise Refused("A label needs a name.")
    if t.row("SELECT 1 FROM labels WHERE name = ?", name):
        raise Refused(f"There is a label {name!r} already; use it, or choose another name.")
    t.insert("labels", name=name, color=color, description=description)
    record(t, "label.created", f"label:{name}", f"{t.me} created the label {name}")
    return Label(name=name, color=color, description=description, issues=0)


@workspace.tool(
    summary="Delete a label and take it off every issue",
    annotations=REMOVES,
    related=("list_labels",),
    examples=[Example("By name", {"name": "triage"})],
)
def delete_label(t: Tracker, name: LabelName) -> Label:
    """Delete a label from the workspace and from every issue that carries it.

    Owners and admins only. The answer shows the label as it was, with the number of issues that
    lost it.
    """
    need_role(t, "owner", "admin")
    found = next((label for label in list_labels(t).labels if label.name == name.lower()), None)
    if found is None:
        raise unknown("label", name, t.column("SELECT name FROM labels"))
    t.run("DELETE FROM issue_labels WHERE label = ?", found.name)
    t.run("DELETE FROM labels WHERE name = ?", found.name)
    record(t, "label.deleted", f"label:{found.name}", f"{t.me} deleted the label {found.name}")
    return found


def _keep_an_owner(t: Tracker, leaving: str) -> None:
    owners = t.column("SELECT handle FROM members WHERE role = 'owner' AND active")
    if owners == [leaving]:
        raise Refused(f"{leaving} is the only owner; make somebody else owner first.")
