"""Contacts: people outside the workspace, what was said with them, which issues concern them."""

from __future__ import annotations

import csv
import io
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from pegboard import Example

from ..database import Record, Refused, Row, changed, iso, unknown
from ..toolbox import ADDS, READS, REMOVES, SETS, Toolbox
from .events import record
from .lifecycle import IssueBrief, brief
from .lookup import need_issue, need_role
from .tracker import Tracker
from .words import IssueKey, Limit, Offset
from .workspace import EMAIL

contacts = Toolbox[Tracker](
    "contacts", "Customers and other outside people: details, interactions, issues, duplicates."
)

ContactId = Annotated[int, Field(description="Number of the contact.")]
Kind = Literal["call", "email", "meeting", "note"]
DETAILS = ("name", "email", "company", "phone", "position", "notes")


class Contact(Record):
    id: int
    name: str
    email: str
    company: str
    phone: str
    position: str
    notes: str
    owner: str
    created_at: datetime


class Interaction(Record):
    id: int
    kind: Kind
    summary: str
    member: str
    at: datetime


class ContactDetails(Contact):
    interactions: list[Interaction] = Field(description="Latest ten, newest first.")
    issues: list[IssueBrief]


class Contacts(Record):
    contacts: list[Contact]
    total: int


class Pair(Record):
    keep: Contact
    other: Contact
    because: str


class Pairs(Record):
    pairs: list[Pair]


class Merged(Record):
    contact: ContactDetails
    moved_interactions: int
    moved_issues: int


class Import(Record):
    added: int
    updated: int
    rejected: list[str] = Field(description="Line and reason of each row that was left out.")


class Silent(Record):
    contact: Contact
    last_interaction: datetime | None
    open_issues: int


class SilentContacts(Record):
    contacts: list[Silent]


