"""The bars that commands show while vectors are made and queries are asked."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

from pegboard.board import Pegboard
from pegboard.cli.output import err

Tell: TypeAlias = Callable[[int, int], None]
"""Told how much of how much is done."""


@contextmanager
def bar(label: str) -> Generator[Tell]:
    """A bar on a terminal, on standard error; silence elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as shown:
        task = shown.add_task(label, total=None, visible=False)

        def tell(done: int, total: int) -> None:
            shown.update(task, completed=done, total=total, visible=True)

        yield tell


def make_vectors(board: Pegboard) -> int:
    """Make all vectors that the board lacks; how many were made."""
    with bar("Reading tools") as tell:
        lacking = len(board.index.lacking())
        tell(0, lacking)
        board.prepare(tell)
    return lacking
