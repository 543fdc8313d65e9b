"""The tools that a command is about: options, and the board that they name.

    --catalog FILE      a file of tool definitions; nothing is started
    --config FILE       the servers of a configuration or of a client's file
    FILE, URL, --clients, -- COMMAND      `measure` also takes these

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
from pegboard.cli.output import print_warning, progress_bar
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from pegboard.config.loader import Configuration
    from pegboard.gateway.gateway_board import GatewayBoard
    from pegboard.upstream.listing import ListingProgress, ListingResult
    from pegboard.upstream.spec import UpstreamSpec

CatalogOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--catalog",
        metavar="FILE",
        help="A file of tools: a tools/list result, a JSON list or JSON lines.",
    ),
]
ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="pegboard.toml, or an MCP client's file of servers."
    ),
]
ModeOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--mode", metavar="MODE", help="eager, stub, index, hierarchy, proxy, dynamic or auto."
    ),
]

_CONFIG_FILES = (".json", ".jsonc", ".jsonl", ".toml", ".yaml", ".yml")


def open_board(
    catalog: Path | None,
    config: Path | None = None,
    *,
    mode: str | None = None,
    progress: ListingProgress | None = None,
) -> Pegboard:
    """The board that the options name, ready for calls."""
    if (catalog is None) == (config is None):
        raise typer.BadParameter("pass either --config FILE or --catalog FILE")
    if catalog is not None:
        return Pegboard.from_catalog(catalog, **_settings(mode))
    return open_config_board(config, mode=mode, progress=progress)


def open_read_only_board(
    catalog: Path | None,
    config: Path | None = None,
    *,
    mode: str | None = None,
    progress: ListingProgress | None = None,
) -> Pegboard:
    """The board that the options name, for a command that calls no tool: the cache is enough."""
    if config is None or catalog is not None:
        return open_board(catalog, config, mode=mode)
    # Imported here: a catalog file needs none of the gateway, which is slow to import.
    from pegboard.gateway.config_source import ConfigSource
    from pegboard.gateway.startup import open_cached_board
    from pegboard.observe.logs import print_problems

    source = ConfigSource.from_path(config, **_settings(mode))
    configuration = source.read()
    board = open_cached_board(source, configuration)
    if board is None:
        return open_config_board(config, mode=mode, progress=progress)
    print_problems(configuration)
    return board


def open_config_board(
    config: Path | None, *, mode: str | None = None, progress: ListingProgress | None = None
) -> GatewayBoard:
    """The board of a configuration; problems and slow servers are reported on standard error."""
    if config is None:
        raise typer.BadParameter("pass the servers: --config FILE")
    from pegboard.gateway.gateway_board import GatewayBoard
    from pegboard.observe.logs import print_problems, print_progress

    board = GatewayBoard.open(config, progress=progress or print_progress, **_settings(mode))
    print_problems(board.configuration)
    return board


def _settings(mode: str | None) -> dict[str, Any]:
    return {} if mode is None else {"mode": mode}


def warn_missing_servers(board: Pegboard) -> None:
    """Warn about servers that are missing from the board and were not tried just now."""
    missing: Mapping[str, str] = getattr(board, "earlier_failures", {})
    for name, reason in missing.items():
        print_warning("missing", f"{name}: {reason}")


# --- what `pegboard measure` takes ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """What the command line names; exactly one of the fields is set."""

    words: tuple[str, ...] = ()
    config: Path | None = None
    catalog: Path | None = None
    clients: bool = False

    def resolve(self) -> Target:
        """The same target, with a file name recognized as a catalog or a configuration."""
        named = [bool(self.words), self.config is not None, self.catalog is not None, self.clients]
        if sum(named) != 1:
            raise typer.BadParameter(
                "pass one of: a file, a URL, --clients, or -- and the command of a server"
            )
        if len(self.words) != 1:
            return self
        word, path = self.words[0], Path(self.words[0])
        if _is_missing_file(word):
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
    with (
        tempfile.TemporaryDirectory(prefix="pegboard-") as folder,
        progress_bar("Listing tools") as advance,
    ):

        def progress(done: int, total: int, result: ListingResult) -> None:
            advance(done, total)

        if target.config is not None:
            board = open_read_only_board(None, target.config, progress=progress)
        elif target.clients:
            board = _board_of_clients(progress)
        else:
            board = _board_of_server(target.words, folder, progress)
        board.tools()  # list every server now, while the bar is shown
        yield board


def _board_of_server(words: Sequence[str], folder: str, progress: ListingProgress) -> Pegboard:
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
    return _board_of(Configuration(settings=settings, upstreams=(spec,)), progress)


def _board_of_clients(progress: ListingProgress) -> Pegboard:
    """All servers of all clients on this machine, each once."""
    from pegboard.config.loader import Configuration
    from pegboard.config.server_entries import ConfigEnvironment, read_servers
    from pegboard.config.settings import Settings
    from pegboard.install.clients import load_clients, this_machine
    from pegboard.observe.logs import print_problems

    machine = this_machine()
    surroundings = ConfigEnvironment(os.environ, machine.home, Path.cwd())
    specs: dict[str, UpstreamSpec] = {}
    problems: list[ConfigError] = []
    for client in load_clients().values():
        path = machine.client_file(client)
        if not path.exists():
            continue
        try:
            found = read_servers(path, surroundings)
        except ConfigError as exc:
            problems.append(exc)  # one broken file does not hide the servers of other clients
            continue
        problems.extend(found.problems)
        for spec in found.specs:
            _add_server(specs, spec, client.key)
    if not specs:
        raise ConfigError("No client on this machine has servers. See `pegboard clients`.")
    configuration = Configuration(
        settings=Settings(), upstreams=tuple(specs.values()), problems=tuple(problems)
    )
    print_problems(configuration)
    return _board_of(configuration, progress)


def _add_server(specs: dict[str, UpstreamSpec], spec: UpstreamSpec, client: str) -> None:
    """Add a server; a different one with a name that is taken gets the client's name as suffix."""
    # People configure the same server in several clients; where it was found does not matter.
    known = specs.get(spec.name)
    if spec.disabled or (known and replace(known, origin=None) == replace(spec, origin=None)):
        return
    name = f"{spec.name}-{client}" if known else spec.name
    specs.setdefault(name, replace(spec, name=name))


def _board_of(configuration: Configuration, progress: ListingProgress) -> Pegboard:
    from pegboard.gateway.config_source import ConfigSource
    from pegboard.gateway.startup import open_cached_board

    source = ConfigSource.from_path(".")
    if (cached := open_cached_board(source, configuration)) is not None:
        return cached
    from pegboard.gateway.gateway_board import GatewayBoard

    return GatewayBoard(source, configuration, progress)


def _is_missing_file(word: str) -> bool:
    """Whether a word can only be a file that does not exist, not a command or a URL."""
    if "://" in word or Path(word).exists():
        return False
    is_path = "/" in word or os.sep in word
    return is_path or (word.endswith(_CONFIG_FILES) and shutil.which(word) is None)


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
