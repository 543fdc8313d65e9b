"""Attachments: files on issues, kept by checksum."""

from __future__ import annotations

import hashlib
import mimetypes
from datetime import datetime
from typing import Annotated

from pydantic import Field

from pegboard import Example

from ..database import Record, Refused, Row, unknown
from ..toolbox import ADDS, READS, REMOVES, SETS, Toolbox
from . import blobs
from .events import record
from .lookup import need_issue, need_member
from .tracker import Tracker
from .words import AnyProject, IssueKey

attachments = Toolbox[Tracker](
    "attachments", "Files attached to issues: upload, read in parts, verify checksums, find copies."
)

MOST_BYTES_READ = 65_536
AttachmentId = Annotated[int, Field(description="Number of the attachment.")]
Filename = Annotated[
    str,
    Field(min_length=1, max_length=120, pattern=r"^[^/\\]+$", description="Name without folders."),
]


class Attachment(Record):
    id: int
    issue: str
    filename: str
    media_type: str
    size: int
    sha256: str
    uploader: str
    created_at: datetime


class Attachments(Record):
    issue: str
    attachments: list[Attachment]
    total_bytes: int


class Part(Record):
    id: int
    filename: str
    encoding: blobs.Encoding
    content: str
    offset: int
    size: int = Field(description="Bytes of the whole file.")
    next_offset: int | None = Field(description="Where the next part starts; null at the end.")


class Verdict(Record):
    id: int
    intact: bool
    recorded: str
    computed: str


class Copies(Record):
    sha256: str
    size: int
    attachments: list[Attachment]


class Duplicates(Record):
    groups: list[Copies]
    saved_bytes: int = Field(description="What sharing equal content saves.")


_ATTACHMENT = "SELECT attachments.*, size FROM attachments JOIN blobs USING (sha256)"


@attachments.tool(
    summary="List the files attached to an issue",
    annotations=READS,
    related=("read_attachment", "attach_file"),
    examples=[Example("Of one issue", {"issue": "WEB-3"})],
)
def list_attachments(t: Tracker, issue: IssueKey) -> Attachments:
    """List the attachments of an issue by name, with size, type and SHA-256 checksum."""
    key = need_issue(t, issue)["key"]
    rows = t.rows(f"{_ATTACHMENT} WHERE issue = ? ORDER BY filename", key)
    return Attachments(
        issue=key,
        attachments=[Attachment.model_validate(r) for r in rows],
        total_bytes=sum(r["size"] for r in rows),
    )


@attachments.tool(
    summary="Attach a file to an issue, from text or base64",
    annotations=ADDS,
    aliases=("upload screenshot", "add file"),
    related=("list_attachments", "upload_file"),
    examples=[Example("A log", {"issue": "WEB-3", "filename": "trace.log", "content": "line one"})],
)
def attach_file(
    t: Tracker,
    issue: IssueKey,
    filename: Filename,
    content: blobs.Content,
    encoding: blobs.HowEncoded = "text",
    media_type: Annotated[
        str | None, Field(description="MIME type; guessed from the name.")
    ] = None,
) -> Attachment:
    """Attach a file to an issue; content that is not text comes in base64.

    Names are unique on an issue. Content that is stored already, under whatever name, takes no
    further space; new content must fit the storage quota.
    """
    row = need_issue(t, issue, writable=True)
    _need_free_name(t, row["key"], filename)
    checksum = blobs.keep(t, blobs.decoded(content, encoding))
    kind = media_type or mimetypes.guess_type(filename)[0]
    number = t.insert(
        "attachments",
        issue=row["key"],
        filename=filename,
        media_type=kind or ("text/plain" if encoding == "text" else "application/octet-stream"),
        sha256=checksum,
        uploader=t.me,
        created_at=t.stamp,
    )
    subject, summary = f"issue:{row['key']}", f"{t.me} attached {filename} to {row['key']}"
    record(t, "attachment.added", subject, summary, project=row["project"], topic="comment")
    return get_attachment(t, number)


@attachments.tool(
    summary="Show name, size, type and checksum of an attachment",
    annotations=READS,
    related=(
        "read_attachment",
        "verify_attachment",
    ),
    examples=[Example("By number", {"attachment": 1})],
)
def get_attachment(t: Tracker, attachment: AttachmentId) -> Attachment:
    """Show what is known of an attachment without its content; `read_attachment` has that."""
    return Attachment.model_validate(_need(t, attachment))


@attachments.tool(
    summary="Read the content of an attachment, in parts",
    annotations=READS,
    aliases=("download file",),
    examples=[Example("The first kilobyte", {"attachment": 1, "length": 1024})],
    related=("get_attachment",),
)
def read_attachment(
    t: Tracker,
    attachment: AttachmentId,
    offset: Annotated[int, Field(ge=0, description="First byte to read.")] = 0,
    length: Annotated[int, Field(ge=1, le=MOST_BYTES_READ, description="Bytes to read.")] = 16_384,
) -> Part:
    """Read an attachment from a byte offset: as text when it is UTF-8, as base64 otherwise.

    Long files come in parts: pass `next_offset` as `offset` to go on.
    """
    row = _need(t, attachment)
    data = blobs.content(t, row["sha256"])
    if offset > len(data):
        raise Refused(f"{row['filename']} has {len(data)} bytes; an offset of {offset} is past it.")
    text, encoding = blobs.shown(data, offset, length)
    end = offset + length
    return Part(
        id=attachment,
        filename=row["filename"],
        encoding=encoding,
        content=text,
        offset=offset,
        size=len(data),
        next_offset=end if end < len(data) else None,
    )


