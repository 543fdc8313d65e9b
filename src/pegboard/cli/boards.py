"""The options that say which tools a command is about."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from pegboard.board import Pegboard

CatalogOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--catalog", metavar="FILE", help="A tools/list result, JSON list or JSON lines."),
]
FaceOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--face", metavar="FACE", help="eager, stub, index, hierarchy, proxy, dynamic or auto."
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def open_board(catalog: Path | None, *, face: str = "auto") -> Pegboard:
    """The board that the options name."""
    if catalog is None:
        raise typer.BadParameter("say which tools: --catalog FILE")
    return Pegboard.from_catalog(catalog, face=face)
