"""A search index that stays current: it follows the catalog and computes vectors in the background.

    index(catalog)  the index as it is now, immediately
    start()         compute vectors in a background thread, one by one, while nothing else runs
    prepare()       compute all of them now

An index is saved to disk when its vectors are complete, and loaded from there at the next start.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pegboard.core.search import SearchIndex
from pegboard.core.search.searchable_fields import build_passage, read_searchable_fields
from pegboard.core.search.vectors import QuantizedVectors
from pegboard.core.tools import Catalog, Tool
from pegboard.embed.index_files import IndexFiles
from pegboard.embed.vectorizer import LocalVectorizer

if TYPE_CHECKING:
    from pegboard.ports import Embedder


logger = logging.getLogger(__name__)

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many vectors of how many are made."""

BATCH = 64
SHOW_EVERY = 1.0  # seconds between indexes with more vectors, while they are made


class LiveIndex:
    """The search index of one catalogue that changes.

    Args:
        meanings: gives vectors; may be shared by many finders.
        kept: where indexes are kept between starts; `None` builds them anew.
    """

    def __init__(self, meanings: LocalVectorizer, kept: IndexFiles | None = None) -> None:
        self._meanings = meanings
        self._kept = kept
        self._index: SearchIndex | None = None
        self._source: str | None = None
        self._on_disk: SearchIndex | None = None
        self._lock = threading.Lock()
        self._background = False
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def index(self, catalog: Catalog, source: str | None = None) -> SearchIndex:
        """The index of the catalogue, with the vectors that are there.

        Args:
            catalog: the tools.
            source: a hash of what the tools' schemas were read from, so that an index kept on disk
                can be taken without reading them; `None` when nobody knows, and nothing is kept.
        """
        with self._lock:
            current = self._index
            if current is not None and current.catalog is catalog:
                return current
            self._source = source
            self._index = self._first(catalog) if current is None else current.updated(catalog)
            self._wake()
            return self._index

    def prepare(
        self, catalog: Catalog, progress: Progress | None = None, source: str | None = None
    ) -> SearchIndex:
        """The index of the catalogue with all exact vectors, made now where they are missing."""
        lacking = self.index(catalog, source).lacking()
        done = 0
        for batch in _batches(lacking):
            self._meanings.keep([key for key, _ in batch], self._meanings.make(_passages(batch)))
            done += len(batch)
            if progress is not None:
                progress(done, len(lacking))
        self._refresh()
        return self._keep()

    @property
    def is_kept(self) -> bool:
        """Whether the index as it is now is on disk."""
        return self._index is not None and self._index is self._on_disk

    def start(self, pulse: Callable[[], int] | None = None) -> None:
        """Make vectors in the background from now on, whenever some are lacking.

        Args:
            pulse: counts answers of any kind, before which the vectors stand back.
        """
        if pulse is not None:
            self._meanings.pulse = pulse
        with self._lock:
            if not self._background:
                self._background = True
                self._wake()

    def close(self) -> None:
        """Stop making vectors; those made are kept."""
        with self._lock:
            self._background = False
            thread = self._thread
        self._stopping.set()
        if thread is not None:
            thread.join()
        self._stopping.clear()

    def _first(self, catalog: Catalog) -> SearchIndex:
        """The first index of this process; from disk, if it is there and as good as can be."""
        found = None
        if self._kept is not None and self._source is not None:
            found = self._on_disk = self._kept.load(catalog, self._source, self._meanings)
        index = found.refreshed() if found else SearchIndex.build(catalog, self._meanings)
        if not self._background:  # else the thread keeps it, and no answer waits for the disk
            self._save(index, self._source)
        return index

    def _save(self, index: SearchIndex, source: str | None) -> None:
        if self._kept is None or source is None or index is self._on_disk:
            return
        if not len(index.catalog) or self._kept.save(index, source, self._meanings):
            self._on_disk = index

    def _keep(self) -> SearchIndex:
        """Keep the index as it is now; answers do not wait for the disk."""
        with self._lock:
            index, source = self._index, self._source  # together, or one could be of another day
        if index is None:
            raise RuntimeError("There is no index to keep yet.")
        self._save(index, source)
        return index

    def _refresh(self) -> None:
        with self._lock:
            if self._index is not None:
                self._index = self._index.refreshed()

    def _wake(self) -> None:
        """A thread is at work; it ends by itself, so that an idle finder has none."""
        if self._background and self._index is not None and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="pegboard-vectors", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        catalog: Catalog | None = None
        while (catalog := self._next(catalog)) is not None:
            try:
                self._make_lacking(catalog)
                if not self._overtaken(catalog):
                    self._keep()
                    self._meanings.rest()  # by now a first start has read and embedded every tool
            except Exception:
                logger.exception("Making vectors failed; it goes on when the catalogue changes.")

    def _next(self, seen: Catalog | None) -> Catalog | None:
        """The catalogue to work on next; with `None` this thread is at its end."""
        with self._lock:
            index = self._index
            if self._stopping.is_set() or index is None or index.catalog is seen:
                self._thread = None
                return None
            return index.catalog

    def _make_lacking(self, catalog: Catalog) -> None:
        """One vector after another for this catalogue, shown from time to time."""
        made: list[tuple[bytes, QuantizedVectors]] = []
        shown = time.monotonic()
        for key, tool in self._lacking():
            if self._stopping.is_set() or self._overtaken(catalog):
                break
            self._meanings.give_way()
            made.append((key, self._meanings.make([build_passage(read_searchable_fields(tool))])))
            if len(made) >= BATCH or time.monotonic() - shown > SHOW_EVERY:
                self._show(made)
                shown = time.monotonic()
        self._show(made)

    def _lacking(self) -> list[tuple[bytes, Tool]]:
        return [] if self._index is None else self._index.lacking()

    def _overtaken(self, catalog: Catalog) -> bool:
        return self._index is None or self._index.catalog is not catalog

    def _show(self, made: list[tuple[bytes, QuantizedVectors]]) -> None:
        if made:
            rows = np.concatenate([vector.rows for _, vector in made])
            scales = np.concatenate([vector.scales for _, vector in made])
            self._meanings.keep([key for key, _ in made], QuantizedVectors(rows, scales))
            made.clear()
            self._refresh()


def _batches(
    lacking: Sequence[tuple[bytes, Tool]],
) -> Iterator[list[tuple[bytes, Tool]]]:
    source = iter(lacking)
    while batch := list(islice(source, BATCH)):
        yield batch


def _passages(batch: Sequence[tuple[bytes, Tool]]) -> list[str]:
    return [build_passage(read_searchable_fields(tool)) for _, tool in batch]


def open_vectorizer(folder: Path, embedder: Embedder | None = None) -> LocalVectorizer:
    """Vectors that are kept in a folder; by the model of the package unless one is given."""
    return LocalVectorizer(folder / "vectors", embedder)


def open_index_files(folder: Path) -> IndexFiles:
    """The indexes that are kept in a folder."""
    return IndexFiles(folder / "indexes")


def open_live_index(folder: Path, embedder: Embedder | None = None) -> LiveIndex:
    """A finder that keeps its vectors and its index in a folder."""
    return LiveIndex(open_vectorizer(folder, embedder), open_index_files(folder))
