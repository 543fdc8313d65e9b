"""`pegboard index`: make the vectors that search by meaning needs, before anybody asks."""

from __future__ import annotations

import time

import typer

from pegboard.cli.boards import CatalogOption, ConfigOption, JsonOption, open_board, tell_missing
from pegboard.cli.output import EXIT_FAILED, out, print_json
from pegboard.cli.preparing import make_vectors
from pegboard.errors import PegboardError


def index(
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the search index now and keep it, so that no start has to."""
    board = open_board(catalog, config)
    tools = len(board.tools(include_disabled=True))
    began = time.perf_counter()
    made = make_vectors(board)
    seconds = time.perf_counter() - began
    tell_missing(board)
    if not board.is_index_kept:
        raise PegboardError(
            f"The index of {tools:,} tools was made but cannot be kept in {board.kept_in}: make "
            f"the folder writable, or set PEGBOARD_HOME to another one."
        )
    if as_json:
        figures = {"tools": tools, "made": made, "seconds": round(seconds, 3)}
        print_json({**figures, "folder": str(board.kept_in)})
    elif not made:
        out.print(f"Nothing to do: all {tools:,} tools are indexed.")
    else:
        out.print(
            f"{made:,} of {tools:,} tools read in {seconds:.1f} s; the index is in {board.kept_in}",
            soft_wrap=True,
        )
    if getattr(board, "failures", {}):
        raise typer.Exit(EXIT_FAILED)
