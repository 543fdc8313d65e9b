"""Token budgets: whether a text fits, and what it costs where counting is not worth its price.

Decisions are made by counting with a real tokenizer (`pegboard.tokens`). Two things make that
cheap: the length of most texts already gives the answer, and numbers that are only displayed may be
estimates, which say so by their type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Count: TypeAlias = Callable[[str], int]
"""Counts the tokens of a text, with the tokenizer that the composition root chose."""

LONGEST_TOKEN = 128
"""Bytes of the longest entry in the vocabularies that we count with (a run of spaces)."""

BYTES_PER_TOKEN = 3.5
"""Roughly, for compact JSON and for English."""


class Estimate(int):
    """A number of tokens that was not counted: the text is too long, or no tokenizer is loaded."""


def estimate_tokens(text: str) -> Estimate:
    """About how many tokens a text has; loads no tokenizer."""
    return Estimate(round(utf8_size(text) / BYTES_PER_TOKEN))


def utf8_size(text: str) -> int:
    """The number of bytes of a text; an unpaired surrogate, which has none, counts as one."""
    # `isascii` is a flag of the string; encoding would copy it.
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def fits_token_budget(
    text: str, budget: int, count: Count, *, longest: int = LONGEST_TOKEN
) -> bool:
    """Whether the text has at most `budget` tokens.

    A byte-level tokenizer produces at most one token per byte, and none longer than `longest`. Most
    results are so small, and floods so large, that the number of bytes alone gives the answer.
    """
    size = utf8_size(text)  # far cheaper than counting, also for long texts
    if size <= budget:
        return True
    if size > budget * longest:
        return False
    return count(text) <= budget
