"""A search index that stays current: it follows the catalog and computes vectors in the background.

    index(catalog)  the index as it is now, immediately
    start()         compute vectors in a background thread, one by one, while the process is idle
    prepare()       compute all of them now

An index is saved to disk when its vectors are complete, and loaded from there at the next start.

The background thread ends when it has nothing to do, so that an idle index has none. Everything
that it shares with the threads that search is replaced under the lock, never changed in place.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pegboard.core.search import SearchIndex
from pegboard.core.search.relevance import QuantizedVectors
from pegboard.core.search.searchable_fields import build_passage, read_searchable_fields
from pegboard.core.tools import Catalog
from pegboard.embed.disk_storage import IndexFiles
from pegboard.embed.vectorizer import LocalVectorizer

if TYPE_CHECKING:
    from pegboard.ports import Embedder


logger = logging.getLogger(__name__)

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of vectors computed so far, and of all."""

BATCH = 64
PUBLISH_INTERVAL = 1.0  # seconds after which new vectors are used, while more are computed


class LiveIndex:
    """The search index of one catalog that changes.

    Args:
        vectorizer: computes vectors; can be shared by several indexes.
        files: where indexes are saved between starts; `None` builds them at each start.
    """

    def __init__(self, vectorizer: LocalVectorizer, files: IndexFiles | None = None) -> None:
        self._vectorizer = vectorizer
        self._files = files
        self._index: SearchIndex | None = None
        self._source: str | None = None
        self._saved: SearchIndex | None = None
        self._lock = threading.Lock()
        self._in_background = False
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def index(self, catalog: Catalog, source: str | None = None) -> SearchIndex:
        """The index of the catalog, with the vectors available by now.

        Args:
            catalog: the tools.
            source: a hash of what the tools' schemas were read from, so that a saved index can be
                loaded without reading them; `None` if that is not known, and nothing is saved.
        """
        with self._lock:
            current = self._index
            if current is not None and current.catalog is catalog:
                return current
            self._source = source
            if current is not None:
                self._index = current.updated(catalog)
            else:
                loaded = None
                if self._files is not None and source is not None:
                    loaded = self._saved = self._files.load(catalog, source, self._vectorizer)
                built = loaded.refreshed() if loaded else None
                self._index = built or SearchIndex.build(catalog, self._vectorizer)
                # In the background, the thread saves it, and no answer waits for the disk.
                if not self._in_background:
                    self._save(self._index, source)
            self._start_thread()
            return self._index

    def prepare(
        self, catalog: Catalog, progress: Progress | None = None, source: str | None = None
    ) -> SearchIndex:
        """The index of the catalog with all exact vectors, computed now if they are missing."""
        missing = self.index(catalog, source).tools_without_vector()
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            passages = [build_passage(read_searchable_fields(tool)) for _, tool in batch]
            self._vectorizer.save([key for key, _ in batch], self._vectorizer.compute(passages))
            if progress is not None:
                progress(start + len(batch), len(missing))
        self._refresh()
        return self._save_current()

    @property
    def is_saved(self) -> bool:
        """Whether the index as it is now is on disk."""
        return self._index is not None and self._index is self._saved

    def start(self, pulse: Callable[[], int] | None = None) -> None:
        """Compute missing vectors in the background from now on.

        Args:
            pulse: counts answers of any kind, which take precedence over vectors.
        """
        if pulse is not None:
            self._vectorizer.pulse = pulse
        with self._lock:
            if not self._in_background:
                self._in_background = True
                self._start_thread()

    def close(self) -> None:
        """Stop computing vectors; those computed so far are saved."""
        with self._lock:
            self._in_background = False
            thread = self._thread
        self._stopping.set()
        if thread is not None:
            thread.join()
        self._stopping.clear()  # `start` may be called again

    def _save(self, index: SearchIndex, source: str | None) -> None:
        if self._files is None or source is None or index is self._saved:
            return
        if not len(index.catalog) or self._files.save(index, source, self._vectorizer):
            self._saved = index

    def _save_current(self) -> SearchIndex:
        """Save the index as it is now; outside the lock, so that answers do not wait for it."""
        with self._lock:
            # Together: the source of a later catalog must not be saved with this index.
            index, source = self._index, self._source
        if index is None:
            raise RuntimeError("There is no index to save yet.")
        self._save(index, source)
        return index

    def _refresh(self) -> None:
        with self._lock:
            if self._index is not None:
                self._index = self._index.refreshed()

    def _start_thread(self) -> None:
        """Start the background thread, if it is wanted and not running. Needs the lock."""
        if self._in_background and self._index is not None and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="pegboard-vectors", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        catalog: Catalog | None = None
        while True:
            with self._lock:
                index = self._index
                if self._stopping.is_set() or index is None or index.catalog is catalog:
                    # Under the lock: a catalog that arrives now starts a new thread.
                    self._thread = None
                    return
                catalog = index.catalog
            try:
                self._compute_missing(catalog)
                if not self._is_outdated(catalog):
                    self._save_current()
                    # By now a first start has read and embedded every tool.
                    self._vectorizer.release_memory()
            except Exception:
                logger.exception(
                    "Computing vectors failed; it is tried again when the catalog changes."
                )

    def _compute_missing(self, catalog: Catalog) -> None:
        """Compute one vector after another for this catalog, and use them from time to time."""
        computed: list[tuple[bytes, QuantizedVectors]] = []
        published_at = time.monotonic()
        for key, tool in [] if self._index is None else self._index.tools_without_vector():
            if self._stopping.is_set() or self._is_outdated(catalog):
                break
            self._vectorizer.wait_for_idle()
            passage = build_passage(read_searchable_fields(tool))
            computed.append((key, self._vectorizer.compute([passage])))
            if len(computed) >= BATCH or time.monotonic() - published_at > PUBLISH_INTERVAL:
                self._publish(computed)
                published_at = time.monotonic()
        self._publish(computed)

    def _is_outdated(self, catalog: Catalog) -> bool:
        return self._index is None or self._index.catalog is not catalog

    def _publish(self, computed: list[tuple[bytes, QuantizedVectors]]) -> None:
        """Save new vectors and use them in the index."""
        if computed:
            rows = np.concatenate([vector.rows for _, vector in computed])
            scales = np.concatenate([vector.scales for _, vector in computed])
            self._vectorizer.save([key for key, _ in computed], QuantizedVectors(rows, scales))
            computed.clear()
            self._refresh()


def open_vectorizer(folder: Path, embedder: Embedder | None = None) -> LocalVectorizer:
    """A vectorizer that saves in a folder; with the model in the package unless one is given."""
    return LocalVectorizer(folder / "vectors", embedder)


def open_index_files(folder: Path) -> IndexFiles:
    """The indexes that are saved in a folder."""
    return IndexFiles(folder / "indexes")


def open_live_index(folder: Path, embedder: Embedder | None = None) -> LiveIndex:
    """A live index that saves its vectors and its index in a folder."""
    return LiveIndex(open_vectorizer(folder, embedder), open_index_files(folder))
