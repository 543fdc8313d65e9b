"""Meanings from models on this machine: rough ones at once, exact ones from disk or a model.

passage -> static model -> rough vector, in microseconds
        -> embedder     -> exact vector, in milliseconds, made behind the answers and kept
query   -> embedder     -> its place among both
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pegboard.core.search.vectors import QuantizedVectors, QueryVectors, quantize
from pegboard.embed import bundled_models
from pegboard.embed.numpy_runtime import release_free_memory
from pegboard.embed.vector_files import VectorFiles

if TYPE_CHECKING:
    from pegboard.ports import Embedder

logger = logging.getLogger(__name__)

REMEMBERED_QUERIES = 2_048
PATIENCE = 1.0  # seconds that making vectors waits for answers at most
QUIET = 0.05  # seconds without an answer after which the next is not expected at once
_LOOK_EVERY = 0.01


class LocalVectorizer:
    """The `Meanings` of a search index, and the maker of its exact vectors.

    Args:
        folder: where exact vectors are kept; `None` keeps them in memory.
        embedder: makes exact vectors and places queries; the model of the package unless given.
    """

    def __init__(self, folder: Path | None = None, embedder: Embedder | None = None) -> None:
        self._folder = folder
        self._given = embedder
        self._idle = threading.Event()
        self._idle.set()
        self._answering = 0
        self.pulse: Callable[[], int] = lambda: 0
        """Counts what else is answered in this process."""
        self._heard, self._heard_at = 0, 0.0
        self._lock = threading.Lock()
        self._embedded = lru_cache(maxsize=REMEMBERED_QUERIES)(self._embed)

    @cached_property
    def embedder(self) -> Embedder:
        """The model behind exact vectors, loaded now if it was not."""
        return self._given or bundled_models.encoder()

    @cached_property
    def _named(self) -> tuple[str, int]:
        """The name and the width of the model, which need not be loaded to tell."""
        if self._given is not None:
            return self._given.id, self._given.dimensions
        return bundled_models.ENCODER, bundled_models.DIMENSIONS

    @property
    def model(self) -> str:
        """Names what all vectors, rough and exact, are made with."""
        name, dimensions = self._named
        return f"{bundled_models.STATIC} {name} {dimensions}"

    @cached_property
    def _files(self) -> VectorFiles:
        return VectorFiles(self._folder, *self._named)

    def rough(self, passages: Sequence[str]) -> NDArray[np.float32]:
        """One row for each passage, at once."""
        return bundled_models.static().narrow(passages)

    def exact(self, keys: Sequence[bytes]) -> QuantizedVectors:
        """The vectors known by now of the passages with these keys."""
        return self._files.get(keys)

    def place(self, query: str) -> QueryVectors:
        """Where a query lies; the same query again costs next to nothing.

        When the embedder fails, word vectors stand in: an answer by words is better than none.
        """
        static = bundled_models.static()
        try:
            exact = self._embedded(query)
        except Exception:
            logger.exception("The embedder failed on a query; word vectors are used for it.")
            return QueryVectors(static.view(static.queries([query])[0]), None)
        nearby = exact if self._given is None else static.queries([query])[0]
        return QueryVectors(static.view(nearby), exact)

    def make(self, passages: Sequence[str]) -> QuantizedVectors:
        """Exact vectors of these passages, made now."""
        return quantize(np.asarray(self.embedder.documents(passages), np.float32))

    def keep(self, keys: Sequence[bytes], vectors: QuantizedVectors) -> None:
        """Keep exact vectors for every index, process and day."""
        self._files.add(keys, vectors)

    def rest(self) -> None:
        """Give back what was needed to make vectors and is not to answer queries."""
        self._files.rest()
        bundled_models.release_memory()
        release_free_memory()

    def give_way(self) -> None:
        """Wait while answers are being made, one after the other; a call that takes long is none.

        Even one thread beside the answers makes each of them several times slower.
        """
        latest = time.monotonic() + PATIENCE
        while (now := time.monotonic()) < latest:
            if (heard := self.pulse()) != self._heard:
                self._heard, self._heard_at = heard, now
            if self._idle.is_set() and now - self._heard_at >= QUIET:
                return
            time.sleep(_LOOK_EVERY)

    def _embed(self, query: str) -> NDArray[np.float32]:
        with self._in_front():
            return np.asarray(self.embedder.queries([query]), np.float32).reshape(
                self.embedder.dimensions
            )

    @contextmanager
    def _in_front(self) -> Generator[None]:
        with self._lock:
            self._answering += 1
            self._idle.clear()
        try:
            yield
        finally:
            with self._lock:
                self._answering -= 1
                if not self._answering:
                    self._idle.set()
