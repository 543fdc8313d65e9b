"""WordPiece: text to token numbers, as BERT's uncased models were trained on it.

Plain Python with a memory of words is faster here than a compiled tokenizer: a catalogue and its
queries use the same few thousand words again and again.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

PAD, UNKNOWN, START, END = 0, 1, 2, 3
_LONGEST_WORD = 100
_REMEMBERED = 50_000
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


class WordPiece:
    """A vocabulary, and what it makes of text."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._numbers = {token: number for number, token in enumerate(vocabulary)}
        self._known: dict[str, tuple[int, ...]] = {}

    def numbers(self, text: str, limit: int) -> list[int]:
        """Token numbers with the marks of start and end, cut to `limit`."""
        found = [START]
        for word in _words(text):
            found += self._known.get(word) or self._pieces(word)
            if len(found) >= limit:
                break
        del found[limit - 1 :]
        found.append(END)
        return found

    def _pieces(self, word: str) -> tuple[int, ...]:
        pieces = tuple(self._split(word))
        if len(self._known) < _REMEMBERED:
            self._known[word] = pieces
        return pieces

    def _split(self, word: str) -> Sequence[int]:
        """The longest known pieces from left to right; a word that has none is unknown whole."""
        found: list[int] = []
        start, numbers = 0, self._numbers
        if len(word) > _LONGEST_WORD:
            return (UNKNOWN,)
        while start < len(word):
            mark = "##" if start else ""
            for stop in range(len(word), start, -1):
                number = numbers.get(mark + word[start:stop])
                if number is not None:
                    break
            else:
                return (UNKNOWN,)
            found.append(number)
            start = stop
        return found


def _words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII.findall(_ASCII_HIDDEN.sub("", text).lower())
    spaced = "".join(map(_prepared, text))
    plain = "".join(c for c in unicodedata.normalize("NFD", spaced) if not _is_mark(c))
    return "".join(map(_cased, plain)).split()


@lru_cache(maxsize=8192)
def _prepared(char: str) -> str:
    """A character cleaned: nothing for control characters, spaces around ideographs."""
    if char in "\t\n\r":
        return " "
    category = unicodedata.category(char)
    if char == "\ufffd" or category in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if category == "Zs" or char.isspace():
        return " "
    return f" {char} " if any(a <= ord(char) <= b for a, b in _IDEOGRAPHS) else char


@lru_cache(maxsize=8192)
def _cased(char: str) -> str:
    """A character in lower case, with spaces around punctuation."""
    return f" {char} " if _is_punctuation(char) else char.lower()


@lru_cache(maxsize=8192)
def _is_mark(char: str) -> bool:
    return unicodedata.category(char) == "Mn"


def _is_punctuation(char: str) -> bool:
    if char.isascii():
        return not char.isalnum() and not char.isspace()
    return unicodedata.category(char).startswith("P")
