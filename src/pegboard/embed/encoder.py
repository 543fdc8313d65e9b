"""A small transformer in numpy, and its tokenizer: six layers, 384 wide, trained for finding tools.

    text -> WordPiece -> token ids -> six layers of attention -> mean -> unit vector

Weights are stored as eight-bit rows and widened to floats when the model is loaded: on one core a
product of floats beats anything numpy can do with bytes.

A query has a dozen tokens, and for such thin products OpenBLAS spends more time copying the weights
into its own order than multiplying. Below a million multiplications it skips the copy, so matrices
are cut into blocks of 32 columns: a query takes half the time, and a passage no more than before.

The tokenizer is WordPiece, as BERT's uncased models were trained with it. Plain Python with a cache
of words is faster here than a compiled tokenizer: a catalog and its queries use the same few
thousand words again and again.

Matrix products run on one core: of our sizes, they gain little from more cores and lose much when
these are busy, because the threads of the library wait for one another, and answers wait for the
vectors computed in the background. Memory is returned to the system after computing vectors, which
takes far more than storing them: glibc retains what was freed, since every thread allocates in its
own arena, and only the end of an arena is returned without an explicit request.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import sys
import unicodedata
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Floats: TypeAlias = NDArray[np.float32]

MAX_TOKENS = 128
BLOCK = 32  # columns of a block, and the width of an attention head
_EPSILON = np.float32(1e-12)
PAD, UNKNOWN, START, END = 0, 1, 2, 3
_MAX_WORD_LENGTH = 100
_MAX_CACHED_WORDS = 50_000
_ASCII = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
_ASCII_HIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


# --- threads and memory ---------------------------------------------------------------------------


@contextmanager
def single_thread() -> Generator[None]:
    """Inside, numpy's matrix products use the calling thread alone."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # searching the loaded libraries takes milliseconds


def release_free_memory() -> None:
    """Return the free pages of all arenas to the system; takes milliseconds per arena."""
    _trim()(0)


