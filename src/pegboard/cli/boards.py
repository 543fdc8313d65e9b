"""The options that say which tools a command is about."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from pegboard.board import Pegboard
from pegboard.cli.output import warn

if TYPE_CHECKING:
    from pegboard.upstream.discovery import Progress

CatalogOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--catalog", metavar="FILE", help="A tools/list result, JSON list or JSON lines."),
]
ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="pegboard.toml, or a client's file of MCP servers.",
    ),
]
FaceOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--face", metavar="FACE", help="eager, stub, index, hierarchy, proxy, dynamic or auto."
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def open_board(
    catalog: Path | None,
    config: Path | None = None,
    *,
    face: str | None = None,
    progress: Progress | None = None,
) -> Pegboard:
    """The board that the options name."""
    if (catalog is None) == (config is None):
        raise typer.BadParameter("say which tools: --config FILE or --catalog FILE")
    if config is None:
        return Pegboard.from_catalog(catalog or "", **_settings(face))
    return open_config(config, face=face, progress=progress)


def read_board(
    catalog: Path | None,
    config: Path | None = None,
    *,
    face: str | None = None,
    progress: Progress | None = None,
) -> Pegboard:
    """The board that the options name, for whoever calls nothing of it: what is kept will do."""
    if config is None or catalog is not None:
        return open_board(catalog, config, face=face)
    from pegboard.gateway.kept_board import kept_board
    from pegboard.gateway.opening import Opening
    from pegboard.gateway.reporting import report

    opening = Opening.of(config, **_settings(face))
    configuration = opening.read()
    board = kept_board(opening, configuration)
    if board is None:
        return open_config(config, face=face, progress=progress)
    report(configuration)
    return board


def open_config(
    config: Path | None, *, face: str | None = None, progress: Progress | None = None
) -> Pegboard:
    """The board of a configuration; what is wrong with it, and slow, is told on stderr."""
    if config is None:
        raise typer.BadParameter("say which servers: --config FILE")
    from pegboard.gateway.board import GatewayBoard
    from pegboard.gateway.reporting import report, say_progress

    board = GatewayBoard.open(config, progress=progress or say_progress, **_settings(face))
    report(board.configuration)
    return board


def _settings(face: str | None) -> dict[str, Any]:
    return {} if face is None else {"face": face}


def tell_missing(board: Pegboard) -> None:
    """Say which servers are missing; those that failed just now were told of as they did."""
    missing: Mapping[str, str] = getattr(board, "untried", {})
    for name, reason in missing.items():
        warn("missing", f"{name}: {reason}")
