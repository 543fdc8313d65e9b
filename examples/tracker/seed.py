"""A workspace to look at: Northwind, a software house in March 2026, always the same.

Everything is made through the tools themselves, by the member who would have done it and at a time
of their choosing, so that events, notifications and rules are as real as in daily use.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from ..database import iso
from . import (
    attachments,
    calendar,
    channels,
    comments,
    contacts,
    documents,
    issue_flow,
    issues,
    milestones,
    notifications,
    projects,
    storage,
    time_tracking,
    workspace,
)
from .tracker import Tracker

START = datetime(2026, 2, 16, 8, tzinfo=UTC)
MEMBERS = (
    ("ana", "Ana Brandt", "owner"),
    ("ben", "Ben Okafor", "admin"),
    ("chen", "Chen Li", "member"),
    ("dora", "Dora Nagy", "guest"),
)
SETTINGS = {"name": "Northwind", "working_hours": "9-17", "storage_quota_bytes": "1000000"}


def seed(tracker: Tracker, *, demo: bool = True) -> None:
    """Fill an empty database; one with members in it is left alone.

    Args:
        tracker: The open database.
        demo: False adds only the settings and `tracker.me` as owner.
    """
    with tracker.transaction():
        if tracker.value("SELECT count(*) FROM members"):
            return
        for name, value in SETTINGS.items():
            tracker.insert("settings", name=name, value=value)
        people = MEMBERS if demo else ((tracker.me, tracker.me.title(), "owner"),)
        for handle, name, role in people:
            email, joined = f"{handle}@northwind.example", iso(START) if demo else tracker.stamp
            tracker.insert(
                "members", handle=handle, name=name, email=email, role=role, joined_at=joined
            )
        if demo:
            _demo(_Story(tracker))


class _Story:
    """Lets members act one after another, some minutes apart."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self.time = START

    def by(self, member: str, act: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.time += timedelta(minutes=7)
        moment = self.time
        return act(self._tracker.acting_as(member, lambda: moment), *args, **kwargs)

    def day(self, month: int, day: int, hour: int = 9) -> None:
        self.time = datetime(2026, month, day, hour, tzinfo=UTC)


def _demo(story: _Story) -> None:
    _set_up(story)
    _first_weeks(story)
    _talk(story)
    _write(story)
    _this_week(story)


def _set_up(story: _Story) -> None:
    for name, color in (
        ("regression", "#d33f49"),
        ("triage", "#8a8f98"),
        ("security", "#a4036f"),
        ("customer", "#2a9d8f"),
    ):
        story.by("ana", workspace.create_label, name, color)
    for key, name, lead, about in (
        ("WEB", "Website", "ana", "The shop and everything that customers see."),
        ("API", "Public API", "ben", "The interface that partners build on."),
        ("OPS", "Operations", "chen", "Servers, backups, on-call."),
    ):
        story.by("ana", projects.create_project, key, name, lead, about)
    for key, member in (("WEB", "ben"), ("WEB", "chen"), ("API", "ana"), ("API", "chen")):
        story.by("ana", projects.add_project_member, key, member)
    story.by(
        "ana",
        milestones.create_milestone,
        "WEB",
        "Sprint 8",
        date(2026, 3, 2),
        date(2026, 3, 13),
        "Customers can log in and pay on every browser.",
    )
    story.by(
        "ben", milestones.create_milestone, "API", "v2 beta", date(2026, 2, 23), date(2026, 3, 20)
    )


def _first_weeks(story: _Story) -> None:
    story.day(2, 18)
    for who, project, title, fields in ISSUES:
        story.by(who, issues.create_issue, project, title, **fields)
    story.by("ana", milestones.plan_issues, 1, ["WEB-1", "WEB-2", "WEB-3", "WEB-4", "WEB-5"])
    story.by("ben", milestones.plan_issues, 2, ["API-1", "API-2", "API-3"])
    story.by("ben", issue_flow.link_issues, "API-1", "blocks", "WEB-2")
    story.by("ana", issue_flow.link_issues, "WEB-3", "relates_to", "WEB-4")
    story.day(2, 25)
    for key in ("WEB-1", "WEB-3", "API-1", "API-2", "OPS-1"):
        story.by("ana", issue_flow.transition_issue, key, "todo")
    story.by("ben", issue_flow.transition_issue, "API-1", "in_progress")
    story.day(3, 2)
    story.by("chen", issue_flow.transition_issue, "WEB-1", "in_progress")
    story.by("chen", issue_flow.transition_issue, "OPS-1", "in_progress")
    story.day(3, 4, 15)
    story.by("chen", issue_flow.transition_issue, "WEB-1", "in_review", "Ready to look at.")
    story.day(3, 5, 10)
    story.by("ana", issue_flow.transition_issue, "WEB-1", "done", "Fixed in 4.1.")
    story.by("chen", issue_flow.transition_issue, "OPS-1", "done")


def _talk(story: _Story) -> None:
    story.day(3, 3, 10)
    story.by("ana", comments.add_comment, "WEB-3", "@ben can you reproduce this? Safari 17 only.")
    story.by("ben", comments.reply_to_comment, 1, "Yes. The session cookie lacks SameSite=None.")
    story.by("chen", comments.add_comment, "WEB-3", "Two customers wrote to us about it as well.")
    story.by("ana", comments.toggle_reaction, 2, "+1")
    for who, name, topic, private in (
        ("ana", "general", "Everything that concerns all of us", False),
        ("ben", "releases", "What ships when", False),
        ("ana", "hiring", "Candidates; members only", True),
    ):
        story.by(who, channels.create_channel, name, topic, private)
    for member in ("ben", "chen", "dora"):
        story.by(member, channels.join_channel, "general")
    story.by("ana", channels.join_channel, "releases")
    story.by("ben", channels.post_message, "releases", "Release branch for 4.1 is cut.")
    story.by("ana", channels.reply_in_thread, 1, "Thanks. WEB-1 must be in it, @ben.")
    story.by("chen", channels.post_message, "general", "Backups moved to the new host last night.")
    story.by("ben", channels.post_message, "general", "@ana the partner call is on Thursday.")
    for name, email, company, phone in (
        ("Ida Holm", "ida.holm@fjordbank.example", "Fjord Bank", "+47 555 0101"),
        ("Marco Rossi", "marco@trattoria.example", "Trattoria Rossi", ""),
        ("Holm Ida", "iholm@fjordbank.example", "Fjord Bank", "+47 5550 101"),
    ):
        story.by("ana", contacts.create_contact, name, email, company, phone)
    story.by("ana", contacts.log_interaction, 1, "call", "Cannot log in from Safari. Wants a date.")
    story.by("ana", contacts.link_contact_to_issue, 1, "WEB-3")


def _write(story: _Story) -> None:
    story.day(3, 4)
    story.by("ana", documents.create_document, "WEB", "release-plan", "Release plan", PLAN)
    story.by(
        "ben", documents.create_document, "API", "api-guidelines", "API guidelines", GUIDELINES
    )
    longer = PLAN + "\n## After the release\n\nWatch error rates for two hours.\n"
    story.by("ben", documents.update_document, "release-plan", longer, message="What comes after")
    trace = (
        "TypeError: undefined is not an object (evaluating 'session.user')\n    at login.js:41\n"
    )
    story.by("ben", attachments.attach_file, "WEB-3", "safari-trace.log", trace)
    story.by("ana", storage.upload_file, "/design/colors.css", ":root { --brand: #2a9d8f; }\n")
    story.by("chen", storage.upload_file, "/runbooks/backup.md", "# Backup\n\nRestore monthly.\n")
    story.by("ana", notifications.set_quiet_hours, 20, 7)


def _this_week(story: _Story) -> None:
    for who, title, start, minutes, people, more in MEETINGS:
        story.by(who, calendar.create_calendar_event, title, start, minutes, people, **more)
    story.day(3, 6, 16)
    for who, key, start, minutes, note in (
        ("chen", "WEB-1", datetime(2026, 3, 2, 9, 30), 150, "Find the cause"),
        ("chen", "WEB-1", datetime(2026, 3, 4, 13), 120, "Fix and test"),
        ("ben", "API-1", datetime(2026, 3, 3, 9), 240, "Draft the token endpoint"),
        ("ben", "API-1", datetime(2026, 3, 5, 9), 180, "Review with partners"),
        ("ana", "WEB-3", datetime(2026, 3, 5, 14), 45, "Reproduce on Safari"),
    ):
        story.by(who, time_tracking.log_time, key, start, minutes, note)
    story.by("ana", issues.assign_issue, "WEB-3", "ben")


ISSUES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    (
        "ana",
        "WEB",
        "Checkout page times out",
        {
            "type": "bug",
            "priority": "urgent",
            "assignee": "chen",
            "estimate_hours": 4,
            "description": "Paying takes more than 30 seconds when the cart has over 20 items.",
        },
    ),
    (
        "ana",
        "WEB",
        "Log in with a company account (SSO)",
        {
            "type": "feature",
            "priority": "high",
            "assignee": "ana",
            "estimate_hours": 16,
            "description": "Customers with their own identity provider want OpenID Connect.",
            "due_on": date(2026, 3, 13),
        },
    ),
    (
        "chen",
        "WEB",
        "Login fails on Safari",
        {
            "type": "bug",
            "priority": "high",
            "labels": ["regression", "customer"],
            "estimate_hours": 6,
            "due_on": date(2026, 3, 6),
            "description": "After the form is sent, Safari shows the login page again.",
        },
    ),
    (
        "ben",
        "WEB",
        "Show password rules on the sign-up form",
        {"type": "feature", "priority": "low", "estimate_hours": 3},
    ),
    (
        "ana",
        "WEB",
        "Translate error messages to Norwegian",
        {"assignee": "chen", "due_on": date(2026, 3, 11)},
    ),
    (
        "ben",
        "API",
        "Token endpoint for partners",
        {
            "type": "feature",
            "priority": "high",
            "assignee": "ben",
            "estimate_hours": 10,
            "description": "Partners exchange a client secret for a token that lasts an hour.",
        },
    ),
    (
        "chen",
        "API",
        "Rate limit by key, not by address",
        {"type": "task", "assignee": "chen", "labels": ["security"], "estimate_hours": 8},
    ),
    (
        "ana",
        "API",
        "Which fields may a partner see?",
        {"type": "question", "labels": ["triage"], "description": "See api-guidelines, @ben."},
    ),
    ("chen", "OPS", "Move backups to the new host", {"assignee": "chen", "priority": "high"}),
    ("chen", "OPS", "Alert when the disk is 80 % full", {"due_on": date(2026, 3, 20)}),
)

MEETINGS: tuple[tuple[str, str, datetime, int, list[str], dict[str, Any]], ...] = (
    (
        "ana",
        "Stand-up",
        datetime(2026, 3, 2, 9),
        15,
        ["ben", "chen"],
        {"repeats": "weekly", "location": "Room 2", "project": "WEB"},
    ),
    (
        "ben",
        "Partner call",
        datetime(2026, 3, 12, 13),
        60,
        ["ana"],
        {"location": "https://meet.northwind.example/partners", "project": "API"},
    ),
    (
        "chen",
        "Restore drill",
        datetime(2026, 1, 31, 10),
        90,
        ["ben"],
        {"repeats": "monthly", "until": date(2026, 12, 31), "project": "OPS"},
    ),
)

PLAN = """# Release plan

How a version of the website gets out. Interfaces follow [[api-guidelines]].

## Before

- Cut the release branch on Tuesday.
- WEB-1 and WEB-3 are closed.
- Read the checklist in [[release-checklist]].

## The day

- Deploy to one host, wait ten minutes, deploy to all.
"""

GUIDELINES = """# API guidelines

- Names are nouns in the plural; verbs are HTTP's.
- Every list has a limit and a cursor.
- A field that a partner may not see is absent, not null.
"""
