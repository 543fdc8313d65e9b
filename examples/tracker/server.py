"""The tracker as an MCP server: all categories on one board over one database."""

from __future__ import annotations

from pegboard import Pegboard

from ..database import Clock, system_clock
from .activity import activity
from .attachments import attachments
from .availability import availability
from .calendar import calendar
from .channels import channels
from .comments import comments
from .contacts import contacts
from .documents import documents
from .fields import FIELDS
from .issue_flow import flow
from .issues import issues
from .milestones import milestones
from .notifications import notifications
from .projects import projects
from .search import search
from .seed import seed
from .storage import storage
from .time_tracking import time_tracking
from .timesheets import timesheets
from .tracker import Tracker
from .workspace import workspace

PINS = ("list_projects", "fulltext_search")
INSTRUCTIONS = (
    "A team's tracker: projects, issues, documents, chat, calendar and time. Start with "
    "list_projects or fulltext_search; keys such as WEB-3 name issues, handles such as ana "
    "name members."
)
TOOLBOXES = (
    activity,
    attachments,
    calendar,
    availability,
    channels,
    comments,
    contacts,
    documents,
    issues,
    flow,
    milestones,
    notifications,
    projects,
    search,
    storage,
    time_tracking,
    timesheets,
    workspace,
)


def board_for(tracker: Tracker) -> Pegboard:
    """A board whose tools work on an open tracker."""
    board = Pegboard("tracker", pins=PINS, instructions=INSTRUCTIONS)
    for toolbox in TOOLBOXES:
        toolbox.hang(board, tracker, FIELDS)
    return board


def build_board(
    path: str = ":memory:", *, me: str = "ana", now: Clock = system_clock, seeded: bool = True
) -> Pegboard:
    """A board over the database at `path`; an empty one gets the demo workspace first.

    Args:
        path: File of the database, or `:memory:`.
        me: Handle of the member that calls act as.
        now: The clock; tests fix it.
        seeded: False leaves an empty database empty but for the owner `me`.
    """
    tracker = Tracker.open(path, me=me, now=now)
    seed(tracker, demo=seeded)
    return board_for(tracker)
