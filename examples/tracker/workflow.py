r"""The rules of an issue's life: which status may follow which, and what stands in the way.

    backlog -> todo -> in_progress -> in_review -> done
       |         \________________________________/  |
       +--> canceled (from any open status)          +-> todo (reopened)

Pure: the facts that a rule needs come in as arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .words import Status

OPEN: tuple[Status, ...] = ("backlog", "todo", "in_progress", "in_review")
CLOSED: tuple[Status, ...] = ("done", "canceled")

NEXT: Mapping[Status, tuple[Status, ...]] = {
    "backlog": ("todo", "canceled"),
    "todo": ("backlog", "in_progress", "canceled"),
    "in_progress": ("todo", "in_review", "done", "canceled"),
    "in_review": ("in_progress", "done", "canceled"),
    "done": ("todo",),
    "canceled": ("backlog",),
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules look at."""

    assignee: str | None
    open_blockers: Sequence[str] = ()
    open_children: Sequence[str] = ()


def obstacle(current: Status, target: Status, facts: Facts) -> str | None:
    """Why an issue may not go from one status to another now; `None` when it may."""
    if target not in NEXT[current]:
        return f"{current} leads only to {', '.join(NEXT[current])}"
    if target == "in_progress" and facts.assignee is None:
        return "work starts with an assignee: call assign_issue first"
    if target in ("in_progress", "done") and facts.open_blockers:
        return f"it is blocked by {', '.join(facts.open_blockers)}: close or unlink them first"
    if target == "done" and facts.open_children:
        return f"its sub-issues {', '.join(facts.open_children)} are still open"
    return None
