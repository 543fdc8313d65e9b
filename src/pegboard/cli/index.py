"""`pegboard index`: compute the vectors for semantic search ahead of time."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from pegboard.board import Pegboard
from pegboard.cli.output import EXIT_FAILED, JsonOption, out, print_json, progress_bar
from pegboard.cli.targets import (
    CatalogOption,
    ConfigOption,
    open_board,
    open_read_only_board,
    warn_missing_servers,
)
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
    forget: Annotated[
        bool,
        typer.Option(
            "--forget", help="Forget what search has learned from calls, and build nothing."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Build the search index and save it, so that a gateway does not have to when it starts."""
    if forget:
        _forget(open_read_only_board(catalog, config), as_json=as_json)
        return
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
    # The tools of servers that failed have no vectors: a script should notice.
    if getattr(board, "failures", {}):
        raise typer.Exit(EXIT_FAILED)


def _forget(board: Pegboard, *, as_json: bool) -> None:
    forgotten = board.searches.forget()
    if as_json:
        print_json({"forgotten": forgotten, "folder": str(board.index_folder)})
    elif forgotten:
        users = "one user" if forgotten == 1 else f"{forgotten:,} users"
        out.print(f"Forgot what search had learned from the calls of {users}.")
    else:
        out.print("Nothing to forget: search has learned nothing from calls here.")
