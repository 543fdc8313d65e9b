"""Documents: written pages of a project, every version kept, with diffs and links between them."""

from __future__ import annotations

import difflib
import re
from datetime import datetime
from typing import Annotated

from pydantic import Field

from pegboard import Example

from ..database import Record, Refused, Row, unknown
from ..toolbox import ADDS, READS, REMOVES, SETS, Toolbox
from .events import mentioned, record, watch
from .lookup import need_project, need_role
from .tracker import Tracker
from .words import AnyProject, ProjectKey, Slug

documents = Toolbox[Tracker](
    "documents", "Project documents in Markdown: versions, diffs, outline, links between pages."
)

HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*$", re.MULTILINE)
PAGE_LINK = re.compile(r"\[\[([a-z0-9-]+)\]\]")
ISSUE_KEY = re.compile(r"\b[A-Z]{2,6}-\d+\b")

Body = Annotated[str, Field(description="Markdown; [[slug]] links a page, WEB-3 an issue.")]
VersionNumber = Annotated[int, Field(ge=1, description="Number of a version.")]
Message = Annotated[str, Field(description="What changed and why, in a line.")]


class Page(Record):
    slug: str
    project: str
    title: str
    version: int
    author: str = Field(description="Who wrote the latest version.")
    created_at: datetime
    updated_at: datetime


class Document(Page):
    body: str


class Pages(Record):
    documents: list[Page]


class Version(Record):
    version: int
    title: str
    author: str
    at: datetime
    message: str
    size: int = Field(description="Characters of the body.")


class Versions(Record):
    slug: str
    versions: list[Version]


class Diff(Record):
    slug: str
    from_version: int
    to_version: int
    added: int
    removed: int
    diff: str = Field(description="Unified diff; empty when the bodies are equal.")


class Heading(Record):
    level: int
    title: str
    line: int


class Outline(Record):
    slug: str
    headings: list[Heading]
    words: int


class Links(Record):
    slug: str
    links_to: list[str]
    broken: list[str] = Field(description="Slugs that are linked and do not exist.")
    issues: list[str] = Field(description="Issues that the text names.")
    linked_from: list[str]


@documents.tool(
    summary="List documents, most recently changed first",
    annotations=READS,
    aliases=("wiki pages",),
    related=("get_document",),
    examples=[Example("Of one project", {"project": "WEB"})],
)
def list_documents(t: Tracker, project: AnyProject = None) -> Pages:
    """List documents without their bodies; `get_document` has those."""
    key = need_project(t, project)["key"] if project else None
    rows = t.rows(
        "SELECT * FROM documents WHERE ? IS NULL OR project = ? ORDER BY updated_at DESC, slug",
        key,
        key,
    )
    return Pages(documents=[Page.model_validate(r) for r in rows])


@documents.tool(
    summary="Read a document, in its latest or an earlier version",
    annotations=READS,
    related=("list_document_versions", "get_document_outline"),
    examples=[Example("As it was first", {"document": "release-plan", "version": 1})],
)
def get_document(
    t: Tracker,
    document: Slug,
    version: Annotated[int | None, Field(ge=1, description="An earlier version.")] = None,
) -> Document:
    """Read the Markdown of a document; without a version, the latest one."""
    row = _need(t, document)
    if version is None:
        return Document.model_validate(row)
    old = _need_version(t, row, version)
    kept = {name: old[name] for name in ("title", "body", "author", "version")}
    return Document(**{**row, **kept, "updated_at": old["at"]})


@documents.tool(
    summary="Write a new document",
    annotations=ADDS,
    aliases=("new wiki page", "write docs"),
    examples=[
        Example(
            "Meeting notes",
            {"project": "WEB", "slug": "kickoff-notes", "title": "Kick-off", "body": "# Kick-off"},
        )
    ],
    related=("update_document",),
)
def create_document(
    t: Tracker,
    project: ProjectKey,
    slug: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9-]{1,59}$", description="New short name.")],
    title: Annotated[str, Field(min_length=1, description="Title shown to people.")],
    body: Body = "",
) -> Document:
    """Create a document in a project as version 1; you watch it from then on.

    The slug is its address in links and cannot be changed. Members named with an @ are notified.
    """
    key = need_project(t, project, writable=True)["key"]
    if t.row("SELECT 1 FROM documents WHERE slug = ?", slug):
        raise Refused(f"There is a document {slug!r} already; update_document changes it.")
    t.insert(
        "documents",
        slug=slug,
        project=key,
        title=title,
        body=body,
        author=t.me,
        created_at=t.stamp,
        updated_at=t.stamp,
    )
    _keep_version(t, slug, 1, title, body, "Created")
    watch(t, t.me, f"document:{slug}")
    _tell(t, "created", slug, key, mentioned(t, body))
    return get_document(t, slug)


