"""What happened, written down once: the source of activity, timelines and notifications.

`record` adds an event and tells those whom it concerns: people who watch its subject, and people
named by the event itself (an assignee, somebody mentioned). Preferences and quiet hours decide
whether and when a notification comes up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from ..database import iso
from .tracker import Tracker
from .words import Delivery, Topic

MENTION = re.compile(r"(?<![\w@])@([a-z][a-z0-9_]*)")

TOPICS: tuple[Topic, ...] = ("assigned", "mentioned", "status", "comment", "document", "calendar")
USUAL: dict[Topic, Delivery] = {
    "assigned": "inbox",
    "mentioned": "inbox",
    "status": "inbox",
    "comment": "inbox",
    "document": "digest",
    "calendar": "inbox",
}


def record(
    t: Tracker,
    kind: str,
    subject: str,
    summary: str,
    *,
    project: str | None = None,
    topic: Topic | None = None,
    tell: Iterable[str] = (),
    **detail: object,
) -> int:
    """Write down an event and notify the people in `tell` and those who watch the subject."""
    event = t.insert(
        "events",
        at=t.stamp,
        actor=t.me,
        kind=kind,
        subject=subject,
        project=project,
        summary=summary,
        detail=json.dumps(detail, default=str),
    )
    if topic is not None:
        watchers = t.column("SELECT member FROM watches WHERE subject = ?", subject)
        for member in sorted({*watchers, *tell} - {t.me}):
            _notify(t, member, event, topic)
    return event


def watch(t: Tracker, member: str, subject: str) -> None:
    """Let a member hear of everything that happens to a subject."""
    t.run("INSERT OR IGNORE INTO watches (member, subject) VALUES (?, ?)", member, subject)


def mentioned(t: Tracker, text: str) -> list[str]:
    """The active members whom a text names with an @, in order."""
    active = set(t.column("SELECT handle FROM members WHERE active"))
    return [name for name in dict.fromkeys(MENTION.findall(text)) if name in active]


def preference(t: Tracker, member: str, topic: Topic) -> Delivery:
    """How a member wants to hear of a topic."""
    chosen = t.value(
        "SELECT delivery FROM notification_preferences WHERE member = ? AND topic = ?",
        member,
        topic,
    )
    return chosen or USUAL[topic]


def after_quiet(moment: datetime, from_hour: int, to_hour: int) -> datetime:
    """The moment itself, or the end of the quiet hours that it falls into."""
    hour = moment.hour
    overnight = from_hour > to_hour
    quiet = (hour >= from_hour or hour < to_hour) if overnight else from_hour <= hour < to_hour
    if not quiet:
        return moment
    end = moment.replace(hour=to_hour, minute=0, second=0, microsecond=0)
    return end + timedelta(days=1) if overnight and hour >= from_hour else end


def _notify(t: Tracker, member: str, event: int, topic: Topic) -> None:
    delivery = preference(t, member, topic)
    if delivery == "off":
        return
    due = t.now()
    quiet = t.row("SELECT from_hour, to_hour FROM quiet_hours WHERE member = ?", member)
    if quiet:
        due = after_quiet(due, quiet["from_hour"], quiet["to_hour"])
    t.insert(
        "notifications", member=member, event=event, topic=topic, delivery=delivery, due_at=iso(due)
    )
