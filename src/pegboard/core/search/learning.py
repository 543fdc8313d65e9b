"""What search has learned from use: queries as vectors, and the tools that were called after them.

    query -> its vector -> the learned queries nearest to it -> their tools, each with a boost

A called tool gets a second vector this way: the query that led to it. A boost is large for a query
that was used before and zero for one about something else, so learned queries change the answers to
similar queries only. It grows with the times that a tool was called and decays with age, but has a
limit: a tool that fits clearly better still comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegboard.core.search.relevance import Floats, quantize

MAX_USES = 1_000
"""The newest ones are used; a user repeats far fewer queries than that."""
NEAR = np.float32(0.7)
"""The cosine below which two queries have nothing to do with each other."""
MAX_BOOST = 0.3
HALF_LIFE = 30 * 86_400.0
"""Seconds after which a call counts half."""


class Use(NamedTuple):
    """A query that was followed by a call to a tool: how often, and when last."""

    tool: str
    vector: bytes
    """The vector of the query, in eight bits."""
    at: float
    times: int = 1
    query: str = ""
    """Its text, if the operator chose to store it."""


def pack_vector(vector: Floats) -> bytes:
    """The vector of a query in eight bits. Its length is lost, which a cosine does not need."""
    return quantize(vector[None]).rows.tobytes()


def merge_uses(uses: Iterable[Use]) -> list[Use]:
    """The same uses, each once with the times of all its occurrences; the newest, oldest first."""
    found: dict[tuple[str, bytes], Use] = {}
    for use in uses:
        key = use.tool, use.vector
        before = found.pop(key, None)
        times = use.times + (before.times if before else 0)
        found[key] = use._replace(times=times, at=max(use.at, before.at if before else 0.0))
    return list(found.values())[-MAX_USES:]


class LearnedUses:
    """Uses as arrays. Those of another model, whose vectors have another width, are left out."""

    def __init__(self, uses: Sequence[Use], width: int) -> None:
        uses = [use for use in uses if len(use.vector) == width]
        self._tools = [use.tool for use in uses]
        rows = np.frombuffer(b"".join(use.vector for use in uses), np.int8)
        vectors = rows.reshape(len(uses), width).astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        self._vectors = vectors / np.maximum(lengths, np.float32(1))[:, None]
        self._times = np.array([use.times for use in uses], np.float32)
        self._at = np.array([use.at for use in uses], np.float64)

    def boosts(self, query: Floats, now: float) -> Mapping[str, float]:
        """By tool, how much the score of each rises for a query; most queries raise none."""
        nearness = (self._vectors @ query - NEAR) / (1 - NEAR)
        near: NDArray[np.intp] = np.flatnonzero(nearness > 0)
        ages = np.maximum(now - self._at[near], 0.0)
        evidence = nearness[near] * self._times[near] * np.exp2(-ages / HALF_LIFE)
        sums: dict[str, float] = {}
        for number, value in zip(near.tolist(), evidence.tolist(), strict=True):
            tool = self._tools[number]
            sums[tool] = sums.get(tool, 0.0) + value
        return {tool: MAX_BOOST * total / (total + 1) for tool, total in sums.items()}