@documents.tool(
    summary="Change a document; the version before stays readable",
    annotations=SETS,
    aliases=("edit page",),
    related=("diff_document_versions",),
    examples=[
        Example(
            "With a guard against lost updates",
            {"document": "release-plan", "body": "# Plan", "expected_version": 2},
        )
    ],
)
def update_document(
    t: Tracker,
    document: Slug,
    body: Annotated[str | None, Field(description="New Markdown, whole.")] = None,
    title: Annotated[str | None, Field(min_length=1, description="New title.")] = None,
    message: Message = "",
    expected_version: Annotated[
        int | None, Field(description="Refuse if somebody changed it since this version.")
    ] = None,
) -> Document:
    """Save a new version of a document; title or body, whichever you leave out, stays.

    Give `expected_version` as you read it, and a change made by somebody else in between is not
    lost. Saving what is there already makes no new version.
    """
    row = _need(t, document)
    need_project(t, row["project"], writable=True)
    if expected_version not in (None, row["version"]):
        raise Refused(
            f"{row['slug']} is at version {row['version']} by {row['author']}, not "
            f"{expected_version}; read it again and merge (diff_document_versions)."
        )
    if body is None and title is None:
        raise Refused("Nothing to change: give body or title.")
    new_title, new_body = title or row["title"], row["body"] if body is None else body
    if (new_title, new_body) != (row["title"], row["body"]):
        _save(t, row, new_title, new_body, message)
    return get_document(t, row["slug"])


@documents.tool(
    summary="List the versions of a document",
    annotations=READS,
    aliases=("page history",),
    related=(
        "diff_document_versions",
        "restore_document_version",
    ),
    examples=[Example("By slug", {"document": "release-plan"})],
)
def list_document_versions(t: Tracker, document: Slug) -> Versions:
    """List every version of a document, newest first, with author and message."""
    row = _need(t, document)
    versions = t.rows(
        "SELECT *, length(body) AS size FROM document_versions WHERE document = ? "
        "ORDER BY version DESC",
        row["slug"],
    )
    return Versions(slug=row["slug"], versions=[Version.model_validate(v) for v in versions])


@documents.tool(
    summary="Compare two versions of a document",
    annotations=READS,
    aliases=("what changed",),
    examples=[Example("The last change", {"document": "release-plan"})],
    related=("list_document_versions",),
)
def diff_document_versions(
    t: Tracker,
    document: Slug,
    from_version: Annotated[int | None, Field(description="Default: the one before.")] = None,
    to_version: Annotated[int | None, Field(description="Default: the latest.")] = None,
) -> Diff:
    """Show what changed between two versions as a unified diff, with lines added and removed.

    Without numbers it shows the latest change.
    """
    row = _need(t, document)
    new = _need_version(t, row, to_version or row["version"])
    old = _need_version(t, row, from_version or max(new["version"] - 1, 1))
    lines = list(
        difflib.unified_diff(
            old["body"].splitlines(),
            new["body"].splitlines(),
            f"{row['slug']} v{old['version']}",
            f"{row['slug']} v{new['version']}",
            lineterm="",
        )
    )
    return Diff(
        slug=row["slug"],
        from_version=old["version"],
        to_version=new["version"],
        added=sum(line.startswith("+") for line in lines[2:]),
        removed=sum(line.startswith("-") for line in lines[2:]),
        diff="\n".join(lines),
    )


@documents.tool(
    summary="Bring back an earlier version of a document",
    annotations=SETS,
    aliases=("revert page", "rollback"),
    related=("list_document_versions",),
    examples=[Example("Back to the first", {"document": "release-plan", "version": 1})],
)
def restore_document_version(t: Tracker, document: Slug, version: VersionNumber) -> Document:
    """Save an earlier version again as the latest; the versions in between stay in the history."""
    row = _need(t, document)
    need_project(t, row["project"], writable=True)
    old = _need_version(t, row, version)
    if (old["title"], old["body"]) != (row["title"], row["body"]):
        _save(t, row, old["title"], old["body"], f"Restored version {version}")
    return get_document(t, row["slug"])


