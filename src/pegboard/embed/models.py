"""The models inside the package, each loaded once, when first asked for."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from pegboard.embed.encoder import Encoder, Weights
from pegboard.embed.static import Static
from pegboard.embed.tokenizer import WordPiece

WEIGHTS = Path(__file__).parent / "weights"
ENCODER = "pegboard-encoder-3"
STATIC = "pegboard-static-3"
DIMENSIONS = 384
_loaded: list[Encoder | Static] = []
M = TypeVar("M", Encoder, Static)


@cache
def tokenizer(folder: Path = WEIGHTS) -> WordPiece:
    """The vocabulary that both models share."""
    return WordPiece((folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n"))


@cache
def encoder(folder: Path = WEIGHTS) -> Encoder:
    """The transformer: best answers, some milliseconds for each text."""
    with np.load(folder / "encoder_floats.npz") as floats:
        weights = Weights(
            words=np.load(folder / "encoder_words.npy", mmap_mode="r"),
            layers=np.load(folder / "encoder_layers.npy", mmap_mode="r"),
            floats=dict(floats),
        )
    return _noted(Encoder(ENCODER, tokenizer(folder), weights))


@cache
def static(folder: Path = WEIGHTS) -> Static:
    """The word vectors: good answers at once."""
    words = np.load(folder / "static_words.npy", mmap_mode="r")
    with np.load(folder / "static_floats.npz") as parts:
        scale, head = parts["word_scale"], parts["head"]
    return _noted(Static(STATIC, tokenizer(folder), words, scale, head))


def _noted(model: M) -> M:
    _loaded.append(model)
    return model


def rest() -> None:
    """Have the models that are loaded hold no more than a query needs."""
    for model in _loaded:
        model.rest()
