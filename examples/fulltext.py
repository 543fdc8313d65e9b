"""Words for SQLite's FTS5: what people type, turned into expressions that cannot be malformed."""

from __future__ import annotations

import re

WORD = re.compile(r"\w+")
COMMON = re.compile(
    "an?|and|are|as|at|be|by|for|from|how|in|is|it|not|of|on|or|that|the|this|to|was|when|why|with"
)


def any_word(text: str, most: int = 40) -> str:
    """An expression that fits what shares a telling word with the text; empty when it has none."""
    words = dict.fromkeys(word for word in WORD.findall(text.lower()) if not COMMON.fullmatch(word))
    return " OR ".join(f'"{word}"' for word in list(words)[:most])
