"""A small tracker to write programs for: every risk, and a list of what was really done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import pytest
from pydantic import BaseModel, ConfigDict
from tests.boards import DESTRUCTIVE, READ, WRITE

from pegboard import Pegboard, ToolError


class Row(BaseModel):
    """One issue."""

    model_config = ConfigDict(extra="forbid")

    key: str
    title: str
    votes: int


class Deleted(BaseModel):
    """What a deletion answers."""

    deleted: str


@dataclass
class Tracker:
    """What the tools work on, and what they did."""

    done: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    running: int = 0
    most_running: int = 0


MakeBoard = Callable[..., Pegboard]


@pytest.fixture
def tracker() -> Tracker:
    return Tracker()


@pytest.fixture
def make_board(tracker: Tracker) -> MakeBoard:
    return partial(tracker_board, tracker)


@pytest.fixture
def board(make_board: MakeBoard) -> Pegboard:
    return make_board()


def tracker_board(tracker: Tracker, **options: Any) -> Pegboard:
    """A board of the tracker's tools."""
    board = Pegboard("tracker", mode="code", **options)

    @board.tool(annotations=READ)
    def list_issues(status: str = "open") -> list[Row]:
        """List issues."""
        return [Row(key=f"WEB-{n}", title=f"Issue {n}", votes=n) for n in range(1, 6)]

    @board.tool(annotations=READ)
    async def slow_read(seconds: float) -> str:
        """Wait."""
        tracker.running += 1
        tracker.most_running = max(tracker.most_running, tracker.running)
        try:
            await anyio.sleep(seconds)
        finally:
            tracker.running -= 1
        tracker.done.append(("slow_read", seconds))
        return "waited"

    @board.tool(annotations=WRITE)
    async def add_comment(issue: str, body: str, wait: float = 0.0) -> dict[str, str]:
        """Add a comment."""
        await anyio.sleep(wait)
        if issue == "WEB-0":
            raise ToolError("There is no issue WEB-0.")
        tracker.done.append(("add_comment", issue))
        return {"issue": issue, "body": body}

    @board.tool(annotations=DESTRUCTIVE)
    def delete_issue(issue: str) -> Deleted:
        """Delete an issue."""
        tracker.done.append(("delete_issue", issue))
        return Deleted(deleted=issue)

    @board.tool()
    def read_report(name: str) -> str:
        """Read a report; nothing declares that it only reads."""
        tracker.done.append(("read_report", name))
        return "[1, 2, 3]"

    return board
