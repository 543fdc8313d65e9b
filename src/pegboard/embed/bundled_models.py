"""The models inside the package, each loaded once, on first use.

The encoder (`encoder.py`) reads a text in context, in milliseconds. The static model has one vector
per word and no context: less accurate, a hundred times faster. A text is the mean of the vectors of
its words, 128 wide. A linear map takes it into the space of the encoder, so that a tool that has
not been encoded yet can be compared with a query that has. The map is applied to the query, so
that tools need only the narrow vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pegboard.embed.encoder import (
    MAX_TOKENS,
    Encoder,
    Weights,
    WordPiece,
    release_mapped,
    single_thread,
)


class StaticModel:
    """Texts to vectors, word by word, without context. An `Embedder`."""

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

    def release_memory(self) -> None:
        """Release the word vectors that were read: passages need thousands, a query a dozen."""
        release_mapped(self._words)

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector per query."""
        return self.documents(texts)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector per passage."""
        return self.narrow_vectors(texts) @ self._head

    @cached_property
    def _spread(self) -> NDArray[np.float32]:
        with single_thread():
            return self._head @ self._head.T

    def narrow_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One narrow vector per passage: its product with a narrowed query is a cosine."""
        sums = np.empty((len(texts), self._words.shape[1]), np.float32)
        for row, text in zip(sums, texts, strict=True):
            tokens = self._tokenizer.encode(text, MAX_TOKENS)
            row[:] = self._scale[tokens] @ self._words[tokens].astype(np.float32)
        # The length after the map, without computing the map: |xH| = sqrt(x (H Hᵀ) xᵀ).
        lengths = np.sqrt(np.einsum("ij,ij->i", sums @ self._spread, sums))
        sums /= np.maximum(lengths, np.float32(1e-9))[:, None]
        return sums

    def narrow_query(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """A unit vector in the space of the encoder, mapped to where narrow vectors are."""
        return self._head @ vector


WEIGHTS = Path(__file__).parent / "weights"
ENCODER = "pegboard-encoder-5"
STATIC = "pegboard-static-5"
DIMENSIONS = 384
# Which models `release_memory` concerns: asking `encoder()` would load one that is not needed.
_loaded: list[Encoder | StaticModel] = []
M = TypeVar("M", Encoder, StaticModel)


@cache
def tokenizer(folder: Path = WEIGHTS) -> WordPiece:
    """The tokenizer that both models share."""
    return WordPiece((folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n"))


@cache
def encoder(folder: Path = WEIGHTS) -> Encoder:
    """The transformer: the best answers, a few milliseconds per text."""
    with np.load(folder / "encoder_floats.npz") as floats:
        weights = Weights(
            # Mapped: a query needs a dozen of its thirty thousand rows.
            words=np.load(folder / "encoder_words.npy", mmap_mode="r"),
            layers=np.load(folder / "encoder_layers.npy", mmap_mode="r"),
            floats=dict(floats),
        )
    return _register(Encoder(ENCODER, tokenizer(folder), weights))


@cache
def static(folder: Path = WEIGHTS) -> StaticModel:
    """The word vectors: good answers immediately."""
    words = np.load(folder / "static_words.npy", mmap_mode="r")
    with np.load(folder / "static_floats.npz") as parts:
        scale, head = parts["word_scale"], parts["head"]
    return _register(StaticModel(STATIC, tokenizer(folder), words, scale, head))


def _register(model: M) -> M:
    _loaded.append(model)
    return model


def release_memory() -> None:
    """Release what the loaded models hold beyond what a query needs."""
    for model in _loaded:
        model.release_memory()
