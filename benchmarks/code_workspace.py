"""The tracker example after a quarter of work: 160 issues, 90 time entries, always the same.

`python -m benchmarks.code_workspace` serves it on standard input and output with every tool listed,
for peers that are measured on the same tasks.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from examples.database import Refused

from examples.tracker import (
    Tracker,
    attachments,
    board_for,
    comments,
    issue_flow,
    issues,
    seed,
    time_tracking,
)
from pegboard import Pegboard

NOW = datetime(2026, 3, 12, 15, tzinfo=UTC)
BEGIN = datetime(2026, 1, 5, 8, tzinfo=UTC)
ISSUES = 150
"""Beside the ten of the demo."""
ENTRIES = 90

PARTS = (
    "Login", "Checkout", "Search page", "Invoice export", "Webhook delivery", "Password reset",
    "Image upload", "Report", "Cart", "Billing", "Dashboard", "Mobile menu", "Token refresh",
    "Rate limiter", "Backup job", "Import",
)  # fmt: skip
FAULTS = (
    "fails on Safari", "times out", "shows wrong totals", "needs a loading state",
    "is slow for large accounts", "loses unsaved input", "ignores the time zone",
    "returns 500 on empty input", "should be translated", "lacks an audit entry",
)  # fmt: skip
REMARKS = (
    "Can reproduce this on staging.",
    "A customer asked again today, we should say when it ships.",
    "Looks like the same cause as before; the cache is not cleared.",
    "Fixed on the branch, please have a look when you can.",
)
TRACES = ("TypeError at login.js:41\n", "Timeout after 30 s\n" * 20)
STAGES = ((0.2, "todo"), (0.4, "in_progress"), (0.7, "in_review"), (0.75, "done"))


def build_workspace() -> Pegboard:
    """A new board over a new database in memory, at a fixed moment, with no tool pinned."""
    tracker = Tracker.open(":memory:", me="ana", now=lambda: NOW)
    seed(tracker)
    _Quarter(tracker).fill()
    board = board_for(tracker)
    board.reconfigure(replace(board.options, pins=()))
    return board


class _Quarter:
    """Three months of work, done by the members at times of their own."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker
        self.random = random.Random(7)
        self.moment = BEGIN

    def fill(self) -> None:
        with self.tracker.transaction():
            keys = [self._issue(number) for number in range(ISSUES)]
            self._time(keys)

    def _as(self, who: str, act: Callable[..., Any], *given: Any, **named: Any) -> Any:
        self.moment += timedelta(minutes=9)
        at = self.moment
        return act(self.tracker.acting_as(who, lambda: at), *given, **named)

    def _issue(self, number: int) -> str:
        choice, chance = self.random.choice, self.random.random
        self.moment = min(
            max(self.moment, BEGIN + timedelta(hours=10 * number)), NOW - timedelta(1)
        )
        project = choice(["WEB", "WEB", "API", "OPS"])
        fields: dict[str, Any] = {
            "type": choice(["bug", "bug", "feature", "task"]),
            "priority": choice(["low", "medium", "medium", "high", "urgent"]),
            "labels": self.random.sample(
                ["regression", "triage", "security", "customer"], choice([0, 1, 1, 2])
            ),
            "description": f"Seen by {self.random.randint(1, 40)} accounts. "
            + "Steps: open the page, wait, repeat. " * self.random.randint(1, 4),
        }
        if chance() < 0.7:
            fields["assignee"] = "chen" if project == "OPS" else choice(["ana", "ben", "chen"])
        if chance() < 0.4:
            fields["due_on"] = (self.moment + timedelta(days=self.random.randint(3, 40))).date()
        if project == "WEB" and chance() < 0.6:
            fields["milestone"] = 1
        author = "chen" if project == "OPS" else choice(["ana", "ben", "chen"])
        title = f"{choice(PARTS)} {choice(FAULTS)}"
        key: str = self._as(author, issues.create_issue, project, title, **fields).key
        self._progress(key, fields.get("assignee", "chen"))
        self._talk(key, number)
        return key

    def _progress(self, key: str, who: str) -> None:
        reached = self.random.random()
        with suppress(Refused):  # not everyone may take every step
            for least, status in STAGES:
                if reached > least:
                    self._as(who, issue_flow.transition_issue, key, status)

    def _talk(self, key: str, number: int) -> None:
        choice = self.random.choice
        for _ in range(choice([0, 1, 1, 2, 4])):
            self._as(choice(["ana", "chen"]), comments.add_comment, key, choice(REMARKS))
        if self.random.random() < 0.25:
            trace = choice([*TRACES, f"unique {number}\n"])
            self._as("ana", attachments.attach_file, key, f"trace-{number}.log", trace)

    def _time(self, keys: list[str]) -> None:
        """Entries of each member one after another, so that none overlap."""
        begins = dict.fromkeys(("ana", "ben", "chen"), datetime(2026, 2, 2, 8, tzinfo=UTC))
        self.moment = max(self.moment, NOW - timedelta(hours=20))
        for key in self.random.sample(keys, ENTRIES):
            who, minutes = self.random.choice([*begins]), self.random.choice([30, 45, 60, 90])
            with suppress(Refused):
                self._as(who, time_tracking.log_time, key, begins[who], minutes, "work")
            begins[who] += timedelta(hours=3)


if __name__ == "__main__":
    build_workspace().run()
