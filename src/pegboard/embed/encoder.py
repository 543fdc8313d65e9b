"""A small transformer in numpy: six layers, 384 wide, distilled for requests and tools.

Weights are kept as eight-bit rows and widened to floats when the model is loaded: on one core a
product of floats beats anything numpy can do with bytes.

A query has a dozen tokens, and for such thin products OpenBLAS spends more time copying the weights
into its own order than multiplying. Below a million multiplications it skips the copy, so matrices
are cut into blocks of 32 columns: a query takes half the time, and a passage no more than before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pegboard.embed.numpy_runtime import release_mapped, single_thread
from pegboard.embed.wordpiece import WordPiece

Floats: TypeAlias = NDArray[np.float32]

LENGTH = 128
BLOCK = 32  # columns of a block, and the width of an attention head
_EPSILON = np.float32(1e-12)


class Linear:
    """A linear map in blocks of columns: (blocks, inputs, columns of a block)."""

    def __init__(self, blocks: Floats, scale: Floats, bias: Floats) -> None:
        self._blocks = blocks
        self._blocks *= scale.reshape(-1, 1, BLOCK)
        self._bias = bias.reshape(-1, 1, BLOCK)

    def blocks(self, x: Floats) -> Floats:
        """The outputs, block by block: (blocks, rows, columns of a block)."""
        y = np.matmul(x, self._blocks)
        y += self._bias
        return y

    def __call__(self, x: Floats) -> Floats:
        return joined(self.blocks(x))


def joined(blocks: Floats) -> Floats:
    """Blocks of columns as one matrix."""
    count, rows, columns = blocks.shape
    return blocks.transpose(1, 0, 2).reshape(rows, count * columns)


@dataclass(frozen=True, slots=True)
class Layer:
    """Attention, then two linear maps with a bend between them; each added and normalised."""

    attend: Linear
    mix: Linear
    inner: Linear
    outer: Linear
    norms: tuple[Floats, Floats]

    def __call__(self, x: Floats) -> Floats:
        y = self.mix(self._attention(x))
        y += x
        x = normalised(y, self.norms[0])
        y = self.outer(joined(gelu(self.inner.blocks(x))))
        y += x
        return normalised(y, self.norms[1])

    def _attention(self, x: Floats) -> Floats:
        """Each head is one block wide, so that its part needs no rearranging."""
        queries, keys, values = self.attend.blocks(x).reshape(3, -1, len(x), BLOCK)
        weights = queries @ keys.transpose(0, 2, 1)
        weights *= np.float32(BLOCK**-0.5)
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        return joined(weights @ values)


@dataclass(frozen=True, slots=True)
class Weights:
    """The encoder's numbers as they lie on disk."""

    words: NDArray[np.int8]
    layers: NDArray[np.int8]
    floats: Mapping[str, Floats]


class Encoder:
    """Texts to unit vectors by their meaning in context. An `Embedder`."""

    def __init__(self, name: str, tokenizer: WordPiece, weights: Weights) -> None:
        floats = weights.floats
        self.id = name
        self.dimensions = floats["head"].shape[1]
        self._tokenizer = tokenizer
        self._words = weights.words
        self._scale, self._widen = floats["word_scale"], floats["widen"]
        self._position, self._norm = floats["position"], floats["norm"]
        # All at once: one large array gets large pages, and is there in a tenth of the time.
        wide = weights.layers.astype(np.float32)
        self._layers = [_layer(row, floats, number) for number, row in enumerate(wide)]
        self._head = floats["head"]

    def rest(self) -> None:
        """Let go of the words that were read; the layers stay, since every query needs them."""
        release_mapped(self._words)

    def queries(self, texts: Sequence[str]) -> Floats:
        """One row for each query."""
        return self.documents(texts)

    def documents(self, texts: Sequence[str]) -> Floats:
        """One row for each passage."""
        rows = np.empty((len(texts), self.dimensions), np.float32)
        with single_thread():
            for row, text in zip(rows, texts, strict=True):
                row[:] = self._vector(self._tokenizer.numbers(text, LENGTH))
        return rows

    def _vector(self, tokens: list[int]) -> Floats:
        words = self._words[tokens].astype(np.float32)
        words *= self._scale[tokens][:, None]
        x = words @ self._widen
        x += self._position[: len(tokens)]
        x = normalised(x, self._norm)
        for layer in self._layers:
            x = layer(x)
        vector = x.mean(axis=0) @ self._head
        return vector / np.sqrt(vector @ vector)


def normalised(x: Floats, norm: Floats) -> Floats:
    """Rows with mean 0 and variance 1, then scaled and moved."""
    x -= x.mean(axis=-1, keepdims=True)
    variance = np.einsum("ij,ij->i", x, x)[:, None] / np.float32(x.shape[1])
    x /= np.sqrt(variance + _EPSILON)
    x *= norm[0]
    x += norm[1]
    return x


def gelu(x: Floats) -> Floats:
    """The bend, by its usual approximation with tanh."""
    y = x * x
    y *= np.float32(0.0356774)
    y += np.float32(0.7978846)
    y *= x
    np.tanh(y, out=y)
    y += np.float32(1)
    y *= x
    y *= np.float32(0.5)
    return y


def _layer(row: Floats, everything: Mapping[str, Floats], number: int) -> Layer:
    """A layer over its row of widened numbers, which become its own."""
    floats = {
        name.removeprefix(f"{number}."): value
        for name, value in everything.items()
        if name.startswith(f"{number}.")
    }
    width = everything["widen"].shape[1]
    maps: list[Linear] = []
    start = 0
    for name in ("attend", "mix", "inner", "outer"):
        bias, scale = floats[f"{name}_bias"], floats[f"{name}_scale"]
        inputs = width if name != "outer" else floats["inner_bias"].size
        stop = start + inputs * bias.size
        maps.append(Linear(row[start:stop].reshape(-1, inputs, BLOCK), scale, bias))
        start = stop
    attend, mix, inner, outer = maps
    return Layer(attend, mix, inner, outer, (floats["norm1"], floats["norm2"]))
