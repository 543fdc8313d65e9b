"""`pegboard index`: compute the vectors for semantic search ahead of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

import typer

from pegboard.board import Pegboard
from pegboard.cli.boards import (
    CatalogOption,
    ConfigOption,
    JsonOption,
    open_board,
    warn_missing_servers,
)
from pegboard.cli.output import EXIT_FAILED, err, out, print_json
from pegboard.errors import PegboardError

ProgressCallback: TypeAlias = Callable[[int, int], None]
"""Told how much of how much is done."""


@contextmanager
def progress_bar(label: str) -> Generator[ProgressCallback]:
    """A bar on a terminal, on standard error; silence elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as shown:
        task = shown.add_task(label, total=None, visible=False)

        def tell(done: int, total: int) -> None:
            shown.update(task, completed=done, total=total, visible=True)

        yield tell


def build_vectors(board: Pegboard) -> int:
    """Make all vectors that the board lacks; how many were made."""
    with progress_bar("Reading tools") as tell:
        lacking = len(board.index.lacking())
        tell(0, lacking)
        board.prepare(tell)
    return lacking


def index(
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the search index now and keep it, so that no start has to."""
    board = open_board(catalog, config)
    tools = len(board.tools(include_disabled=True))
    began = time.perf_counter()
    made = build_vectors(board)
    seconds = time.perf_counter() - began
    warn_missing_servers(board)
    if not board.is_index_saved:
        raise PegboardError(
            f"The index of {tools:,} tools cannot be saved in {board.index_folder}: make the "
            f"folder writable, or set PEGBOARD_HOME to another one."
        )
    if as_json:
        figures = {"tools": tools, "made": made, "seconds": round(seconds, 3)}
        print_json({**figures, "folder": str(board.index_folder)})
    elif not made:
        out.print(f"Nothing to do: all {tools:,} tools are indexed.")
    else:
        out.print(
            f"{made:,} of {tools:,} tools read in {seconds:.1f} s; the index is in "
            f"{board.index_folder}",
            soft_wrap=True,
        )
    if getattr(board, "failures", {}):
        raise typer.Exit(EXIT_FAILED)
