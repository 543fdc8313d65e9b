"""`pegboard index`: compute the vectors for semantic search ahead of time."""

from __future__ import annotations

import time

import typer

from pegboard.board import Pegboard
from pegboard.cli.output import EXIT_FAILED, JsonOption, out, print_json, progress_bar
from pegboard.cli.targets import CatalogOption, ConfigOption, open_board, warn_missing_servers
from pegboard.errors import PegboardError


def build_vectors(board: Pegboard) -> int:
    """Compute the vectors that the board does not have yet; returns their number."""
    with progress_bar("Indexing tools") as advance:
        missing = len(board.index.tools_without_vector())
        advance(0, missing)
        board.prepare(advance)
    return missing


def index(
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Build the search index now and save it, so that a server starts with it."""
    board = open_board(catalog, config)
    tools = len(board.tools(include_disabled=True))
    start = time.perf_counter()
    made = build_vectors(board)
    seconds = time.perf_counter() - start
    warn_missing_servers(board)
    # An index in memory is of no use to the next process, which this command is for.
    if not board.is_index_saved:
        raise PegboardError(
            f"The index of {tools:,} tools cannot be saved in {board.index_folder}: make the "
            "folder writable, or set PEGBOARD_HOME to another one."
        )
    if as_json:
        figures = {"tools": tools, "made": made, "seconds": round(seconds, 3)}
        print_json({**figures, "folder": str(board.index_folder)})
    elif not made:
        out.print(f"Nothing to do: all {tools:,} tools are indexed.")
    else:
        out.paragraph(
            f"Indexed {made:,} of {tools:,} tools in {seconds:.1f} s; saved in {board.index_folder}"
        )
    if getattr(board, "failures", {}):
        raise typer.Exit(EXIT_FAILED)
