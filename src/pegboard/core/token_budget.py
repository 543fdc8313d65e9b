"""Token budgets: whether a text fits, counting only when its length does not already tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Count: TypeAlias = Callable[[str], int]
"""The number of tokens of a text, by whichever tokenizer the composition root chose."""


class Estimate(int):
    """A number of tokens that nobody has counted, of a text that was too long or came too soon."""


LONGEST_TOKEN = 128
"""Bytes of the longest entry in the vocabularies we count with (a run of spaces)."""


def utf8_size(text: str) -> int:
    """The bytes of a text; an unpaired surrogate, which has none, counts as one character."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def within(text: str, budget: int, count: Count, *, longest: int = LONGEST_TOKEN) -> bool:
    """Whether the text has at most `budget` tokens.

    A byte-level tokenizer makes at most one token of each byte, and none longer than `longest`:
    most results are so small, and floods so large, that the bytes alone give the answer.
    """
    size = utf8_size(text)
    if size <= budget:
        return True
    if size > budget * longest:
        return False
    return count(text) <= budget