@contacts.tool(
    summary="List contacts by company, owner or part of a name",
    annotations=READS,
    aliases=("customers", "address book"),
    examples=[Example("At one company", {"company": "Fjord Bank"})],
    related=("get_contact",),
)
def list_contacts(
    t: Tracker,
    text: Annotated[str | None, Field(description="Part of name or e-mail.")] = None,
    company: Annotated[str | None, Field(description="Exact company name.")] = None,
    owner: Annotated[str | None, Field(description="Handle of who looks after them.")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> Contacts:
    """List contacts that fit every filter, by name."""
    where = "FROM contacts WHERE (? IS NULL OR instr(lower(name || ' ' || email), lower(?))) "
    where += "AND (? IS NULL OR company = ? COLLATE NOCASE) AND (? IS NULL OR owner = ?)"
    values = (text, text, company, company, owner, owner)
    rows = t.rows(f"SELECT * {where} ORDER BY name, id LIMIT ? OFFSET ?", *values, limit, offset)
    return Contacts(
        contacts=[Contact.model_validate(r) for r in rows],
        total=t.value(f"SELECT count(*) {where}", *values),
    )


@contacts.tool(
    summary="Show a contact with interactions and issues",
    annotations=READS,
    related=(
        "log_interaction",
        "update_contact",
    ),
    examples=[Example("By number", {"contact": 1})],
)
def get_contact(t: Tracker, contact: ContactId) -> ContactDetails:
    """Show a contact with the latest interactions and every issue linked to them."""
    row = _need(t, contact)
    said = t.rows(
        "SELECT * FROM interactions WHERE contact = ? ORDER BY at DESC, id DESC LIMIT 10", contact
    )
    linked = t.rows(
        "SELECT issues.* FROM issues JOIN contact_issues ON issue = key WHERE contact = ? "
        "ORDER BY key",
        contact,
    )
    return ContactDetails(
        **row,
        interactions=[Interaction.model_validate(i) for i in said],
        issues=[brief(i) for i in linked],
    )


@contacts.tool(
    summary="Add a contact",
    annotations=ADDS,
    aliases=("new customer",),
    examples=[Example("A customer", {"name": "Ida Holm", "email": "ida@fjordbank.example"})],
    related=(
        "find_duplicate_contacts",
        "log_interaction",
    ),
)
def create_contact(
    t: Tracker,
    name: Annotated[str, Field(min_length=1, description="Full name.")],
    email: Annotated[str, Field(description="E-mail address, unique among contacts.")],
    company: Annotated[str, Field(description="Where they work.")] = "",
    phone: Annotated[str, Field(description="Phone number.")] = "",
    position: Annotated[str, Field(description="What they do there.")] = "",
    notes: Annotated[str, Field(description="Anything worth remembering.")] = "",
) -> ContactDetails:
    """Add a person outside the workspace; you look after them from then on.

    The e-mail address must be new: one contact per address, upper and lower case being equal.
    """
    _check_email(t, email)
    number = t.insert(
        "contacts",
        name=name,
        email=email,
        company=company,
        phone=phone,
        position=position,
        notes=notes,
        owner=t.me,
        created_at=t.stamp,
    )
    record(t, "contact.created", f"contact:{number}", f"{t.me} added the contact {name}")
    return get_contact(t, number)


@contacts.tool(
    summary="Change the details of a contact",
    annotations=SETS,
    related=("get_contact",),
    examples=[Example("A new phone number", {"contact": 2, "phone": "+39 555 0102"})],
)
def update_contact(
    t: Tracker,
    contact: ContactId,
    name: Annotated[str | None, Field(min_length=1, description="New name.")] = None,
    email: Annotated[str | None, Field(description="New e-mail address.")] = None,
    company: Annotated[str | None, Field(description="New company.")] = None,
    phone: Annotated[str | None, Field(description="New phone number.")] = None,
    position: Annotated[str | None, Field(description="New position.")] = None,
    notes: Annotated[str | None, Field(description="New notes, replacing the old.")] = None,
) -> ContactDetails:
    """Change details of a contact; whatever you leave out stays as it is."""
    row = _need(t, contact)
    if email and email.lower() != row["email"].lower():
        _check_email(t, email)
    values = changed(
        name=name, email=email, company=company, phone=phone, position=position, notes=notes
    )
    t.update("contacts", "id", contact, **values)
    before = {key: row[key] for key in values}
    summary = f"{t.me} changed {', '.join(values)} of {row['name']}"
    record(t, "contact.updated", f"contact:{contact}", summary, before=before, after=values)
    return get_contact(t, contact)


@contacts.tool(
    summary="Write down a call, e-mail or meeting with a contact",
    annotations=ADDS,
    aliases=("log a call", "crm note"),
    examples=[Example("A call", {"contact": 1, "kind": "call", "summary": "Wants SSO by May."})],
    related=("list_silent_contacts",),
)
def log_interaction(
    t: Tracker,
    contact: ContactId,
    kind: Annotated[Kind, Field(description="How you were in touch.")],
    summary: Annotated[str, Field(min_length=1, description="What was said or agreed.")],
    at: Annotated[datetime | None, Field(description="When; now, when left out.")] = None,
) -> Interaction:
    """Note what was said with a contact, now or at a time in the past."""
    row = _need(t, contact)
    when = iso(at) if at else t.stamp
    if when > t.stamp:
        raise Refused(f"{when} is in the future; plan it with create_calendar_event.")
    number = t.insert(
        "interactions", contact=contact, kind=kind, summary=summary, member=t.me, at=when
    )
    note = f"{t.me} noted a {kind} with {row['name']}"
    record(t, "contact.interaction", f"contact:{contact}", note, interaction=number)
    return Interaction.model_validate(t.row("SELECT * FROM interactions WHERE id = ?", number))


@contacts.tool(
    summary="Link a contact to an issue that concerns them",
    annotations=SETS,
    examples=[Example("Who reported it", {"contact": 1, "issue": "WEB-3"})],
    related=("get_contact",),
)
def link_contact_to_issue(
    t: Tracker,
    contact: ContactId,
    issue: IssueKey,
    linked: Annotated[bool, Field(description="False removes the link.")] = True,
) -> ContactDetails:
    """Link a contact to an issue, for instance the customer who reported it, or remove the link."""
    _need(t, contact)
    key = need_issue(t, issue)["key"]
    if linked:
        t.run("INSERT OR IGNORE INTO contact_issues VALUES (?, ?)", contact, key)
    else:
        t.run("DELETE FROM contact_issues WHERE contact = ? AND issue = ?", contact, key)
    return get_contact(t, contact)


@contacts.tool(
    summary="Find contacts that are probably the same person",
    annotations=READS,
    related=("merge_contacts",),
    examples=[Example("In the whole address book", {})],
)
def find_duplicate_contacts(t: Tracker) -> Pairs:
    """Pair contacts with the same phone number, or the same name, older one first."""
    rows = t.rows("SELECT * FROM contacts ORDER BY id")
    pairs: list[Pair] = []
    for i, one in enumerate(rows):
        for other in rows[i + 1 :]:
            because = _alike(one, other)
            if because:
                a, b = Contact.model_validate(one), Contact.model_validate(other)
                pairs.append(Pair(keep=a, other=b, because=because))
    return Pairs(pairs=pairs)


@contacts.tool(
    summary="Merge one contact into another",
    annotations=REMOVES,
    related=("find_duplicate_contacts",),
    examples=[Example("Keep the first", {"keep": 1, "other": 3})],
)
def merge_contacts(
    t: Tracker,
    keep: Annotated[int, Field(description="Number of the contact that stays.")],
    other: Annotated[int, Field(description="Number of the contact that goes.")],
) -> Merged:
    """Move the interactions and issues of one contact to another and delete it.

    Details that the kept contact lacks are taken over; where both have one, the kept contact's
    stays.
    """
    row, gone = _need(t, keep), _need(t, other)
    if keep == other:
        raise Refused("A contact cannot be merged with itself; give two numbers.")
    moved = t.run("UPDATE interactions SET contact = ? WHERE contact = ?", keep, other)
    linked = t.run("UPDATE OR IGNORE contact_issues SET contact = ? WHERE contact = ?", keep, other)
    t.run("DELETE FROM contacts WHERE id = ?", other)
    missing = {name: gone[name] for name in DETAILS if not row[name] and gone[name]}
    t.update("contacts", "id", keep, **missing)
    summary = f"{t.me} merged {gone['name']} <{gone['email']}> into {row['name']}"
    record(t, "contact.merged", f"contact:{keep}", summary, gone=gone["email"])
    return Merged(contact=get_contact(t, keep), moved_interactions=moved, moved_issues=linked)


@contacts.tool(
    summary="Import contacts from CSV, adding new and updating known ones",
    annotations=SETS,
    examples=[Example("Two columns", {"csv_text": "name,email\nIda,ida@fjordbank.example"})],
    related=("find_duplicate_contacts",),
)
def import_contacts(
    t: Tracker,
    csv_text: Annotated[
        str, Field(description="CSV with a header; name and email are needed columns.")
    ],
) -> Import:
    """Add contacts from CSV: name, email and perhaps company, phone, position, notes.

    A row whose address is known updates that contact. Rows without a name or a proper address are
    left out and reported; the others are imported.
    """
    reader = csv.DictReader(io.StringIO(csv_text))
    columns = [c.strip().lower() for c in reader.fieldnames or ()]
    if not {"name", "email"} <= set(columns):
        raise Refused(f"The header needs name and email; it has {', '.join(columns) or 'nothing'}.")
    reader.fieldnames = columns
    added, updated, rejected = 0, 0, list[str]()
    for number, row in enumerate(reader, start=2):
        values = {k: (row.get(k) or "").strip() for k in DETAILS if k in columns}
        if not values["name"] or not EMAIL.fullmatch(values["email"]):
            rejected.append(f"line {number}: needs a name and a proper e-mail address")
        elif known := t.value("SELECT id FROM contacts WHERE email = ?", values["email"]):
            t.update("contacts", "id", known, **{k: v for k, v in values.items() if v})
            updated += 1
        else:
            t.insert("contacts", **values, owner=t.me, created_at=t.stamp)
            added += 1
    record(t, "contact.imported", "contacts", f"{t.me} imported {added} contacts", updated=updated)
    return Import(added=added, updated=updated, rejected=rejected)


@contacts.tool(
    summary="List contacts without recent interactions",
    annotations=READS,
    aliases=("stale customers", "follow up"),
    related=("log_interaction",),
    examples=[Example("Nobody wrote for two months", {"days": 60})],
)
def list_silent_contacts(
    t: Tracker,
    days: Annotated[int, Field(ge=1, le=3650, description="How long is a while.")] = 30,
) -> SilentContacts:
    """List contacts without an interaction in the last days, longest silence first."""
    limit = iso(t.now() - timedelta(days=days))
    rows = t.rows(
        "SELECT c.*, max(at) AS last_interaction, (SELECT count(*) FROM contact_issues JOIN issues "
        "ON key = issue WHERE contact = c.id AND closed_at IS NULL) AS open_issues "
        "FROM contacts c LEFT JOIN interactions ON contact = c.id GROUP BY c.id "
        "HAVING coalesce(last_interaction, '') < ? ORDER BY coalesce(last_interaction, ''), c.id",
        limit,
    )
    return SilentContacts(contacts=[Silent(**r, contact=Contact.model_validate(r)) for r in rows])


@contacts.tool(
    summary="Delete a contact with its interactions, for good",
    annotations=REMOVES,
    related=("merge_contacts",),
    examples=[Example("By number", {"contact": 3})],
)
def delete_contact(t: Tracker, contact: ContactId) -> Contact:
    """Delete a contact and what was noted about them, for good; owners and admins only."""
    need_role(t, "owner", "admin")
    row = _need(t, contact)
    t.run("DELETE FROM contacts WHERE id = ?", contact)
    record(t, "contact.deleted", f"contact:{contact}", f"{t.me} deleted the contact {row['name']}")
    return Contact.model_validate(row)


def _need(t: Tracker, number: int) -> Row:
    row = t.row("SELECT * FROM contacts WHERE id = ?", number)
    if row is None:
        raise unknown("contact", number)
    return row


def _check_email(t: Tracker, email: str) -> None:
    if not EMAIL.fullmatch(email):
        raise Refused(f"{email!r} is not an e-mail address; one looks like ida@example.com.")
    taken = t.row("SELECT id, name FROM contacts WHERE email = ?", email)
    if taken:
        raise Refused(f"{email} is contact {taken['id']}, {taken['name']}; update that one.")


def _alike(one: Row, other: Row) -> str | None:
    digits = ["".join(c for c in row["phone"] if c.isdigit()) for row in (one, other)]
    if digits[0] and digits[0] == digits[1]:
        return "same phone number"
    names = [" ".join(sorted(row["name"].lower().split())) for row in (one, other)]
    return "same name" if names[0] == names[1] else None
