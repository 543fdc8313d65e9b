"""Word vectors without context: less understanding, a hundred times the speed.

A text is the mean of its words' vectors, 128 wide. A linear map brings it into the space of the
encoder, so that a tool whose passage was not encoded yet can be compared with a query that was. The
map is taken to the query's side: then tools need only the narrow vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pegboard.embed.heap import let_go
from pegboard.embed.single_thread import single_thread
from pegboard.embed.tokenizer import WordPiece

LENGTH = 128


class Static:
    """Texts to vectors, word by word. An `Embedder`."""

    def __init__(
        self,
        name: str,
        tokenizer: WordPiece,
        words: NDArray[np.int8],
        scale: NDArray[np.float32],
        head: NDArray[np.float32],
    ) -> None:
        self.id = name
        self.dimensions = head.shape[1]
        self._tokenizer = tokenizer
        self._words = words
        self._scale = scale
        self._head = head

    def rest(self) -> None:
        """Let go of the words that were read: passages have thousands, and a query a dozen."""
        let_go(self._words)

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector for each query."""
        return self.documents(texts)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector for each passage."""
        return self.narrow(texts) @ self._head

    @cached_property
    def _spread(self) -> NDArray[np.float32]:
        with single_thread():
            return self._head @ self._head.T

    def narrow(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One narrow vector for each passage: its product with a `view` is a cosine."""
        sums = np.empty((len(texts), self._words.shape[1]), np.float32)
        for row, text in zip(sums, texts, strict=True):
            tokens = self._tokenizer.numbers(text, LENGTH)
            row[:] = self._scale[tokens] @ self._words[tokens].astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", sums @ self._spread, sums))
        sums /= np.maximum(lengths, np.float32(1e-9))[:, None]
        return sums

    def view(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """A unit vector of the encoder's space, or of this one, as narrow vectors see it."""
        return self._head @ vector