@documents.tool(
    summary="Show the headings of a document",
    annotations=READS,
    aliases=("table of contents",),
    related=("get_document",),
    examples=[Example("By slug", {"document": "release-plan"})],
)
def get_document_outline(t: Tracker, document: Slug) -> Outline:
    """Show the headings with level and line, and the number of words."""
    row = _need(t, document)
    body: str = row["body"]
    headings = [
        Heading(level=len(m[1]), title=m[2], line=body.count("\n", 0, m.start()) + 1)
        for m in HEADING.finditer(body)
    ]
    return Outline(slug=row["slug"], headings=headings, words=len(body.split()))


@documents.tool(
    summary="Show links to and from a document",
    annotations=READS,
    aliases=("backlinks",),
    related=("get_document",),
    examples=[Example("By slug", {"document": "release-plan"})],
)
def get_document_links(t: Tracker, document: Slug) -> Links:
    """Show linked pages, broken links, issues named in the text, and pages that link here."""
    row = _need(t, document)
    known = {r["slug"]: r["body"] for r in t.rows("SELECT slug, body FROM documents")}
    linked = list(dict.fromkeys(PAGE_LINK.findall(row["body"])))
    issues = list(dict.fromkeys(ISSUE_KEY.findall(row["body"])))
    return Links(
        slug=row["slug"],
        links_to=[s for s in linked if s in known],
        broken=[s for s in linked if s not in known],
        issues=[k for k in issues if t.row("SELECT 1 FROM issues WHERE key = ?", k)],
        linked_from=sorted(
            s for s, b in known.items() if row["slug"] in PAGE_LINK.findall(b) and s != row["slug"]
        ),
    )


@documents.tool(
    summary="Delete a document with all its versions, for good",
    annotations=REMOVES,
    related=("get_document_links",),
    examples=[Example("By slug", {"document": "release-plan"})],
)
def delete_document(t: Tracker, document: Slug) -> Page:
    """Delete a document for good; owners and admins only.

    It refuses while other pages link to it: change those first (`get_document_links` lists them).
    """
    need_role(t, "owner", "admin")
    row = _need(t, document)
    if linked := get_document_links(t, row["slug"]).linked_from:
        raise Refused(f"{', '.join(linked)} link to {row['slug']}; change them first.")
    t.run("DELETE FROM documents WHERE slug = ?", row["slug"])
    subject, summary = f"document:{row['slug']}", f"{t.me} deleted {row['slug']}"
    record(t, "document.deleted", subject, summary, project=row["project"])
    return Page.model_validate(row)


def _need(t: Tracker, slug: str) -> Row:
    row = t.row("SELECT * FROM documents WHERE slug = ?", slug)
    if row is None:
        raise unknown("document", slug, t.column("SELECT slug FROM documents"))
    return row


def _need_version(t: Tracker, row: Row, version: int) -> Row:
    found = t.row(
        "SELECT * FROM document_versions WHERE document = ? AND version = ?", row["slug"], version
    )
    if found is None:
        raise Refused(f"{row['slug']} has versions 1 to {row['version']}; there is no {version}.")
    return found


def _save(t: Tracker, row: Row, title: str, body: str, message: str) -> None:
    slug, version = row["slug"], row["version"] + 1
    t.update(
        "documents",
        "slug",
        slug,
        title=title,
        body=body,
        version=version,
        author=t.me,
        updated_at=t.stamp,
    )
    _keep_version(t, slug, version, title, body, message)
    _tell(t, "updated", slug, row["project"], [], version=version)


def _keep_version(t: Tracker, slug: str, version: int, title: str, body: str, message: str) -> None:
    t.insert(
        "document_versions",
        document=slug,
        version=version,
        title=title,
        body=body,
        author=t.me,
        message=message,
        at=t.stamp,
    )


def _tell(
    t: Tracker, what: str, slug: str, project: str, named: list[str], **detail: object
) -> None:
    subject, summary = f"document:{slug}", f"{t.me} {what} the document {slug}"
    kind = f"document.{what}"
    record(t, kind, subject, summary, project=project, topic="document", tell=named, **detail)
