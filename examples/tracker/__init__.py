"""A team's tracker as an MCP server: 15 categories of tools over SQLite.

Run it with `python -m examples.tracker [DATABASE]`.
"""

from ..database import Refused
from .seed import seed
from .server import board_for, build_board
from .tracker import Tracker

__all__ = ["Refused", "Tracker", "board_for", "build_board", "seed"]
