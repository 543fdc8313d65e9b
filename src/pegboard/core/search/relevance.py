"""How much to believe words and how much meaning.

The lexical score is its own confidence: it is the share of the query that the tool's words account
for, unknown words included, so in a catalogue's own wording it is large and in everyday wording
nearly nothing. Adding a fixed part of it to the cosine therefore weighs each query by itself.

The numbers were chosen on public sets (docs/decisions/search.md has the figures); around the values
here the results are flat.
"""

from __future__ import annotations

import math

import numpy as np

from pegboard.core.search.bm25 import LexicalScores
from pegboard.core.search.vectors import Floats, QueryVectors, ToolVectors

WORDS_WEIGHT = np.float32(0.35)  # beside an exact cosine
WORDS_WEIGHT_ROUGH = np.float32(0.6)
ROUGH_SCALE = np.float32(1.2)  # rough cosines are smaller than exact ones, by 14 to 29 %
FULL_NAME_BONUS = np.float32(0.3)  # every word of the query is in the tool's name
CANDIDATES = 2_000

RELEVANCE_FLOOR = 0.29  # a best score below it means that nothing fits
LEXICAL_FLOOR = 0.08
TAIL_RATIO = 0.3  # matches with a smaller share of the best score are noise


def display_score(score: float) -> float:
    """A score as people see it: below 1, and never the same for two that differ.

    Up to one half it is what it is. Above, where words and meaning add up to more than 1, it nears
    1 and does not reach it: 1 is for a tool that was named.
    """
    return round(score if score <= 0.5 else 1 - 0.5 * math.exp(1 - 2 * score), 4)


def fuse_scores(
    lexical: LexicalScores, vectors: ToolVectors, place: QueryVectors, visible: np.ndarray
) -> Floats:
    """The score of each tool; 0 for tools that are not visible or clearly out of question."""
    rough = vectors.rough_nearness(place)
    numbers = np.flatnonzero(visible)
    if len(numbers) > CANDIDATES:
        guess = rough[numbers] + WORDS_WEIGHT_ROUGH * lexical.scores[numbers]
        best = np.argpartition(guess, len(numbers) - CANDIDATES)[-CANDIDATES:]
        numbers = np.sort(numbers[best])
    near = vectors.nearness(place, rough * ROUGH_SCALE, numbers)
    scores = np.zeros(len(lexical.scores), np.float32)
    scores[numbers] = near + WORDS_WEIGHT * lexical.scores[numbers]
    scores[numbers] += FULL_NAME_BONUS * lexical.named[numbers]
    return np.maximum(scores, 0)
