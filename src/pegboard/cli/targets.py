"""The tools that a command is about: options, and the board that they name.

    --catalog FILE      a file of tool definitions; nothing is started
    --config FILE       the servers of a configuration or of a client's file
    (neither)           the configuration that `config_discovery` finds
    FILE, URL, -- COMMAND      `measure` also takes these

A command that only reads gets a board of the cached catalogs where they are complete. Otherwise the
servers are listed, with progress on standard error.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from pegboard.board import Pegboard
from pegboard.cli.config_discovery import find_source
from pegboard.cli.output import (
    abbreviate_home,
    err,
    line,
    print_warning,
    progress_bar,
)
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from pegboard.config.loader import Configuration
    from pegboard.gateway.config_source import ConfigSource
    from pegboard.gateway.gateway_board import GatewayBoard
    from pegboard.upstream.listing import ListingProgress

CatalogOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--catalog",
        metavar="FILE",
        help="A file with tools: a tools/list result, a JSON list or JSON lines.",
    ),
]
ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="pegboard.toml, or an MCP client's own file; found automatically if omitted.",
    ),
]
ModeOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="auto, eager, proxy, stub, index, hierarchy, dynamic or code.",
    ),
]

_MOST_PROBLEMS = 2
_CONFIG_FILES = (".json", ".jsonc", ".jsonl", ".toml", ".yaml", ".yml")


def open_board(
    catalog: Path | None, config: Path | None = None, *, mode: str | None = None
) -> Pegboard:
    """The board that the options name, ready for calls."""
    if catalog is not None:
        return _open_catalog(catalog, config, mode)
    return open_config_board(find_source(config, **_settings(mode)))


def open_read_only_board(
    catalog: Path | None, config: Path | None = None, *, mode: str | None = None
) -> Pegboard:
    """The board that the options name, for a command that calls no tool: the cache is enough."""
    if catalog is not None:
        return _open_catalog(catalog, config, mode)
    source = find_source(config, **_settings(mode))
    return open_source(source, source.read())


def open_source(
    source: ConfigSource, configuration: Configuration, progress: ListingProgress | None = None
) -> Pegboard:
    """The board of a configuration for reading: from the cache, or listed with progress."""
    # Imported here: a catalog file needs none of the gateway, which is slow to import.
    from pegboard.gateway.cached_board import open_cached_board
    from pegboard.observe.logs import print_progress

    _warn_about(configuration)
    board = open_cached_board(source, configuration)
    if board is not None:
        return board
    from pegboard.gateway.gateway_board import GatewayBoard

    listed = GatewayBoard(source, configuration, progress or print_progress)
    if progress is None:
        _announce_listing(listed)
    listed.tools()  # lists the servers now: within an event loop, Ctrl-C would not be noticed
    return listed


def open_config_board(source: ConfigSource) -> GatewayBoard:
    """The board of a configuration; problems and slow servers are reported on standard error."""
    from pegboard.gateway.gateway_board import GatewayBoard
    from pegboard.observe.logs import print_progress

    configuration = source.read()
    _warn_about(configuration)
    board = GatewayBoard(source, configuration, print_progress)
    _announce_listing(board)
    return board


def _announce_listing(board: GatewayBoard) -> None:
    """Tell the user what is happening: nothing else is printed until a server has answered."""
    if err.is_terminal and not board.gateway.knows_all_servers:
        err.paragraph(line(("Starting the servers to list their tools ...", "dim")))


def _warn_about(configuration: Configuration) -> None:
    """Report what is wrong with a configuration: in full if it is little, else how to see it."""
    problems = configuration.problems
    for problem in problems if len(problems) <= _MOST_PROBLEMS else ():
        print_warning("problem", abbreviate_home(problem.message))
    if len(problems) > _MOST_PROBLEMS:
        # Clients often have different servers under the same name. Somebody who only wants to
        # search should not have to scroll past them each time.
        print_warning(
            "problem", f"there are {len(problems)} in these files; `pegboard doctor` lists them."
        )
    for note in configuration.notes:
        print_warning("note", abbreviate_home(note))
    if not configuration.upstreams and not configuration.sources:
        print_warning("problem", "no server of this configuration can be used.")


def _open_catalog(catalog: Path, config: Path | None, mode: str | None) -> Pegboard:
    if config is not None:
        raise typer.BadParameter("pass either --config FILE or --catalog FILE")
    return Pegboard.from_catalog(catalog, **_settings(mode))


def _settings(mode: str | None) -> dict[str, Any]:
    return {} if mode is None else {"mode": mode}


def warn_missing_servers(board: Pegboard) -> None:
    """Warn about servers that are missing from the board and were not tried just now."""
    missing: Mapping[str, str] = getattr(board, "earlier_failures", {})
    for name, reason in missing.items():
        print_warning("missing", reason if reason.startswith(name) else f"{name}: {reason}")


# --- what `pegboard measure` takes ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """What the command line names: at most one of the fields is set."""

    words: tuple[str, ...] = ()
    config: Path | None = None
    catalog: Path | None = None

    def resolve(self) -> Target:
        """The same target, with a file name recognized as a catalog or a configuration."""
        if sum([bool(self.words), self.config is not None, self.catalog is not None]) > 1:
            raise typer.BadParameter(
                "pass one of: a file, a URL, --clients, or -- and the command of a server"
            )
        if len(self.words) != 1:
            return self
        word, path = self.words[0], Path(self.words[0])
        is_path = "/" in word or os.sep in word
        # A word that can only be a file: it is neither a URL nor a command on the search path.
        is_config = word.endswith(_CONFIG_FILES) and shutil.which(word) is None
        if "://" not in word and not path.exists() and (is_path or is_config):
            raise ConfigError(f"{word}: there is no such file.", file=word)
        # A script in the current folder is a command, although it is a file too.
        is_program = os.access(word, os.X_OK) and not word.endswith(_CONFIG_FILES)
        if not path.is_file() or is_program:
            return self
        return Target(catalog=path) if _has_tools(path) else Target(config=path)


@contextmanager
def open_target(target: Target) -> Generator[Pegboard]:
    """The board of a target; a progress bar shows how many servers have answered."""
    target = target.resolve()
    if target.catalog is not None:
        yield open_read_only_board(target.catalog)
        return
    if not target.words:
        source = find_source(target.config)
        yield list_servers(source, source.read())
        return
    with tempfile.TemporaryDirectory(prefix="pegboard-") as folder:
        from pegboard.gateway.config_source import ConfigSource

        yield list_servers(ConfigSource.from_path("."), _one_server(target.words, folder))


def list_servers(source: ConfigSource, configuration: Configuration) -> Pegboard:
    """The board of a configuration with every server listed, under a progress bar."""
    with progress_bar("Listing tools") as advance:
        board = open_source(source, configuration, lambda done, total, _: advance(done, total))
        board.tools()  # list every server now, while the bar is shown
    return board


def _one_server(words: Sequence[str], folder: str) -> Configuration:
    """One server with a temporary cache, so that nothing that is cached elsewhere counts."""
    from pegboard.config.loader import Configuration
    from pegboard.config.settings import Settings
    from pegboard.upstream.spec import UpstreamSpec

    if words[0].startswith(("http://", "https://")):
        # By convention, the URL of a server with the older SSE transport ends in /sse.
        transport = "sse" if words[0].partition("?")[0].rstrip("/").endswith("/sse") else "http"
        spec = UpstreamSpec(name="server", transport=transport, url=words[0])
    else:
        # The command runs as it would in the user's shell, so it gets the whole environment.
        spec = UpstreamSpec(
            name=Path(words[0]).stem, command=words[0], args=tuple(words[1:]), env=dict(os.environ)
        )
    settings = Settings()
    settings = replace(settings, upstreams=replace(settings.upstreams, folder=folder))
    return Configuration(settings=settings, upstreams=(spec,))


def _has_tools(path: Path) -> bool:
    """Whether a file is a catalog of tools rather than a file of servers."""
    if path.suffix in (".toml", ".yaml", ".yml", ".jsonc"):
        return False
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        # JSON lines are not one JSON value. Anything else that is broken is reported as a
        # configuration, with its line.
        return path.suffix == ".jsonl"
    return isinstance(value, list) or "tools" in value
