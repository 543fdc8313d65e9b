"""Meaning: vectors of tools, and the cosine between them and a query.

Every tool has a rough vector, computed from its words immediately. An exact one, from a model that
reads the whole passage, is computed later and used as soon as it is available. Rough vectors are
compared for the whole catalog; exact ones only for the best candidates, so that a large catalog
costs little more than a small one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]


class QueryVectors(NamedTuple):
    """A query in the space of rough vectors and, if a model is available, of exact ones."""

    rough: Floats
    exact: Floats | None


class QuantizedVectors(NamedTuple):
    """Exact vectors as bytes, one row each, and the scale of each row; 0 for a missing vector."""

    rows: NDArray[np.int8]
    scales: Floats


class Vectorizer(Protocol):
    """Turns texts into vectors."""

    def rough_vectors(self, passages: Sequence[str]) -> Floats:
        """One row per passage, immediately."""
        ...

    def exact_vectors(self, keys: Sequence[bytes]) -> QuantizedVectors:
        """The vectors already known for the passages with these keys; computes nothing."""
        ...

    def embed_query(self, query: str, english: str) -> QueryVectors:
        """The vectors of a query, given as it was written and in English."""
        ...


@dataclass(frozen=True, slots=True)
class ToolVectors:
    """The vectors of a catalog's tools, in its order."""

    rough: Floats
    exact: QuantizedVectors

    def rough_cosines(self, query: QueryVectors) -> Floats:
        """The cosine of the query and each tool, by rough vectors."""
        return self.rough @ query.rough

    def cosines(self, query: QueryVectors, rough: Floats, numbers: NDArray[np.intp]) -> Floats:
        """The cosine of the query and the numbered tools; the rough one if there is no exact."""
        near = rough[numbers]  # of tools whose exact vector is not computed yet
        if query.exact is None:
            return near
        scales = self.exact.scales[numbers]
        # Only the candidates are widened to floats, which takes four times their memory.
        cosines = (self.exact.rows[numbers].astype(np.float32) @ query.exact) * scales
        return np.where(scales > 0, cosines, near)

    def moved(
        self, old: NDArray[np.intp], new: NDArray[np.intp], size: int
    ) -> tuple[Floats, QuantizedVectors]:
        """Arrays for `size` tools, with the rows of the `old` numbers at the `new` ones."""
        rough = np.zeros((size, self.rough.shape[1]), np.float32)
        rows = np.zeros((size, self.exact.rows.shape[1]), np.int8)
        scales = np.zeros(size, np.float32)
        rough[new] = self.rough[old]
        rows[new] = self.exact.rows[old]
        scales[new] = self.exact.scales[old]
        return rough, QuantizedVectors(rows, scales)


def quantize(vectors: Floats) -> QuantizedVectors:
    """Unit vectors as bytes with a scale each: a quarter of the memory, no measurable loss."""
    scales = np.abs(vectors).max(axis=1, initial=1e-12) / np.float32(127)
    rows = np.rint(vectors / scales[:, None]).astype(np.int8)
    return QuantizedVectors(rows, scales.astype(np.float32))
