"""The options that say which tools a command is about."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from pegboard.board import Pegboard
from pegboard.cli.output import print_warning

if TYPE_CHECKING:
    from pegboard.upstream.listing import ListingProgress

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
ModeOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--mode", metavar="MODE", help="eager, stub, index, hierarchy, proxy, dynamic or auto."
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def open_board(
    catalog: Path | None,
    config: Path | None = None,
    *,
    mode: str | None = None,
    progress: ListingProgress | None = None,
) -> Pegboard:
    """The board that the options name."""
    if (catalog is None) == (config is None):
        raise typer.BadParameter("say which tools: --config FILE or --catalog FILE")
    if config is None:
        return Pegboard.from_catalog(catalog or "", **_settings(mode))
    return open_config_board(config, mode=mode, progress=progress)


def open_cached_board(
    catalog: Path | None,
    config: Path | None = None,
    *,
    mode: str | None = None,
    progress: ListingProgress | None = None,
) -> Pegboard:
    """The board that the options name, for whoever calls nothing of it: what is kept will do."""
    if config is None or catalog is not None:
        return open_board(catalog, config, mode=mode)
    from pegboard.gateway.config_source import ConfigSource
    from pegboard.gateway.startup import open_cached_board
    from pegboard.observe.logs import print_problems

    opening = ConfigSource.of(config, **_settings(mode))
    configuration = opening.read()
    board = open_cached_board(opening, configuration)
    if board is None:
        return open_config_board(config, mode=mode, progress=progress)
    print_problems(configuration)
    return board


def open_config_board(
    config: Path | None, *, mode: str | None = None, progress: ListingProgress | None = None
) -> Pegboard:
    """The board of a configuration; what is wrong with it, and slow, is told on stderr."""
    if config is None:
        raise typer.BadParameter("say which servers: --config FILE")
    from pegboard.gateway.gateway_board import GatewayBoard
    from pegboard.observe.logs import print_problems, print_progress

    board = GatewayBoard.open(config, progress=progress or print_progress, **_settings(mode))
    print_problems(board.configuration)
    return board


def _settings(mode: str | None) -> dict[str, Any]:
    return {} if mode is None else {"mode": mode}


def warn_missing_servers(board: Pegboard) -> None:
    """Say which servers are missing; those that failed just now were told of as they did."""
    missing: Mapping[str, str] = getattr(board, "untried", {})
    for name, reason in missing.items():
        print_warning("missing", f"{name}: {reason}")
