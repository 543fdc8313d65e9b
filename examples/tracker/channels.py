"""Channels: conversations of the team, with threads, unread marks and pins."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from pegboard import Example

from ..database import Record, Refused, Row, unknown
from ..toolbox import ADDS, READS, REMOVES, SETS, Toolbox
from .events import mentioned, record
from .lookup import need_member, need_role
from .tracker import Tracker
from .words import ChannelName, Limit

channels = Toolbox[Tracker](
    "channels", "Team chat: channels, messages, threads, unread marks and pinned messages."
)

MessageId = Annotated[int, Field(description="Number of the message.")]
Text = Annotated[
    str, Field(min_length=1, max_length=4000, description="@handle notifies a member.")
]


class Channel(Record):
    name: str
    topic: str
    private: bool
    members: list[str]
    unread: int = Field(
        description="Messages that you have not read; 0 where you are not a member."
    )
    archived_at: datetime | None


class Channels(Record):
    channels: list[Channel]


class Message(Record):
    id: int
    channel: str
    thread: int | None
    author: str
    body: str
    sent_at: datetime
    edited_at: datetime | None
    pinned: bool
    replies: int


class Messages(Record):
    channel: str
    messages: list[Message]
    unread_from: int | None = Field(description="First message that you have not read.")
    older: int | None = Field(description="Pass as `before` to read what came earlier.")


class Thread(Record):
    root: Message
    replies: list[Message]


class Unread(Record):
    channels: dict[str, list[Message]]
    total: int


class Marked(Record):
    channel: str
    unread: int


_MESSAGE = """SELECT messages.*, (SELECT count(*) FROM messages r WHERE r.thread = messages.id)
    AS replies FROM messages"""


@channels.tool(
    summary="List channels with members and how much you have not read",
    annotations=READS,
    aliases=("chat rooms",),
    related=(
        "read_channel",
        "join_channel",
    ),
    examples=[Example("Only those you are in", {"mine_only": True})],
)
def list_channels(
    t: Tracker,
    mine_only: Annotated[bool, Field(description="Only channels you are a member of.")] = False,
    include_archived: Annotated[bool, Field(description="Also archived ones.")] = False,
) -> Channels:
    """List channels by name with topic, members and your unread count.

    Private channels show only to their members.
    """
    names = t.column("SELECT name FROM channels WHERE ? OR archived_at IS NULL", include_archived)
    found = [_channel(t, name) for name in sorted(names)]
    shown = [c for c in found if t.me in c.members or not (c.private or mine_only)]
    return Channels(channels=shown)


@channels.tool(
    summary="Create a channel",
    annotations=ADDS,
    examples=[Example("For designers", {"name": "design", "topic": "How it looks"})],
    related=("invite_to_channel",),
)
def create_channel(
    t: Tracker,
    name: Annotated[str, Field(pattern="^[a-z][a-z0-9-]{1,29}$", description="New, lower case.")],
    topic: Annotated[str, Field(description="What it is about.")] = "",
    private: Annotated[bool, Field(description="Only members see it; they are invited.")] = False,
) -> Channel:
    """Create a channel with you as its first member.

    Names are never used again, not even after archiving. Guests cannot create channels.
    """
    need_role(t, "owner", "admin", "member")
    if t.row("SELECT 1 FROM channels WHERE name = ?", name):
        raise Refused(f"There is or was a channel #{name}; choose another name.")
    t.insert(
        "channels", name=name, topic=topic, private=private, created_by=t.me, created_at=t.stamp
    )
    t.insert("channel_members", channel=name, member=t.me)
    record(t, "channel.created", f"channel:{name}", f"{t.me} created #{name}")
    return _channel(t, name)


@channels.tool(
    summary="Join a public channel",
    annotations=SETS,
    related=("leave_channel", "list_channels"),
    examples=[Example("By name", {"channel": "releases"})],
)
def join_channel(t: Tracker, channel: ChannelName) -> Channel:
    """Become a member of a public channel; what was written before counts as read.

    Private channels cannot be joined, only be invited to with `invite_to_channel`.
    """
    row = _need(t, channel, writable=True, member=False)
    if row["private"] and t.me not in _members(t, row["name"]):
        raise Refused(f"#{row['name']} is private; ask one of its members to invite you.")
    _add_member(t, row["name"], t.me)
    return _channel(t, row["name"])


@channels.tool(
    summary="Bring another member into a channel",
    annotations=SETS,
    related=("list_members",),
    examples=[Example("Ask Chen in", {"channel": "hiring", "member": "chen"})],
)
def invite_to_channel(
    t: Tracker, channel: ChannelName, member: Annotated[str, Field(description="Handle.")]
) -> Channel:
    """Add a member to a channel that you are a member of, private ones included."""
    row = _need(t, channel, writable=True)
    handle = need_member(t, member)["handle"]
    _add_member(t, row["name"], handle)
    return _channel(t, row["name"])


@channels.tool(
    summary="Leave a channel",
    annotations=SETS,
    related=("join_channel",),
    examples=[Example("By name", {"channel": "releases"})],
)
def leave_channel(t: Tracker, channel: ChannelName) -> Channel:
    """Stop being a member of a channel; your messages stay.

    The last member of a private channel cannot leave it, since nobody could open it again: archive
    it.
    """
    row = _need(t, channel)
    if row["private"] and _members(t, row["name"]) == [t.me]:
        raise Refused(f"You are the last member of #{row['name']}; archive_channel closes it.")
    t.run("DELETE FROM channel_members WHERE channel = ? AND member = ?", row["name"], t.me)
    return _channel(t, row["name"])


@channels.tool(
    summary="Post a message to a channel",
    annotations=ADDS,
    aliases=("send message", "chat", "announce"),
    related=("reply_in_thread", "read_channel"),
    examples=[Example("Tell everybody", {"channel": "general", "body": "4.2 is out."})],
)
def post_message(t: Tracker, channel: ChannelName, body: Text) -> Message:
    """Write a message in a channel that you are a member of.

    Members named with an @ are notified; everybody else finds it among what they have not read.
    """
    return _post(t, _need(t, channel, writable=True)["name"], body, None)


@channels.tool(
    summary="Reply to a message in its thread",
    annotations=ADDS,
    related=("get_thread",),
    examples=[Example("Answer", {"message": 3, "body": "Thanks, it works."})],
)
def reply_in_thread(t: Tracker, message: MessageId, body: Text) -> Message:
    """Answer a message in its thread; answering a reply joins the same thread.

    Those who wrote in the thread before are notified.
    """
    row = _need_message(t, message)
    _need(t, row["channel"], writable=True)
    return _post(t, row["channel"], body, row["thread"] or row["id"])


@channels.tool(
    summary="Change the text of a message of yours",
    annotations=SETS,
    related=("get_thread",),
    examples=[
        Example("A correction", {"message": 2, "body": "Thanks. WEB-1 and WEB-3 must be in it."})
    ],
)
def edit_message(t: Tracker, message: MessageId, body: Text) -> Message:
    """Replace the text of a message that you wrote; it is marked as edited."""
    row = _need_message(t, message)
    if row["author"] != t.me:
        raise Refused(f"Message {message} is by {row['author']}; only they can edit it.")
    _need(t, row["channel"], writable=True)
    t.update("messages", "id", message, body=body, edited_at=t.stamp)
    return _message(t, message)


@channels.tool(
    summary="Read the messages of a channel, newest page first",
    annotations=READS,
    aliases=("chat history",),
    examples=[Example("The latest", {"channel": "general", "limit": 10})],
    related=(
        "get_thread",
        "mark_channel_read",
    ),
)
def read_channel(
    t: Tracker,
    channel: ChannelName,
    before: Annotated[int | None, Field(description="Only messages before this number.")] = None,
    limit: Limit = 20,
) -> Messages:
    """Read a page of a channel in order of time, without the replies in threads.

    Reading does not mark anything as read; `mark_channel_read` does.
    """
    row = _need(t, channel, member=False)
    found = t.rows(
        f"{_MESSAGE} WHERE channel = ? AND thread IS NULL AND id < ? ORDER BY id DESC LIMIT ?",
        row["name"],
        before or 2**62,
        limit + 1,
    )
    page = found[:limit][::-1]
    unread = [m["id"] for m in _unread(t, row["name"])]
    return Messages(
        channel=row["name"],
        messages=[Message.model_validate(m) for m in page],
        unread_from=unread[0] if unread else None,
        older=page[0]["id"] if len(found) > limit else None,
    )


@channels.tool(
    summary="Show a message with all replies in its thread",
    annotations=READS,
    related=("reply_in_thread",),
    examples=[Example("By its first message", {"message": 1})],
)
def get_thread(t: Tracker, message: MessageId) -> Thread:
    """Show a whole thread; give any message of it."""
    row = _need_message(t, message)
    root = row["thread"] or row["id"]
    replies = t.rows(f"{_MESSAGE} WHERE thread = ? ORDER BY id", root)
    return Thread(root=_message(t, root), replies=[Message.model_validate(r) for r in replies])


@channels.tool(
    summary="List messages you have not read, by channel",
    annotations=READS,
    aliases=("catch up", "what did I miss"),
    related=("mark_channel_read",),
    examples=[Example("The newest ten", {"limit": 10})],
)
def list_unread_messages(t: Tracker, limit: Limit = 50) -> Unread:
    """List what others wrote in your channels since you last marked each as read, oldest first."""
    mine = t.column("SELECT channel FROM channel_members WHERE member = ? ORDER BY 1", t.me)
    unread = {name: rows for name in mine if (rows := _unread(t, name))}
    total = sum(len(rows) for rows in unread.values())
    shown = {n: [Message.model_validate(r) for r in rows[:limit]] for n, rows in unread.items()}
    return Unread(channels=shown, total=total)


@channels.tool(
    summary="Mark a channel as read, or up to a message",
    annotations=SETS,
    related=("list_unread_messages",),
    examples=[Example("All of it", {"channel": "general"})],
)
def mark_channel_read(
    t: Tracker,
    channel: ChannelName,
    up_to: Annotated[int | None, Field(description="Last message read; null: all.")] = None,
) -> Marked:
    """Move your unread mark in a channel; an earlier number makes messages unread again."""
    name = _need(t, channel)["name"]
    newest = t.value("SELECT coalesce(max(id), 0) FROM messages WHERE channel = ?", name)
    mark = newest if up_to is None else min(up_to, newest)
    t.run(
        "UPDATE channel_members SET last_read = ? WHERE channel = ? AND member = ?",
        mark,
        name,
        t.me,
    )
    return Marked(channel=name, unread=len(_unread(t, name)))


@channels.tool(
    summary="Pin a message to its channel, or unpin it",
    annotations=SETS,
    related=("read_channel",),
    examples=[Example("Keep it at the top", {"message": 3})],
)
def pin_message(
    t: Tracker,
    message: MessageId,
    pinned: Annotated[bool, Field(description="False unpins.")] = True,
) -> Message:
    """Pin a message so that everybody finds it; a channel holds five pins at most."""
    row = _need_message(t, message)
    _need(t, row["channel"], writable=True)
    pins = t.value("SELECT count(*) FROM messages WHERE channel = ? AND pinned", row["channel"])
    if pinned and not row["pinned"] and pins >= 5:
        raise Refused(f"#{row['channel']} has five pins already; unpin one first.")
    t.update("messages", "id", message, pinned=pinned)
    return _message(t, message)


@channels.tool(
    summary="Archive a channel: it stays readable and takes no messages",
    annotations=REMOVES,
    related=("list_channels",),
    examples=[Example("One that is no longer used", {"channel": "releases"})],
)
def archive_channel(t: Tracker, channel: ChannelName) -> Channel:
    """Archive a channel for good; its creator may, and so may owners and admins."""
    row = _need(t, channel, writable=True, member=False)
    if row["created_by"] != t.me:
        need_role(t, "owner", "admin")
    t.update("channels", "name", row["name"], archived_at=t.stamp)
    record(t, "channel.archived", f"channel:{row['name']}", f"{t.me} archived #{row['name']}")
    return _channel(t, row["name"])


def _need(t: Tracker, name: str, *, writable: bool = False, member: bool = True) -> Row:
    """A channel that the caller may see; `member` and `writable` ask for more."""
    name = name.removeprefix("#").lower()
    row = t.row("SELECT * FROM channels WHERE name = ?", name)
    inside = row is not None and t.me in _members(t, name)
    if row is None or (row["private"] and not inside):
        raise unknown("channel", name, t.column("SELECT name FROM channels WHERE NOT private"))
    if writable and row["archived_at"]:
        raise Refused(f"#{name} is archived; it can be read, not changed.")
    if member and not inside:
        raise Refused(f"You are not a member of #{name}; join_channel first.")
    return row


def _need_message(t: Tracker, number: int) -> Row:
    row = t.row("SELECT * FROM messages WHERE id = ?", number)
    if row is None:
        raise unknown("message", number)
    _need(t, row["channel"], member=False)
    return row


def _members(t: Tracker, channel: str) -> list[str]:
    return t.column("SELECT member FROM channel_members WHERE channel = ? ORDER BY 1", channel)


def _add_member(t: Tracker, channel: str, member: str) -> None:
    newest = t.value("SELECT coalesce(max(id), 0) FROM messages WHERE channel = ?", channel)
    t.run("INSERT OR IGNORE INTO channel_members VALUES (?, ?, ?)", channel, member, newest)


def _unread(t: Tracker, channel: str) -> list[Row]:
    return t.rows(
        f"{_MESSAGE} JOIN channel_members c ON c.channel = messages.channel AND c.member = ? "
        "WHERE messages.channel = ? AND id > last_read AND author <> ? ORDER BY id",
        t.me,
        channel,
        t.me,
    )


def _post(t: Tracker, channel: str, body: str, thread: int | None) -> Message:
    number = t.insert(
        "messages", channel=channel, thread=thread, author=t.me, body=body, sent_at=t.stamp
    )
    inside = set(_members(t, channel))
    writers = t.column("SELECT author FROM messages WHERE thread = ? OR id = ?", thread, thread)
    record(
        t,
        "message.posted",
        f"channel:{channel}",
        f"{t.me} in #{channel}: {body[:80]}",
        topic="mentioned",
        tell=inside & {*mentioned(t, body), *writers},
        message=number,
    )
    return _message(t, number)


def _message(t: Tracker, number: int) -> Message:
    return Message.model_validate(t.row(f"{_MESSAGE} WHERE id = ?", number))


def _channel(t: Tracker, name: str) -> Channel:
    row = t.row("SELECT * FROM channels WHERE name = ?", name) or {}
    return Channel(**row, members=_members(t, name), unread=len(_unread(t, name)))
