"""Counting tokens: exact, offline, by a named tokenizer, in one place.

Text is counted as a model would be sent it: what looks like a special token is ordinary text there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pegboard.core import token_budget as bounds
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.tools import Tool
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from splintr import AnyTokenizer

__all__ = ["DEFAULT_TOKENIZER", "TOKENIZERS", "count_or_estimate", "count_tokens", "within"]

DEFAULT_TOKENIZER: Final = "o200k_base"
TOKENIZERS: Final = ("o200k_base", "cl100k_base")
PIECE: Final = 100_000
"""Characters that are given to the tokenizer at once."""
_NEAR: Final = 1_000
BYTES_PER_TOKEN: Final = 3.5
"""Of compact JSON and English alike, roughly; for estimates alone."""
LONGEST_COUNTED: Final = 4_000
"""Characters above which a text is not counted whole for a figure that nobody decides by."""


def count_tokens(text_or_tool: str | Tool | Json, tokenizer: str = DEFAULT_TOKENIZER) -> int:
    """The tokens of a text, of a tool as a model reads it, or of a JSON value as compact text.

    Raises:
        ConfigError: The tokenizer is not one of `TOKENIZERS`.
    """
    return _count(_as_text(text_or_tool), tokenizer)


def count_or_estimate(text: str, tokenizer: str = DEFAULT_TOKENIZER) -> int:
    """About the tokens of a text, at a price that every call can pay.

    Counted where the tokenizer is loaded already and the text is not long; else an `Estimate`: from
    both ends of a long text, or from the number of its bytes.
    """
    if tokenizer not in _loaded:
        return bounds.Estimate(round(bounds.utf8_size(text) / BYTES_PER_TOKEN))
    if len(text) <= LONGEST_COUNTED:
        return _count(text, tokenizer)
    half = LONGEST_COUNTED // 2
    ends = _count(text[:half], tokenizer) + _count(text[-half:], tokenizer)
    return bounds.Estimate(round(ends * len(text) / (2 * half)))


def within(text: str, budget: int, tokenizer: str = DEFAULT_TOKENIZER) -> bool:
    """Whether a text has at most `budget` tokens; most texts need no counting for the answer."""
    return bounds.within(text, budget, lambda whole: _count(whole, tokenizer))


def _as_text(subject: str | Tool | Json) -> str:
    if isinstance(subject, str):
        return subject
    if isinstance(subject, Tool):
        return compact(_as_read(subject))
    return compact(subject)


def _as_read(tool: Tool) -> JsonObject:
    """The part of a definition that clients put before the model."""
    read: JsonObject = {"name": tool.name}
    if tool.description:
        read["description"] = tool.description
    read["inputSchema"] = tool.input_schema
    return read


def _count(text: str, tokenizer: str) -> int:
    encode = _load(tokenizer).encode_ordinary
    try:
        return sum(len(encode(piece)) for piece in _pieces(text))
    except UnicodeEncodeError:
        # JSON can spell half of a surrogate pair; no model can be sent one.
        return _count(text.encode("utf-8", "replace").decode(), tokenizer)


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces that are quick to count, cut before a space where there is one.

    One unbroken run of megabytes takes the tokenizer seconds, a hundred short ones milliseconds. A
    cut before a space changes no count; a cut within such a run changes it by a token at most.
    """
    start = 0
    while len(text) - start > PIECE:
        end = start + PIECE
        space = text.rfind(" ", end - _NEAR, end)
        end = space if space > start else end
        yield text[start:end]
        start = end
    yield text[start:] if start else text


_loaded: Final[dict[str, AnyTokenizer]] = {}


def _load(tokenizer: str) -> AnyTokenizer:
    """The tokenizer, loaded on first use: its vocabulary takes some 0.3 s and 30 MB."""
    if tokenizer not in TOKENIZERS:
        raise ConfigError(
            f"Unknown tokenizer: {tokenizer!r}. Known: {', '.join(TOKENIZERS)}.",
            field="tokenizer",
            expected=list(TOKENIZERS),
        )
    if tokenizer not in _loaded:
        from splintr import Tokenizer

        _loaded[tokenizer] = Tokenizer.from_pretrained(tokenizer)
    return _loaded[tokenizer]
