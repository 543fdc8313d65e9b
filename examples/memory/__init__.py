"""An episode memory for agents as an MCP server over SQLite.

Run it with `python -m examples.memory [DATABASE]`.
"""

from .seed import RICH_EPISODE, seed
from .server import board_for, build_board, open_memory

__all__ = ["RICH_EPISODE", "board_for", "build_board", "open_memory", "seed"]
