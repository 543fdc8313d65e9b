"""Vectors from models on this machine: rough ones immediately, exact ones from disk or a model.

    passage -> static model -> rough vector, in microseconds
            -> embedder     -> exact vector, in milliseconds, in the background and saved
    query   -> embedder     -> its vectors in both spaces

Computing vectors gives way to answering: a second busy thread makes every answer several times
slower, because both compete for the interpreter lock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pegboard.core.search.relevance import QuantizedVectors, QueryVectors, quantize
from pegboard.embed import bundled_models
from pegboard.embed.disk_storage import VectorFiles
from pegboard.embed.encoder import release_free_memory

if TYPE_CHECKING:
    from pegboard.ports import Embedder

logger = logging.getLogger(__name__)

CACHED_QUERIES = 2_048
PATIENCE = 1.0  # seconds that computing vectors waits for answers at most
QUIET = 0.05  # seconds without an answer after which the process counts as idle
_POLL_INTERVAL = 0.01


class LocalVectorizer:
    """The `Vectorizer` of a search index; also computes its exact vectors.

    Args:
        folder: where exact vectors are saved; `None` keeps them in memory.
        embedder: computes exact vectors and embeds queries; by default the model in the package.
    """

    def __init__(self, folder: Path | None = None, embedder: Embedder | None = None) -> None:
        self._folder = folder
        self._given = embedder
        self.pulse: Callable[[], int] = lambda: 0
        """Counts everything else that is answered in this process."""
        self._last_pulse, self._last_pulse_at = 0, 0.0
        self._answering = 0
        self._lock = threading.Lock()
        self._cached_embed = lru_cache(maxsize=CACHED_QUERIES)(self._embed)

    @cached_property
    def embedder(self) -> Embedder:
        """The model of exact vectors, loaded on first use."""
        return self._given or bundled_models.encoder()

    @cached_property
    def _name_and_width(self) -> tuple[str, int]:
        # Known without loading the model, so that a start that computes nothing loads nothing.
        if self._given is not None:
            return self._given.id, self._given.dimensions
        return bundled_models.ENCODER, bundled_models.DIMENSIONS

    @property
    def model(self) -> str:
        """Identifies the models of all vectors, rough and exact."""
        name, dimensions = self._name_and_width
        return f"{bundled_models.STATIC} {name} {dimensions}"

    @cached_property
    def _files(self) -> VectorFiles:
        return VectorFiles(self._folder, *self._name_and_width)

    def rough_vectors(self, passages: Sequence[str]) -> NDArray[np.float32]:
        """One row per passage, immediately."""
        return bundled_models.static().narrow_vectors(passages)

    def exact_vectors(self, keys: Sequence[bytes]) -> QuantizedVectors:
        """The vectors already known for the passages with these keys."""
        return self._files.get(keys)

    def embed_query(self, query: str, english: str) -> QueryVectors:
        """The vectors of a query, cached.

        The models of the package read English only; somebody else's embedder gets the query as it
        was written. If it fails, word vectors are used: an answer by words is better than none.
        """
        static = bundled_models.static()
        try:
            exact = self._cached_embed(english if self._given is None else query)
        except Exception:
            logger.exception("The embedder failed on a query; word vectors are used instead.")
            return QueryVectors(static.narrow_query(static.queries([english])[0]), None)
        # Word vectors are mapped into the space of our own encoder, not of somebody else's.
        comparable = exact if self._given is None else static.queries([english])[0]
        return QueryVectors(static.narrow_query(comparable), exact)

    def compute(self, passages: Sequence[str]) -> QuantizedVectors:
        """Exact vectors of these passages, computed now."""
        return quantize(np.asarray(self.embedder.documents(passages), np.float32))

    def save(self, keys: Sequence[bytes], vectors: QuantizedVectors) -> None:
        """Save exact vectors, for every index and process, and for later starts."""
        self._files.add(keys, vectors)

    def release_memory(self) -> None:
        """Release what was needed to compute vectors and is not needed to answer queries."""
        self._files.release_memory()
        bundled_models.release_memory()
        release_free_memory()

    def wait_for_idle(self) -> None:
        """Wait while requests are being answered, at most `PATIENCE` seconds.

        A call that takes long counts when it is answered, not while it runs.
        """
        latest = time.monotonic() + PATIENCE
        while (now := time.monotonic()) < latest:
            if (pulse := self.pulse()) != self._last_pulse:
                self._last_pulse, self._last_pulse_at = pulse, now
            if not self._answering and now - self._last_pulse_at >= QUIET:
                return
            time.sleep(_POLL_INTERVAL)

    def _embed(self, query: str) -> NDArray[np.float32]:
        with self._lock:  # queries are embedded in several threads
            self._answering += 1
        try:
            rows = np.asarray(self.embedder.queries([query]), np.float32)
            return rows.reshape(self.embedder.dimensions)
        finally:
            with self._lock:
                self._answering -= 1
