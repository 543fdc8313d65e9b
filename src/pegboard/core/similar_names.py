"""Similar names, for the suggestions of an error: `serch_issues` was probably `search_issues`.

Two names are similar by their letters (the longest common subsequence, so that a missing, an added
or a swapped letter costs little), by their words in any order, or because they share words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

NEAREST_LIMIT = 5
MAX_NAME_LENGTH = 1_000
"""Characters of a name that is looked up: no tool has a longer one, and comparing is slow."""
_MAX_COMPARED = 200
"""Characters of a name that are compared: callers choose names, and servers choose known ones."""
_MAX_WORDS = 20
_MANY = 1_000
"""Of more names than this, only those with enough letters in common are compared."""
_MIN_SIMILARITY = 0.6
_TYPO_SIMILARITY = 0.8
_SHARED_WORDS = 0.85
"""The similarity of two names if one has all the words of the other."""


def nearest(
    name: str, known: Iterable[str] | Mapping[str, str], limit: int = NEAREST_LIMIT
) -> list[str]:
    """The known words most similar to `name`; of a mapping, values are compared, keys returned."""
    if len(name) > MAX_NAME_LENGTH:
        return []
    choices = known if isinstance(known, Mapping) else {word: word for word in known}
    wanted = _words(name)
    if len(choices) > _MANY:
        # A wrong letter in a word leaves one of its halves as it is. Looking for halves is so much
        # faster than comparing that a hundred thousand names do not block the process.
        halves = [half for w in wanted for half in (w[: len(w) // 2], w[len(w) // 2 :]) if half]
        enough = len(halves) / 2
        choices = {
            key: word
            for key, word in choices.items()
            if sum(half in word.lower() for half in halves) >= enough
        }
    scores = {key: _similarity(wanted, _words(word)) for key, word in choices.items()}
    found = [key for key, score in scores.items() if score >= _MIN_SIMILARITY]
    return sorted(found, key=lambda key: -scores[key])[:limit]


def is_typo(name: str, known: Iterable[str]) -> bool:
    """Whether a name is one of these except for a letter or two: `titel`, `max-results`.

    Stricter than `nearest`: sharing words with a name does not make it that name.
    """
    if len(name) > MAX_NAME_LENGTH:
        return False
    # `maxResults`, `max_results` and `max-results` are the same letters.
    plain = "".join(_words(name))
    return any(letter_similarity(plain, "".join(_words(w))) >= _TYPO_SIMILARITY for w in known)


def letter_similarity(one: str, other: str) -> float:
    """Twice the length of the longest common subsequence, as a share of all letters."""
    if not one or not other:
        return float(one == other)
    # Bit-parallel (Hyyrö 2004): bit i of `row` is 0 where the subsequence grows with `one[i]`, so
    # that a letter of `other` costs one addition of large integers and not a loop over `one`.
    places = _find_places(one)
    full = (1 << len(one)) - 1
    row = full
    for letter in other:
        matched = row & places.get(letter, 0)
        row = (row + matched) | (row - matched)
    common = len(one) - (row & full).bit_count()
    return 2 * common / (len(one) + len(other))


@lru_cache(maxsize=256)  # one name is compared with many others
def _find_places(text: str) -> Mapping[str, int]:
    """The positions of each letter in a text, as a bit mask."""
    places: dict[str, int] = {}
    for at, letter in enumerate(text):
        places[letter] = places.get(letter, 0) | 1 << at
    return places


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", name[:_MAX_COMPARED].lower())[:_MAX_WORDS]


def _similarity(one: list[str], other: list[str]) -> float:
    """How similar two names are, from 0 to 1."""
    best = letter_similarity(" ".join(one), " ".join(other))
    if len(one) > 1 or len(other) > 1:
        best = max(best, letter_similarity(" ".join(sorted(one)), " ".join(sorted(other))))
        if shared := set(one) & set(other):
            # As if the shared words stood in both, followed by what only one of them has.
            start = " ".join(sorted(shared))
            rests = [" ".join([start, *sorted(set(w) - shared)]) for w in (one, other)]
            by_length = max(2 * len(start) / (len(start) + len(rest)) for rest in rests)
            best = max(best, _SHARED_WORDS * max(by_length, letter_similarity(*rests)))
    return best
