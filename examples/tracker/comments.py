"""Comments: threads on issues, with mentions, reactions and a history of edits."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from pegboard import Example

from ..database import Record, Refused, Row, unknown
from ..toolbox import ADDS, READS, REMOVES, SETS, Toolbox
from .events import mentioned, record, watch
from .lookup import need_issue, need_member
from .tracker import Tracker
from .words import AnyMember, IssueKey, Limit

comments = Toolbox[Tracker](
    "comments", "Discussion on issues: threads, replies, mentions, reactions, edits and resolution."
)

CommentId = Annotated[int, Field(description="Number of the comment.")]
Body = Annotated[
    str, Field(min_length=1, description="Text in Markdown; @handle notifies a member.")
]
Emoji = Literal["+1", "-1", "heart", "eyes", "rocket", "confused"]


class Comment(Record):
    id: int
    issue: str
    thread: int | None = Field(description="Number of the comment that this one answers.")
    author: str
    body: str
    created_at: datetime
    edited_at: datetime | None
    resolved_by: str | None
    reactions: dict[str, list[str]] = Field(description="Who reacted, by emoji.")


class Thread(Record):
    comment: Comment
    replies: list[Comment]


class Threads(Record):
    issue: str
    threads: list[Thread]
    total_comments: int


class Revision(Record):
    body: str
    replaced_at: datetime


class History(Record):
    comment: Comment
    earlier: list[Revision] = Field(description="Earlier texts, oldest first.")


class Removed(Record):
    id: int
    left_placeholder: bool = Field(description="Whether replies kept its place in the thread.")


class Mentions(Record):
    mentions: list[Comment]


@comments.tool(
    summary="List the comment threads of an issue",
    annotations=READS,
    aliases=("discussion", "conversation"),
    examples=[Example("What is still open", {"issue": "WEB-3", "unresolved_only": True})],
    related=(
        "add_comment",
        "reply_to_comment",
    ),
)
def list_comments(
    t: Tracker,
    issue: IssueKey,
    unresolved_only: Annotated[bool, Field(description="Leave out resolved threads.")] = False,
) -> Threads:
    """List the discussion on an issue, oldest thread first, each with its replies in order.

    A deleted comment that was answered appears as "(deleted)" so that its replies keep their place.
    """
    key = need_issue(t, issue)["key"]
    rows = t.rows("SELECT * FROM comments WHERE issue = ? ORDER BY id", key)
    roots = [r for r in rows if r["thread"] is None and not (unresolved_only and r["resolved_by"])]
    threads = [
        Thread(
            comment=_comment(t, root),
            replies=[_comment(t, r) for r in rows if r["thread"] == root["id"]],
        )
        for root in roots
    ]
    return Threads(issue=key, threads=threads, total_comments=sum(not r["deleted"] for r in rows))


@comments.tool(
    summary="Comment on an issue",
    annotations=ADDS,
    aliases=("write a note", "discuss"),
    related=("reply_to_comment", "list_comments"),
    examples=[Example("Ask Ben", {"issue": "WEB-3", "body": "@ben can you reproduce this?"})],
)
def add_comment(t: Tracker, issue: IssueKey, body: Body) -> Comment:
    """Start a new thread on an issue.

    Everybody who watches the issue is notified, and so is everybody named with an @, who then
    watches it too. You watch what you comment on.
    """
    row = need_issue(t, issue, writable=True)
    return _add(t, row["key"], row["project"], body, None)


@comments.tool(
    summary="Reply to a comment in its thread",
    annotations=ADDS,
    related=("add_comment", "resolve_comment"),
    examples=[Example("Answer", {"comment": 1, "body": "Yes, on Safari 17."})],
)
def reply_to_comment(t: Tracker, comment: CommentId, body: Body) -> Comment:
    """Answer a comment; the reply joins its thread, also when you answer a reply.

    A resolved thread is opened again by a reply.
    """
    row = _need(t, comment)
    issue = need_issue(t, row["issue"], writable=True)
    root = row["thread"] or row["id"]
    t.run("UPDATE comments SET resolved_by = NULL WHERE id = ?", root)
    return _add(t, issue["key"], issue["project"], body, root)


@comments.tool(
    summary="Change the text of a comment of yours",
    annotations=SETS,
    related=("get_comment_history",),
    examples=[
        Example("Add a detail", {"comment": 1, "body": "@ben can you reproduce this on Safari 17?"})
    ],
)
def edit_comment(t: Tracker, comment: CommentId, body: Body) -> Comment:
    """Replace the text of a comment that you wrote; the earlier text stays in its history.

    Only newly named members are notified.
    """
    row = _need(t, comment)
    issue = need_issue(t, row["issue"], writable=True)
    if row["author"] != t.me:
        raise Refused(
            f"Comment {comment} is by {row['author']}; only they can edit it. Reply instead."
        )
    if body == row["body"]:
        return _comment(t, row)
    t.insert("comment_revisions", comment=comment, body=row["body"], replaced_at=t.stamp)
    t.update("comments", "id", comment, body=body, edited_at=t.stamp)
    named = [m for m in mentioned(t, body) if m not in mentioned(t, row["body"])]
    record(
        t,
        "comment.edited",
        f"comment:{comment}",
        f"{t.me} edited a comment on {row['issue']}",
        project=issue["project"],
        topic="mentioned",
        tell=named,
    )
    return _comment(t, _need(t, comment))


@comments.tool(
    summary="Delete a comment",
    annotations=REMOVES,
    related=("edit_comment",),
    examples=[Example("Your own", {"comment": 1})],
)
def delete_comment(t: Tracker, comment: CommentId) -> Removed:
    """Delete a comment: its author may, and so may owners and admins.

    One that was answered leaves "(deleted)" in its place; its text is gone for good either way.
    """
    row = _need(t, comment)
    issue = need_issue(t, row["issue"], writable=True)
    role = need_member(t, t.me)["role"]
    if row["author"] != t.me and role not in ("owner", "admin"):
        raise Refused(
            f"Comment {comment} is by {row['author']}; only they or an admin can delete it."
        )
    answered = t.value("SELECT count(*) FROM comments WHERE thread = ?", comment) > 0
    if answered:
        t.update("comments", "id", comment, body="(deleted)", deleted=1)
        t.run("DELETE FROM comment_revisions WHERE comment = ?", comment)
    else:
        t.run("DELETE FROM comments WHERE id = ?", comment)
    summary = f"{t.me} deleted a comment on {row['issue']}"
    record(t, "comment.deleted", f"comment:{comment}", summary, project=issue["project"])
    return Removed(id=comment, left_placeholder=answered)


@comments.tool(
    summary="React to a comment with an emoji, or undo it",
    annotations=ADDS,
    examples=[Example("Agree", {"comment": 1, "emoji": "+1"})],
    related=("list_comments",),
)
def toggle_reaction(
    t: Tracker, comment: CommentId, emoji: Annotated[Emoji, Field(description="Which one.")]
) -> Comment:
    """Add your reaction to a comment, or remove it if you had given the same one.

    Nobody is notified of reactions.
    """
    row = _need(t, comment)
    gone = t.run(
        "DELETE FROM reactions WHERE comment = ? AND member = ? AND emoji = ?", comment, t.me, emoji
    )
    if not gone:
        t.insert("reactions", comment=comment, member=t.me, emoji=emoji)
    return _comment(t, row)


@comments.tool(
    summary="Mark a comment thread as resolved, or open it again",
    annotations=SETS,
    related=("list_comments",),
    examples=[Example("Done", {"comment": 1})],
)
def resolve_comment(
    t: Tracker,
    comment: CommentId,
    resolved: Annotated[bool, Field(description="False opens the thread again.")] = True,
) -> Comment:
    """Mark the thread that starts at a comment as settled.

    It belongs to the first comment of a thread; replies cannot be resolved on their own.
    """
    row = _need(t, comment)
    if row["thread"] is not None:
        raise Refused(f"Comment {comment} is a reply; resolve its thread, {row['thread']}.")
    value = t.me if resolved else None
    t.run("UPDATE comments SET resolved_by = ? WHERE id = ?", value, comment)
    issue = need_issue(t, row["issue"])
    word = "resolved" if resolved else "reopened"
    summary = f"{t.me} {word} a thread on {row['issue']}"
    record(t, f"comment.{word}", f"comment:{comment}", summary, project=issue["project"])
    return _comment(t, _need(t, comment))


@comments.tool(
    summary="Show the earlier texts of an edited comment",
    annotations=READS,
    related=("edit_comment",),
    examples=[Example("By number", {"comment": 1})],
)
def get_comment_history(t: Tracker, comment: CommentId) -> History:
    """Show a comment with every text that it had before, oldest first."""
    row = _need(t, comment)
    earlier = t.rows("SELECT * FROM comment_revisions WHERE comment = ? ORDER BY rowid", comment)
    return History(comment=_comment(t, row), earlier=[Revision.model_validate(r) for r in earlier])


@comments.tool(
    summary="List comments that mention a member",
    annotations=READS,
    related=("list_notifications",),
    examples=[Example("Where Ben was named", {"member": "ben"})],
)
def list_mentions(t: Tracker, member: AnyMember = None, limit: Limit = 20) -> Mentions:
    """List the comments that name a member with an @, newest first."""
    handle = need_member(t, member or t.me)["handle"]
    rows = t.rows("SELECT * FROM comments WHERE body LIKE ? ORDER BY id DESC", f"%@{handle}%")
    named = [r for r in rows if handle in mentioned(t, r["body"])]
    return Mentions(mentions=[_comment(t, r) for r in named[:limit]])


def _add(t: Tracker, issue: str, project: str, body: str, thread: int | None) -> Comment:
    number = t.insert(
        "comments", issue=issue, thread=thread, author=t.me, body=body, created_at=t.stamp
    )
    named = mentioned(t, body)
    for member in {t.me, *named}:
        watch(t, member, f"issue:{issue}")
    record(
        t,
        "comment.added",
        f"issue:{issue}",
        f"{t.me} commented on {issue}: {body[:80]}",
        project=project,
        topic="comment",
        tell=named,
        comment=number,
    )
    return _comment(t, _need(t, number))


def _need(t: Tracker, number: int) -> Row:
    row = t.row("SELECT * FROM comments WHERE id = ? AND NOT deleted", number)
    if row is None:
        raise unknown("comment", number)
    return row


def _comment(t: Tracker, row: Row) -> Comment:
    reactions: dict[str, list[str]] = {}
    for r in t.rows("SELECT * FROM reactions WHERE comment = ? ORDER BY emoji, member", row["id"]):
        reactions.setdefault(r["emoji"], []).append(r["member"])
    return Comment(**row, reactions=reactions)
