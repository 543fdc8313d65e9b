"""What a command is to look at: a file, all clients of this machine, or one server."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pegboard.board import Pegboard
from pegboard.cli.boards import open_cached_board
from pegboard.cli.output import err
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from pegboard.config import Configuration
    from pegboard.upstream.listing import ListingProgress, ListingResult
    from pegboard.upstream.spec import UpstreamSpec

_WHICH = "say what to look at: a file, a URL, --clients, or -- and the command of a server"


@dataclass(frozen=True, slots=True)
class Target:
    """What was named on the command line."""

    words: tuple[str, ...] = ()
    config: Path | None = None
    catalog: Path | None = None
    clients: bool = False

    def settled(self) -> Target:
        """The same with a plain file name put where it belongs; exactly one thing is named."""
        named = [bool(self.words), self.config is not None, self.catalog is not None, self.clients]
        if sum(named) != 1:
            raise typer.BadParameter(_WHICH)
        if len(self.words) == 1 and _names_missing_file(self.words[0]):
            raise ConfigError(f"{self.words[0]}: there is no such file.", file=self.words[0])
        if len(self.words) != 1 or not Path(self.words[0]).is_file() or _is_program(self.words[0]):
            return self
        path = Path(self.words[0])
        return Target(catalog=path) if _holds_tools(path) else Target(config=path)


@contextmanager
def open_target(target: Target) -> Generator[Pegboard]:
    """The board of what was named; servers are asked while a bar shows how many have answered."""
    target = target.settled()
    if target.catalog is not None:
        yield open_cached_board(target.catalog)
        return
    with _progress() as progress:
        if target.config is not None:
            yield _listed(open_cached_board(None, target.config, progress=progress))
        elif target.clients:
            yield _listed(_of_clients(progress))
        else:
            with tempfile.TemporaryDirectory(prefix="pegboard-") as folder:
                yield _listed(_of_server(target.words, folder, progress))


def _listed(board: Pegboard) -> Pegboard:
    """The board with every server asked, while the bar is there to be seen."""
    board.tools()
    return board


def _of_server(words: Sequence[str], folder: str, progress: ListingProgress) -> Pegboard:
    """One server, asked afresh: what is kept of it elsewhere does not count."""
    from pegboard.config import Configuration, Settings
    from pegboard.upstream.spec import UpstreamSpec

    if words[0].startswith(("http://", "https://")):
        transport = "sse" if words[0].partition("?")[0].rstrip("/").endswith("/sse") else "http"
        spec = UpstreamSpec(name="server", transport=transport, url=words[0])
    else:
        spec = UpstreamSpec(
            name=Path(words[0]).stem, command=words[0], args=tuple(words[1:]), env=dict(os.environ)
        )
    settings = Settings()
    settings = replace(settings, upstreams=replace(settings.upstreams, folder=folder))
    return _board(Configuration(settings=settings, upstreams=(spec,)), progress)


def _of_clients(progress: ListingProgress) -> Pegboard:
    """All servers of all clients of this machine, each once."""
    from pegboard.config import Configuration, Settings, Surroundings, read_servers
    from pegboard.install.clients import load_clients, this_machine
    from pegboard.observe.logs import print_problems

    machine = this_machine()
    around = Surroundings(os.environ, machine.home, Path.cwd())
    specs: dict[str, UpstreamSpec] = {}
    problems: list[ConfigError] = []
    for client in load_clients().values():
        path = machine.file_of(client)
        if not path.exists():
            continue
        try:
            found = read_servers(path, around)
        except ConfigError as exc:
            problems.append(exc)
            continue
        problems.extend(found.problems)
        for spec in found.specs:
            _add(specs, spec, client.key)
    if not specs:
        raise ConfigError("No client of this machine has servers: `pegboard clients` shows them.")
    configuration = Configuration(
        settings=Settings(), upstreams=tuple(specs.values()), problems=tuple(problems)
    )
    print_problems(configuration)
    return _board(configuration, progress)


def _add(specs: dict[str, UpstreamSpec], spec: UpstreamSpec, client: str) -> None:
    """Another server of a known name gets the client's name behind its own."""
    known = specs.get(spec.name)
    if spec.disabled or (known and replace(known, origin=None) == replace(spec, origin=None)):
        return
    name = f"{spec.name}-{client}" if known else spec.name
    specs.setdefault(name, replace(spec, name=name))


def _board(configuration: Configuration, progress: ListingProgress) -> Pegboard:
    from pegboard.gateway.config_source import ConfigSource
    from pegboard.gateway.startup import open_cached_board

    opening = ConfigSource.of(".")
    if (kept := open_cached_board(opening, configuration)) is not None:
        return kept
    from pegboard.gateway.gateway_board import GatewayBoard

    return GatewayBoard(opening, configuration, progress)


def _names_missing_file(word: str) -> bool:
    """Whether a word can only be a file that is not there: no command and no address reads so."""
    if "://" in word or Path(word).exists():
        return False
    is_path = "/" in word or os.sep in word
    return is_path or (word.endswith(_FILES) and shutil.which(word) is None)


_FILES = (".json", ".jsonc", ".jsonl", ".toml", ".yaml", ".yml")


def _is_program(word: str) -> bool:
    return os.access(word, os.X_OK) and not word.endswith(_FILES)


def _holds_tools(path: Path) -> bool:
    """Whether a file is a catalogue of tools and not a file of servers."""
    if path.suffix in (".toml", ".yaml", ".yml", ".jsonc"):
        return False
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return path.suffix == ".jsonl"
    return isinstance(value, list) or "tools" in value


@contextmanager
def _progress() -> Generator[ListingProgress]:
    """Told of each server as it answers; a bar on a terminal, silence elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("Asking servers"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("servers", total=None, visible=False)

        def tell(done: int, total: int, found: ListingResult) -> None:
            bar.update(task, completed=done, total=total, visible=True)

        yield tell