@attachments.tool(
    summary="Check an attachment against its recorded checksum",
    annotations=READS,
    aliases=("integrity",),
    related=("get_attachment",),
    examples=[Example("By number", {"attachment": 1})],
)
def verify_attachment(t: Tracker, attachment: AttachmentId) -> Verdict:
    """Compute the SHA-256 of the stored content and compare it with the one recorded at upload."""
    row = _need(t, attachment)
    computed = hashlib.sha256(blobs.content(t, row["sha256"])).hexdigest()
    return Verdict(
        id=attachment, intact=computed == row["sha256"], recorded=row["sha256"], computed=computed
    )


@attachments.tool(
    summary="Rename an attachment",
    annotations=SETS,
    related=("get_attachment",),
    examples=[Example("A clearer name", {"attachment": 1, "filename": "safari-login.log"})],
)
def rename_attachment(t: Tracker, attachment: AttachmentId, filename: Filename) -> Attachment:
    """Give an attachment another name, unique on its issue; type and content stay."""
    row = _need(t, attachment)
    issue = need_issue(t, row["issue"], writable=True)
    if filename != row["filename"]:
        _need_free_name(t, row["issue"], filename)
        t.update("attachments", "id", attachment, filename=filename)
        summary = f"{t.me} renamed {row['filename']} to {filename}"
        record(t, "attachment.renamed", f"issue:{row['issue']}", summary, project=issue["project"])
    return get_attachment(t, attachment)


@attachments.tool(
    summary="Copy an attachment to another issue",
    annotations=ADDS,
    examples=[Example("To the API issue", {"attachment": 1, "to_issue": "API-1"})],
    related=("list_attachments",),
)
def copy_attachment(
    t: Tracker,
    attachment: AttachmentId,
    to_issue: Annotated[str, Field(description="Key of the issue that gets the copy.")],
) -> Attachment:
    """Attach the same content to another issue under the same name, at no cost in space."""
    row = _need(t, attachment)
    goal = need_issue(t, to_issue, writable=True)
    _need_free_name(t, goal["key"], row["filename"])
    number = t.insert(
        "attachments",
        issue=goal["key"],
        filename=row["filename"],
        media_type=row["media_type"],
        sha256=row["sha256"],
        uploader=t.me,
        created_at=t.stamp,
    )
    summary = f"{t.me} copied {row['filename']} from {row['issue']} to {goal['key']}"
    record(t, "attachment.added", f"issue:{goal['key']}", summary, project=goal["project"])
    return get_attachment(t, number)


@attachments.tool(
    summary="Delete an attachment for good",
    annotations=REMOVES,
    related=("list_attachments",),
    examples=[Example("By number", {"attachment": 1})],
)
def delete_attachment(t: Tracker, attachment: AttachmentId) -> Attachment:
    """Delete an attachment: its uploader may, and so may owners and admins.

    There is no trash for attachments. The content stays only where another attachment or file has
    it.
    """
    row = _need(t, attachment)
    issue = need_issue(t, row["issue"], writable=True)
    if row["uploader"] != t.me and need_member(t, t.me)["role"] not in ("owner", "admin"):
        raise Refused(
            f"{row['filename']} is by {row['uploader']}; only they or an admin delete it."
        )
    t.run("DELETE FROM attachments WHERE id = ?", attachment)
    blobs.sweep(t)
    summary = f"{t.me} deleted {row['filename']} from {row['issue']}"
    record(t, "attachment.deleted", f"issue:{row['issue']}", summary, project=issue["project"])
    return Attachment.model_validate(row)


@attachments.tool(
    summary="Find attachments with the same content",
    annotations=READS,
    related=("delete_attachment",),
    examples=[Example("In one project", {"project": "WEB"})],
)
def find_duplicate_attachments(t: Tracker, project: AnyProject = None) -> Duplicates:
    """Group attachments whose content is equal byte for byte, largest content first."""
    rows = t.rows(
        f"{_ATTACHMENT} WHERE ? IS NULL OR issue IN (SELECT key FROM issues WHERE project = ?) "
        "ORDER BY size DESC, sha256, attachments.id",
        project,
        project,
    )
    groups: dict[str, list[Attachment]] = {}
    for row in rows:
        groups.setdefault(row["sha256"], []).append(Attachment.model_validate(row))
    shared = {checksum: group for checksum, group in groups.items() if len(group) > 1}
    return Duplicates(
        groups=[Copies(sha256=s, size=g[0].size, attachments=g) for s, g in shared.items()],
        saved_bytes=sum(g[0].size * (len(g) - 1) for g in shared.values()),
    )


def _need(t: Tracker, number: int) -> Row:
    row = t.row(f"{_ATTACHMENT} WHERE attachments.id = ?", number)
    if row is None:
        raise unknown("attachment", number)
    return row


def _need_free_name(t: Tracker, issue: str, filename: str) -> None:
    if t.row("SELECT 1 FROM attachments WHERE issue = ? AND filename = ?", issue, filename):
        raise Refused(f"{issue} has a file {filename!r} already; choose another name or delete it.")
