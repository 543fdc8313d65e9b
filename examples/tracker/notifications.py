"""Notifications: what concerns a member, when and how they want to hear of it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from pegboard import Example

from ..database import Record, Refused, Row, iso, unknown
from ..toolbox import READS, SETS, Toolbox
from .events import TOPICS, preference, watch
from .lookup import need_issue
from .tracker import Tracker
from .words import Delivery, IssueKey, Limit, Slug, Topic

notifications = Toolbox[Tracker](
    "notifications", "Your inbox and digest: read and snooze, watch things, set preferences."
)

NotificationId = Annotated[int, Field(description="Number of the notification.")]
Hour = Annotated[int, Field(ge=0, le=23, description="Hour of the day, UTC.")]


class Notification(Record):
    id: int
    topic: Topic
    text: str
    subject: str = Field(description="What it is about, such as issue:WEB-3.")
    actor: str
    at: datetime
    read: bool


class Inbox(Record):
    notifications: list[Notification]
    unread: int
    held_back: int = Field(description="Snoozed or in quiet hours; they come up later.")


class MarkedRead(Record):
    marked: int
    unread: int


class QuietHours(Record):
    from_hour: int
    to_hour: int


class Preferences(Record):
    delivery: dict[str, Delivery]
    quiet_hours: QuietHours | None


class Watched(Record):
    subjects: list[str]


class DigestGroup(Record):
    subject: str
    count: int
    latest: str
    texts: list[str]


class Digest(Record):
    groups: list[DigestGroup]
    total: int


_NOTIFICATION = """SELECT n.id, topic, e.summary AS text, subject, actor, e.at, delivery,
    read_at IS NOT NULL AS read FROM notifications n JOIN events e ON e.id = n.event"""
_MINE = "n.member = ? AND delivery = 'inbox' AND due_at <= ?"


@notifications.tool(
    summary="List your notifications, newest first",
    annotations=READS,
    aliases=("inbox", "alerts"),
    related=("mark_notification_read", "get_digest"),
    examples=[Example("Only where you were named", {"topic": "mentioned"})],
)
def list_notifications(
    t: Tracker,
    unread_only: Annotated[bool, Field(description="Leave out what you have read.")] = True,
    topic: Annotated[Topic | None, Field(description="Only this topic.")] = None,
    limit: Limit = 20,
) -> Inbox:
    """List what happened that concerns you: assignments, mentions, and things that you watch.

    Snoozed ones and those held back by quiet hours come up when their time has come. What you chose
    to have in the digest is in `get_digest`.
    """
    rows = t.rows(
        f"{_NOTIFICATION} WHERE {_MINE} AND (? IS NULL OR topic = ?) AND (NOT ? OR read_at IS NULL)"
        " ORDER BY n.id DESC LIMIT ?",
        t.me,
        t.stamp,
        topic,
        topic,
        unread_only,
        limit,
    )
    held = "SELECT count(*) FROM notifications WHERE member = ? AND due_at > ? AND read_at IS NULL"
    return Inbox(
        notifications=[Notification.model_validate(r) for r in rows],
        unread=_unread(t),
        held_back=t.value(held, t.me, t.stamp),
    )


@notifications.tool(
    summary="Mark one notification as read or unread",
    annotations=SETS,
    related=("list_notifications",),
    examples=[Example("By number", {"notification": 9})],
)
def mark_notification_read(
    t: Tracker,
    notification: NotificationId,
    read: Annotated[bool, Field(description="False marks it as unread again.")] = True,
) -> MarkedRead:
    """Mark a notification of yours as read, or as unread again."""
    row = _need(t, notification)
    read_at = t.stamp if read else None
    t.run("UPDATE notifications SET read_at = ? WHERE id = ?", read_at, notification)
    return MarkedRead(marked=int(bool(row["read_at"]) != read), unread=_unread(t))


@notifications.tool(
    summary="Mark all your notifications as read",
    annotations=SETS,
    examples=[Example("All about one issue", {"subject": "issue:WEB-3"})],
    related=("list_notifications",),
)
def mark_all_notifications_read(
    t: Tracker,
    subject: Annotated[str | None, Field(description="Only about this, as issue:WEB-3.")] = None,
) -> MarkedRead:
    """Mark everything that has come up in your inbox as read; what is held back stays unread."""
    marked = t.run(
        "UPDATE notifications SET read_at = ? WHERE member = ? AND read_at IS NULL AND due_at <= ? "
        "AND (? IS NULL OR event IN (SELECT id FROM events WHERE subject = ?))",
        t.stamp,
        t.me,
        t.stamp,
        subject,
        subject,
    )
    return MarkedRead(marked=marked, unread=_unread(t))


@notifications.tool(
    summary="Put a notification off until later",
    annotations=SETS,
    aliases=("remind me later",),
    related=("list_notifications",),
    examples=[Example("Until tomorrow", {"notification": 9, "until": "2026-03-10T08:00:00Z"})],
)
def snooze_notification(
    t: Tracker,
    notification: NotificationId,
    until: Annotated[datetime, Field(description="When it shall come up again, UTC.")],
) -> Inbox:
    """Take a notification out of the inbox until a time, when it comes up again as unread."""
    _need(t, notification)
    if iso(until) <= t.stamp:
        raise Refused(f"Snooze until a time after now, {t.stamp}; got {iso(until)}.")
    t.update("notifications", "id", notification, due_at=iso(until))
    t.run("UPDATE notifications SET read_at = NULL WHERE id = ?", notification)
    return list_notifications(t)


@notifications.tool(
    summary="Show how and when you are notified",
    annotations=READS,
    related=("set_notification_preference",),
    examples=[Example("Yours", {})],
)
def get_notification_preferences(t: Tracker) -> Preferences:
    """Show for each topic whether you hear of it in the inbox, in the digest or not at all."""
    quiet = t.row("SELECT from_hour, to_hour FROM quiet_hours WHERE member = ?", t.me)
    return Preferences(
        delivery={topic: preference(t, t.me, topic) for topic in TOPICS},
        quiet_hours=QuietHours.model_validate(quiet) if quiet else None,
    )


@notifications.tool(
    summary="Choose inbox, digest or off for a topic",
    annotations=SETS,
    aliases=("mute", "unsubscribe"),
    examples=[Example("No mail about status", {"topic": "status", "delivery": "off"})],
    related=("get_notification_preferences",),
)
def set_notification_preference(
    t: Tracker,
    topic: Annotated[Topic, Field(description="What it is about.")],
    delivery: Annotated[Delivery, Field(description="Where you hear of it.")],
) -> Preferences:
    """Choose how you hear of a topic from now on; notifications that are there already stay.

    Mentions cannot be switched off, only moved to the digest: somebody asks for you by name.
    """
    if (topic, delivery) == ("mentioned", "off"):
        raise Refused("Mentions cannot be off; choose inbox or digest.")
    t.run(
        "INSERT INTO notification_preferences VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET delivery = excluded.delivery",
        t.me,
        topic,
        delivery,
    )
    return get_notification_preferences(t)


@notifications.tool(
    summary="Set or remove hours without notifications",
    annotations=SETS,
    aliases=("do not disturb",),
    examples=[Example("Nights", {"from_hour": 20, "to_hour": 7})],
    related=("get_notification_preferences",),
)
def set_quiet_hours(
    t: Tracker, from_hour: Hour | None = None, to_hour: Hour | None = None
) -> Preferences:
    """Hold notifications back between two hours of the day; the span may cross midnight.

    What happens in that time comes up when it ends. Leave both out to remove quiet hours.
    """
    if (from_hour is None) != (to_hour is None) or (from_hour is not None and from_hour == to_hour):
        raise Refused("Give two different hours, or neither to remove quiet hours.")
    t.run("DELETE FROM quiet_hours WHERE member = ?", t.me)
    if from_hour is not None:
        t.insert("quiet_hours", member=t.me, from_hour=from_hour, to_hour=to_hour)
    return get_notification_preferences(t)


@notifications.tool(
    summary="Watch or stop watching an issue",
    annotations=SETS,
    aliases=("follow issue", "subscribe"),
    related=("list_watched",),
    examples=[Example("Stop watching", {"issue": "WEB-3", "watching": False})],
)
def watch_issue(
    t: Tracker,
    issue: IssueKey,
    watching: Annotated[bool, Field(description="False stops watching.")] = True,
) -> Watched:
    """Hear of status changes, comments and files of an issue, or stop hearing of them.

    You watch what you report, are assigned, comment on or are named in without asking for it.
    """
    return _set_watch(t, f"issue:{need_issue(t, issue)['key']}", watching)


@notifications.tool(
    summary="Watch or stop watching a document",
    annotations=SETS,
    related=("list_watched",),
    examples=[Example("By slug", {"document": "api-guidelines"})],
)
def watch_document(
    t: Tracker,
    document: Slug,
    watching: Annotated[bool, Field(description="False stops watching.")] = True,
) -> Watched:
    """Hear of new versions of a document, or stop hearing of them."""
    if not t.row("SELECT 1 FROM documents WHERE slug = ?", document):
        raise unknown("document", document, t.column("SELECT slug FROM documents"))
    return _set_watch(t, f"document:{document}", watching)


@notifications.tool(
    summary="List what you watch",
    annotations=READS,
    related=(
        "watch_issue",
        "watch_document",
    ),
    examples=[Example("Yours", {})],
)
def list_watched(t: Tracker) -> Watched:
    """List the issues and documents of which you hear everything."""
    return Watched(
        subjects=t.column("SELECT subject FROM watches WHERE member = ? ORDER BY subject", t.me)
    )


@notifications.tool(
    summary="Read your digest of notifications",
    annotations=READS,
    aliases=("daily summary",),
    related=("list_notifications",),
    examples=[Example("Today's", {})],
)
def get_digest(t: Tracker) -> Digest:
    """Show unread notifications of the topics set to digest, grouped by what they are about.

    `mark_all_notifications_read` clears it.
    """
    rows = t.rows(
        f"{_NOTIFICATION} WHERE n.member = ? AND delivery = 'digest' AND read_at IS NULL "
        "AND due_at <= ? ORDER BY n.id",
        t.me,
        t.stamp,
    )
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["subject"], []).append(row)
    return Digest(
        groups=[
            DigestGroup(
                subject=subject, count=len(g), latest=g[-1]["at"], texts=[r["text"] for r in g]
            )
            for subject, g in groups.items()
        ],
        total=len(rows),
    )


def _need(t: Tracker, number: int) -> Row:
    row = t.row("SELECT * FROM notifications WHERE id = ? AND member = ?", number, t.me)
    if row is None:
        raise unknown("notification of yours with number", number)
    return row


def _unread(t: Tracker) -> int:
    where = f"FROM notifications n WHERE {_MINE} AND read_at IS NULL"
    return t.value(f"SELECT count(*) {where}", t.me, t.stamp)


def _set_watch(t: Tracker, subject: str, watching: bool) -> Watched:
    if watching:
        watch(t, t.me, subject)
    else:
        t.run("DELETE FROM watches WHERE member = ? AND subject = ?", t.me, subject)
    return list_watched(t)
