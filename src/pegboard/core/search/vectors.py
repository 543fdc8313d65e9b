"""Meaning: vectors of tools, and how near a query lies to them.

Every tool has a rough vector, made from its words at once. An exact one, from a model that reads
the whole passage, comes later and is used as soon as it is there. Rough vectors are compared for
the whole catalogue; exact ones only for the tools that are still in question, so that a large
catalogue costs little more than a small one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]


class QueryVectors(NamedTuple):
    """Where a query lies: in the space of rough vectors and, if a model is there, of exact ones."""

    rough: Floats
    exact: Floats | None


class QuantizedVectors(NamedTuple):
    """Exact vectors as bytes, one row each, and the scale of each row; 0 where none is known."""

    rows: NDArray[np.int8]
    scales: Floats


class Vectorizer(Protocol):
    """Gives texts their vectors."""

    def rough(self, passages: Sequence[str]) -> Floats:
        """One row for each passage, at once."""
        ...

    def exact(self, keys: Sequence[bytes]) -> QuantizedVectors:
        """The vectors known by now of the passages with these keys; computes nothing."""
        ...

    def place(self, query: str) -> QueryVectors:
        """Where a query lies."""
        ...


@dataclass(frozen=True, slots=True)
class ToolVectors:
    """The vectors of a catalogue's tools, in its order."""

    rough: Floats
    exact: QuantizedVectors

    def rough_nearness(self, place: QueryVectors) -> Floats:
        """The cosine of the query and each tool, by rough vectors."""
        return self.rough @ place.rough

    def nearness(self, place: QueryVectors, rough: Floats, numbers: NDArray[np.intp]) -> Floats:
        """The cosine of the query and the numbered tools; by rough vectors where need be."""
        near = rough[numbers]
        if place.exact is None:
            return near
        scales = self.exact.scales[numbers]
        cosines = (self.exact.rows[numbers].astype(np.float32) @ place.exact) * scales
        return np.where(scales > 0, cosines, near)

    def moved(
        self, kept: NDArray[np.intp], at: NDArray[np.intp], size: int
    ) -> tuple[Floats, QuantizedVectors]:
        """Room for `size` tools, with the rows of the kept ones at their new numbers."""
        rough = np.zeros((size, self.rough.shape[1]), np.float32)
        rows = np.zeros((size, self.exact.rows.shape[1]), np.int8)
        scales = np.zeros(size, np.float32)
        rough[at] = self.rough[kept]
        rows[at] = self.exact.rows[kept]
        scales[at] = self.exact.scales[kept]
        return rough, QuantizedVectors(rows, scales)


def quantize(vectors: Floats) -> QuantizedVectors:
    """Unit vectors as bytes with a scale each: a quarter of the room, no measurable loss."""
    scales = np.abs(vectors).max(axis=1, initial=1e-12) / np.float32(127)
    return QuantizedVectors(
        np.rint(vectors / scales[:, None]).astype(np.int8), scales.astype(np.float32)
    )