def release_mapped(array: NDArray[Any]) -> None:
    """Drop the pages of a memory-mapped array that were read: its file still has them."""
    mapped = getattr(array, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        with suppress(OSError):  # pages that are locked in memory cannot be dropped
            mapped.madvise(mmap.MADV_DONTNEED)


@cache
def _trim() -> Callable[[int], object]:
    """`malloc_trim` of glibc; a function that does nothing on other systems."""
    if sys.platform != "linux":
        return lambda _: None
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library, such as musl
        return lambda _: None


# --- the tokenizer --------------------------------------------------------------------------------


class WordPiece:
    """A vocabulary, and the token ids that it gives a text."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._ids = {token: number for number, token in enumerate(vocabulary)}
        self._cache: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str, limit: int) -> list[int]:
        """Token ids between the markers of start and end, truncated to `limit`."""
        found = [START]
        for word in _split_words(text):
            found += self._cache.get(word) or self._encode_word(word)
            if len(found) >= limit:
                break
        del found[limit - 1 :]
        found.append(END)
        return found

    def _encode_word(self, word: str) -> tuple[int, ...]:
        """The longest known pieces from left to right; a word without them is one unknown token."""
        pieces: list[int] = []
        start = 0
        while start < len(word) <= _MAX_WORD_LENGTH:
            prefix = "##" if start else ""  # how the vocabulary marks the continuation of a word
            for stop in range(len(word), start, -1):
                number = self._ids.get(prefix + word[start:stop])
                if number is not None:
                    break
            else:
                pieces = [UNKNOWN]
                break
            pieces.append(number)
            start = stop
        ids = tuple(pieces) if len(word) <= _MAX_WORD_LENGTH else (UNKNOWN,)
        # Full means full: evicting would cost more than it saves on words that never come back.
        if len(self._cache) < _MAX_CACHED_WORDS:
            self._cache[word] = ids
        return ids


def _split_words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII.findall(_ASCII_HIDDEN.sub("", text).lower())
    spaced = "".join(map(_clean_character, text))
    decomposed = unicodedata.normalize("NFD", spaced)
    return "".join(map(_separate_character, decomposed)).split()


# Character by character, as BERT does it; a catalog has few different ones.
@lru_cache(maxsize=8192)
def _clean_character(char: str) -> str:
    """Nothing for control characters, and spaces around ideographs."""
    if char in "\t\n\r":
        return " "
    category = unicodedata.category(char)
    if char == "\ufffd" or category in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if category == "Zs" or char.isspace():
        return " "
    return f" {char} " if any(a <= ord(char) <= b for a, b in _IDEOGRAPHS) else char


@lru_cache(maxsize=8192)
def _separate_character(char: str) -> str:
    """Lower case, without accents, and with spaces around punctuation."""
    category = unicodedata.category(char)
    if category == "Mn":
        return ""
    if char.isascii():
        is_punctuation = not char.isalnum() and not char.isspace()
    else:
        is_punctuation = category.startswith("P")
    return f" {char} " if is_punctuation else char.lower()


# --- the transformer ------------------------------------------------------------------------------


class Linear:
    """A linear map in blocks of columns: (blocks, inputs, columns of a block)."""

    def __init__(self, blocks: Floats, scale: Floats, bias: Floats) -> None:
        self._blocks = blocks  # scaled in place: a copy would double the memory of the model
        self._blocks *= scale.reshape(-1, 1, BLOCK)
        self._bias = bias.reshape(-1, 1, BLOCK)

    def blocks(self, x: Floats) -> Floats:
        """The outputs, block by block: (blocks, rows, columns of a block)."""
        y = np.matmul(x, self._blocks)
        y += self._bias
        return y

    def __call__(self, x: Floats) -> Floats:
        return join_blocks(self.blocks(x))


def join_blocks(blocks: Floats) -> Floats:
    """Blocks of columns as one matrix."""
    count, rows, columns = blocks.shape
    return blocks.transpose(1, 0, 2).reshape(rows, count * columns)


@dataclass(frozen=True, slots=True)
class Layer:
    """Attention, then two linear maps with a GELU between them; each added and normalized."""

    attend: Linear
    mix: Linear
    inner: Linear
    outer: Linear
    norms: tuple[Floats, Floats]

    @classmethod
    def build(cls, row: Floats, everything: Mapping[str, Floats], number: int) -> Layer:
        """A layer on its row of widened numbers, without copying them."""
        prefix = f"{number}."
        floats = {
            name.removeprefix(prefix): value
            for name, value in everything.items()
            if name.startswith(prefix)
        }
        width = everything["widen"].shape[1]
        maps: list[Linear] = []
        start = 0
        for name in ("attend", "mix", "inner", "outer"):  # the order in which they are on disk
            bias, scale = floats[f"{name}_bias"], floats[f"{name}_scale"]
            inputs = width if name != "outer" else floats["inner_bias"].size
            stop = start + inputs * bias.size
            maps.append(Linear(row[start:stop].reshape(-1, inputs, BLOCK), scale, bias))
            start = stop
        attend, mix, inner, outer = maps
        return cls(attend, mix, inner, outer, (floats["norm1"], floats["norm2"]))

    def __call__(self, x: Floats) -> Floats:
        # Each head is one block wide, so its part of the matrix needs no rearranging.
        queries, keys, values = self.attend.blocks(x).reshape(3, -1, len(x), BLOCK)
        weights = queries @ keys.transpose(0, 2, 1)
        weights *= np.float32(BLOCK**-0.5)
        weights -= weights.max(axis=-1, keepdims=True)  # so that exp cannot overflow
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        y = self.mix(join_blocks(weights @ values))
        y += x
        x = normalize(y, self.norms[0])
        y = self.outer(join_blocks(gelu(self.inner.blocks(x))))
        y += x
        return normalize(y, self.norms[1])


@dataclass(frozen=True, slots=True)
class Weights:
    """The numbers of the encoder as they are on disk."""

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
        # Widened all at once: one large array gets huge pages, and is ready in a tenth of the time.
        wide = weights.layers.astype(np.float32)
        self._layers = [Layer.build(row, floats, number) for number, row in enumerate(wide)]
        self._head = floats["head"]

    def release_memory(self) -> None:
        """Release the word vectors that were read; the layers stay: every query needs them."""
        release_mapped(self._words)

    def queries(self, texts: Sequence[str]) -> Floats:
        """One row per query."""
        return self.documents(texts)

    def documents(self, texts: Sequence[str]) -> Floats:
        """One row per passage."""
        rows = np.empty((len(texts), self.dimensions), np.float32)
        with single_thread():
            # One by one: a batch would need padding and masks, and one core gains nothing by it.
            for row, text in zip(rows, texts, strict=True):
                tokens = self._tokenizer.encode(text, MAX_TOKENS)
                words = self._words[tokens].astype(np.float32)
                words *= self._scale[tokens][:, None]
                x = words @ self._widen
                x += self._position[: len(tokens)]
                x = normalize(x, self._norm)
                for layer in self._layers:
                    x = layer(x)
                vector = x.mean(axis=0) @ self._head
                row[:] = vector / np.sqrt(vector @ vector)
        return rows


def normalize(x: Floats, norm: Floats) -> Floats:
    """Layer normalization, in place: rows with mean 0 and variance 1, then scaled and shifted."""
    x -= x.mean(axis=-1, keepdims=True)
    # The mean is 0 by now; `x.var` would compute it again.
    variance = np.einsum("ij,ij->i", x, x)[:, None] / np.float32(x.shape[1])
    x /= np.sqrt(variance + _EPSILON)
    x *= norm[0]
    x += norm[1]
    return x


def gelu(x: Floats) -> Floats:
    """The activation function, by its usual approximation with tanh."""
    # 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), in place: the array is large.
    y = x * x
    y *= np.float32(0.0356774)
    y += np.float32(0.7978846)
    y *= x
    np.tanh(y, out=y)
    y += np.float32(1)
    y *= x
    y *= np.float32(0.5)
    return y
