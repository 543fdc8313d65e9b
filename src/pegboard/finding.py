"""How the tools of a board are found: the search index of what there is now, and where it is kept.

An index on disk is taken again when the tools are read from the same as when it was made. So what
they were read from is told with the catalogue only where it is known of every tool in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from pegboard.core.policy import Policy
    from pegboard.core.search import SearchIndex
    from pegboard.core.tools import Catalog
    from pegboard.embed.live_index import LiveIndex
    from pegboard.pipeline import Parts
    from pegboard.ports import Embedder
    from pegboard.registering import Registering


class Searched(Protocol):
    """What a board says of itself to be searched."""

    policy: Policy
    embedder: Embedder | None
    folder: Path | None
    is_served: bool

    @property
    def catalog(self) -> Catalog: ...

    @property
    def parts(self) -> Parts: ...


class Finding:
    """The search index of a board, made and kept when it is first asked for."""

    def __init__(self, board: Searched, registering: Registering) -> None:
        self._board = board
        self._registering = registering
        self.source: str | None = None
        """A hash of what all mounted tools were read from, where that is known."""

    @cached_property
    def finder(self) -> LiveIndex:
        """Keeps the index current, and on disk."""
        from pegboard.embed.live_index import open_live_index

        return open_live_index(self.kept_in, self._board.embedder)

    @property
    def kept_in(self) -> Path:
        """The folder of vectors and indexes."""
        from pegboard.private_files import home_folder

        return self._board.folder or home_folder(os.environ)

    @property
    def index(self) -> SearchIndex:
        """The index of the whole catalogue; while clients are served, vectors come behind it."""
        if self._board.is_served:
            self.finder.start(lambda: self._board.parts.live.changes)
        catalog, source = self._catalog_and_source()
        return self.finder.index(catalog, source)

    def index_for(self, seen: Catalog) -> SearchIndex:
        """The index of what somebody sees."""
        return self.index if self._board.policy.is_open else self.index.among(seen)

    def prepare(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Make all vectors now, and tell `progress` how many of how many there are."""
        catalog, source = self._catalog_and_source()
        self.finder.prepare(catalog, progress, source)

    def _catalog_and_source(self) -> tuple[Catalog, str | None]:
        """The catalogue and what it was read from, if that is known of all of it.

        Tools may be mounted in another thread meanwhile: then they are not taken for a pair.
        """
        _ = self._board.catalog  # whatever is loaded or listed by asking is there after this
        before = self.source
        catalog = self._board.catalog
        is_known = before == self.source and not self._registering.has_own
        return catalog, before if is_known else None
