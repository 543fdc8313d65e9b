"""Where vectors and indexes are kept on this machine, and the finder that keeps them there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.embed.finder import Finder
from pegboard.embed.kept_index import KeptIndexes
from pegboard.embed.local import LocalMeanings

if TYPE_CHECKING:
    from pegboard.ports import Embedder


def home_folder(environ: Mapping[str, str]) -> Path:
    """`PEGBOARD_HOME`, or a folder in the user's cache."""
    if home := environ.get("PEGBOARD_HOME"):
        return Path(home).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("pegboard", appauthor=False)


def meanings_in(folder: Path, embedder: Embedder | None = None) -> LocalMeanings:
    """Vectors that are kept in a folder; by the model of the package unless one is given."""
    return LocalMeanings(folder / "vectors", embedder)


def indexes_in(folder: Path) -> KeptIndexes:
    """The indexes that are kept in a folder."""
    return KeptIndexes(folder / "indexes")


def finder_in(folder: Path, embedder: Embedder | None = None) -> Finder:
    """A finder that keeps its vectors and its index in a folder."""
    return Finder(meanings_in(folder, embedder), indexes_in(folder))
