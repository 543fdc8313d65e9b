"""The episode memory as an MCP server."""

from __future__ import annotations

from pathlib import Path

from pegboard import Pegboard

from ..database import Clock, Database, connect, system_clock
from .batch import batch
from .episodes import episodes
from .fields import FIELDS
from .insight import insight
from .patterns import patterns
from .relationships import relationships
from .seed import seed

SCHEMA = Path(__file__).with_name("schema.sql")
INSTRUCTIONS = (
    "Remembers what was done and learned. Ask query_memory before a task, keep the task with "
    "create_episode, its steps with add_episode_step, its end with complete_episode."
)
TOOLBOXES = (episodes, batch, patterns, relationships, insight)


def open_memory(path: str = ":memory:", *, now: Clock = system_clock) -> Database:
    """The database at `path`, with its tables in place."""
    return Database(connect(path, SCHEMA), now)


def board_for(memory: Database) -> Pegboard:
    """A board whose tools work on an open memory."""
    board = Pegboard("memory", pins=("query_memory",), instructions=INSTRUCTIONS)
    for toolbox in TOOLBOXES:
        toolbox.hang(board, memory, FIELDS)
    return board


def build_board(
    path: str = ":memory:", *, now: Clock = system_clock, seeded: bool = True
) -> Pegboard:
    """A board over the memory at `path`; an empty one gets the demo episodes unless told not to."""
    memory = open_memory(path, now=now)
    if seeded:
        seed(memory)
    return board_for(memory)
